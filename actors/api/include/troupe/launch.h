// Launches: a program, or a registered function of this one, on many ranks over the nodes of the
// cluster, placed, supervised and ended together; what `troupe submit` is for shells.
//
//   void Train(int epochs, double rate);
//   TROUPE_FUNCTION(Train);                                  // at namespace scope, in one source
//   auto launch = troupe::Submit<&Train>({.processes = 4}, 3, 0.1);
//   launch.Wait();                                           // throws LaunchError
//   troupe::SubmitCommand({"/usr/bin/python3", "train.py"}, {.gpus = 8}).Wait();
//
// A rank has torchrun's variables: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT and so
// on. A function runs in a process of this program's file: main() runs there until Init(), which
// runs the function and ends the process, by code 0, or 1 where it throws.
#pragma once

#include <troupe/ref.h>
#include <troupe/register.h>

#include <chrono>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

struct LaunchOptions {
  /// How many ranks: one of these two. With `gpus` each rank has one GPU.
  int processes = 0;
  int gpus = 0;
  int nodes = 0;  // over so many nodes, as evenly as can be; 0: as they fit
  double cpus_per_rank = 1;
  std::string name;  // for people
  /// PACK, SPREAD, STRICT_PACK, STRICT_SPREAD: as of placement groups.
  std::string strategy = "PACK";
  std::map<std::string, std::string> labels;  // labels that its nodes must have
  std::map<std::string, std::string> env;       // variables of its ranks
  std::chrono::milliseconds timeout{0};         // from submission to the end; 0: none
  std::chrono::milliseconds stop_grace{10000};  // from the word to stop to SIGKILL
  int max_attempts = 1;                         // all ranks are started again where one fails
  bool detached = false;  // outlives this program
};

/// A launch, seen from the program that submitted it. May be copied.
class TROUPE_API Launch {
 public:
  explicit Launch(std::string id) : id_(std::move(id)) {}

  /// 32 hex digits, of which commands take the first few: `troupe logs ID`.
  const std::string& id() const { return id_; }
  /// Blocks until it has ended. Throws LaunchError (a rank failed, or it was cancelled: which,
  /// where, why, with the last lines of its stderr), TimeoutError after `timeout`, and it goes on;
  /// ConnectionError.
  void Wait(Timeout timeout = std::nullopt) const;
  /// Ends it: SIGTERM, and after stop_grace SIGKILL. Blocks until it has ended; nothing where it
  /// has.
  void Cancel() const;

 private:
  std::string id_;
};

/// Starts a launch whose ranks execute `command`, and returns at once. Throws InvalidError,
/// PlacementError (the reason per node), ConnectionError.
TROUPE_API Launch SubmitCommand(const std::vector<std::string>& command,
                                const LaunchOptions& options);
/// Starts a launch of the function that is registered by that name in this program's file.
TROUPE_API Launch SubmitFunction(const std::string& name, const LaunchOptions& options,
                                 const Value::List& arguments);
TROUPE_API bool RegisterFunction(std::string name,
                                 void (*run)(const Value::List&, const std::string&));

template <class F>
struct FunctionTraits;
template <class... A>
struct FunctionTraits<void (*)(A...)> {
  using Arguments = std::tuple<A...>;
};

template <auto Function>
struct FunctionRunner {
  using Arguments = typename FunctionTraits<decltype(Function)>::Arguments;

  static void Run(const Value::List& arguments, const std::string& what) {
    constexpr std::size_t kCount = std::tuple_size_v<Arguments>;
    if (arguments.size() != kCount) ThrowArity(what, arguments.size(), kCount);
    With(arguments, what, std::make_index_sequence<kCount>());
  }

 private:
  template <std::size_t... I>
  static void With(const Value::List& arguments, const std::string& what,
                   std::index_sequence<I...>) {
    std::tuple<std::decay_t<std::tuple_element_t<I, Arguments>>...> taken{
        TakeArgument<std::tuple_element_t<I, Arguments>>(arguments, I, what)...};
    Function(std::move(std::get<I>(taken))...);
  }
};

/// Starts a launch of a function that TROUPE_FUNCTION registers; see SubmitCommand. Arguments
/// become what the function takes, and may have 48 KiB.
template <auto Function, class... A>
Launch Submit(const LaunchOptions& options, const A&... arguments) {
  static_assert(sizeof...(A) == std::tuple_size_v<typename FunctionRunner<Function>::Arguments>,
                "the function takes another number of arguments");
  return SubmitFunction(MethodName<Function>(), options, {ToValue(arguments)...});
}

template <auto Function>
bool RegisterRankFunction(const char* name) {
  MethodName<Function>() = name;
  return RegisterFunction(name, &FunctionRunner<Function>::Run);
}

}  // namespace troupe

/// See the top of this file: a function that returns void.
#define TROUPE_FUNCTION(Function)                                                 \
  [[maybe_unused]] static const bool TROUPE_JOIN(troupe_function_, __COUNTER__) = \
      ::troupe::RegisterRankFunction<&Function>(#Function)
