// Actors: created, called, found by name, ended. In C++ their classes are registered (register.h);
// those of Python are called by the names of their methods.
//
//   troupe::Actor<Counter> counter = troupe::Create<Counter>({.name = "counter"}, 5);
//   troupe::Ref<int> total = counter.Call<&Counter::Add>(2);
//   std::cout << total.Get() << "\n";
//   troupe::AnyActor model = troupe::GetActor("model");            // of Python, say
//   double loss = model.Call("step", std::vector<double>{1, 2}).Get<double>();
//
// Calls of one actor are run in the order in which they are made. A handle may be copied and used
// on any thread. The actor that a program has made lives as long as a handle of it in that program,
// or a call of it without an answer, unless it is detached.
#pragma once

#include <troupe/placement_group.h>
#include <troupe/ref.h>
#include <troupe/register.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace troupe {

struct ActorOptions {
  /// Resources that the actor holds while it runs. One without any of these needs one CPU to be
  /// placed and holds none.
  std::optional<double> num_cpus;
  std::optional<double> num_gpus;
  std::optional<double> memory_bytes;
  std::map<std::string, double> resources;
  /// By which others find it (GetActor); unique in its namespace.
  std::string name;
  std::string namespace_;      // empty: this program's
  bool get_if_exists = false;  // with a name: the actor of that name, if there is one
  bool detached = false;  // outlives this program
  /// How often its process is started again when it ends by itself; -1: always. The constructor
  /// runs anew.
  int max_restarts = 0;
  /// In this group, in that bundle or (-1) in any.
  std::optional<PlacementGroup> placement_group;
  int bundle = -1;
  std::map<std::string, std::string> labels;  // labels that the node must have: {"gpu_type":
                                              // "H100"}
  std::map<std::string, std::string> env;     // variables of its process
  /// The program that registers the class, a path on the node where it runs; empty: this program's
  /// own file, on this host's path.
  std::string executable;
};

class ActorState;

/// An actor of whatever language, by the names of its methods.
class TROUPE_API AnyActor {
 public:
  AnyActor() = default;
  explicit AnyActor(std::shared_ptr<ActorState> state) : state_(std::move(state)) {}

  /// Calls a method; returns at once, but where the channel is full. Throws InvalidError and
  /// TooLargeError for an argument that cannot be sent; all else is the answer's.
  template <class... A>
  AnyRef Call(const std::string& method, const A&... arguments) const {
    return Issue(method, {ToValue(arguments)...});
  }
  AnyRef Issue(const std::string& method, const Value::List& arguments) const;
  /// 32 hex digits.
  std::string id() const;
  bool valid() const { return state_ != nullptr; }
  const std::shared_ptr<ActorState>& state() const { return state_; }

 private:
  std::shared_ptr<ActorState> state_;
};

[[noreturn]] TROUPE_API void ThrowUnregistered(const std::string& class_name, const char* what);

/// An actor of a class that this program registers.
template <class C>
class Actor : public AnyActor {
 public:
  using AnyActor::AnyActor;
  explicit Actor(AnyActor any) : AnyActor(std::move(any)) {}

  /// Calls a registered method. Arguments become what the method takes, here, by the rules of C++.
  template <auto Method, class... A>
  auto Call(A&&... arguments) const {
    using Traits = MethodTraits<decltype(Method)>;
    static_assert(std::is_base_of_v<typename Traits::Class, C>, "a method of another class");
    static_assert(sizeof...(A) == std::tuple_size_v<typename Traits::Arguments>,
                  "the method takes another number of arguments");
    return Ref<std::decay_t<typename Traits::Result>>(
        Issue(RegisteredName(MethodName<Method>()),
              Converted<typename Traits::Arguments>(std::forward<A>(arguments)...)));
  }
  using AnyActor::Call;

 private:
  template <class Parameters, class... A>
  static Value::List Converted(A&&... arguments) {
    return ConvertedAs<Parameters>(std::index_sequence_for<A...>(), std::forward<A>(arguments)...);
  }
  template <class Parameters, std::size_t... I, class... A>
  static Value::List ConvertedAs(std::index_sequence<I...>, A&&... arguments) {
    return {
        ToValue<std::decay_t<std::tuple_element_t<I, Parameters>>>(std::forward<A>(arguments))...};
  }
  /// Throws InvalidError where TROUPE_ACTOR does not list the method.
  static const std::string& RegisteredName(const std::string& name) {
    if (name.empty()) ThrowUnregistered(ClassName<C>(), "the method");
    return name;
  }
};

/// Creates an actor of the class that `class_name` is registered as in options.executable.
TROUPE_API AnyActor CreateActor(const std::string& class_name, const ActorOptions& options,
                                const Value::List& arguments);

/// Creates an actor and returns its handle at once. What its constructor throws comes out of the
/// first call, as ActorDiedError. Throws before anything starts: InvalidError (the class is not
/// registered; options that cannot be meant), PlacementError (no node can ever hold it),
/// AlreadyExistsError, TooLargeError (arguments of more than 1 MiB), ConnectionError.
template <class C, class... A>
Actor<C> Create(const ActorOptions& options, const A&... arguments) {
  if (ClassName<C>().empty()) ThrowUnregistered("", "the class");
  return Actor<C>(CreateActor(ClassName<C>(), options, {ToValue(arguments)...}));
}
template <class C>
Actor<C> Create() {
  return Create<C>(ActorOptions());
}

/// The actor of that name; the handle does not keep it alive. Blocks for a request. Throws
/// NotFoundError, ConnectionError.
TROUPE_API AnyActor GetActor(const std::string& name, const std::string& namespace_ = "");
template <class C>
Actor<C> GetActor(const std::string& name, const std::string& namespace_ = "") {
  return Actor<C>(GetActor(name, namespace_));
}

/// Ends an actor at once; its calls end with ActorDiedError. With `restart` its process is started
/// again where max_restarts allows that. Blocks for a request.
TROUPE_API void Kill(const AnyActor& actor, bool restart = false);

}  // namespace troupe
