#include <absl/strings/escaping.h>
#include <absl/strings/str_format.h>
#include <troupe/launch.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "actors/api/calls.h"
#include "actors/api/core/pickle.h"
#include "actors/api/executor.h"
#include "actors/api/own_program.h"
#include "actors/api/process.h"
#include "actors/api/session.h"
#include "actors/api/wire_forms.h"
#include "runtime/base/mutex.h"

namespace troupe {
namespace {

constexpr char kFunction[] = "TROUPE_CPP_FUNCTION";
constexpr char kArguments[] = "TROUPE_CPP_ARGUMENTS";
constexpr std::size_t kVariableBytesMax = 48u << 10;  // the kernel takes 128 KiB in a variable

using Runner = void (*)(const Value::List&, const std::string&);

struct Functions {
  Mutex mutex;
  std::map<std::string, Runner> known ABSL_GUARDED_BY(mutex);
};
Functions& All() {
  static auto* const functions = new Functions();  // outlives every static of a program
  return *functions;
}

Runner FindFunction(const std::string& name) {
  Functions& functions = All();
  MutexLock lock(functions.mutex);
  const auto found = functions.known.find(name);
  return found != functions.known.end() ? found->second : nullptr;
}

void CheckOptions(const LaunchOptions& options) {
  if ((options.processes > 0) == (options.gpus > 0) || options.processes < 0 || options.gpus < 0)
    throw InvalidError("a launch has a number of ranks: exactly one of processes and gpus");
  const int ranks = options.processes + options.gpus;
  if (options.nodes < 0 || options.nodes > ranks)
    throw InvalidError(std::to_string(ranks) + " ranks cannot take " +
                       std::to_string(options.nodes) + " nodes");
  if (options.max_attempts < 1) throw InvalidError("max_attempts is at least 1");
  if (options.timeout.count() < 0 || options.stop_grace.count() < 0)
    throw InvalidError("timeout and stop_grace are at least 0");
}

wire::LaunchSpec SpecOf(const LaunchOptions& options, const std::string& name,
                        api::Session& session) {
  CheckOptions(options);
  wire::LaunchSpec spec;
  spec.name = options.name.empty() ? name : options.name;
  spec.function_name = name;
  spec.mode = wire::LaunchMode::kDistributed;
  spec.ranks = static_cast<std::uint32_t>(options.processes + options.gpus);
  std::map<std::string, double> each{{"CPU", options.cpus_per_rank}};
  if (options.gpus > 0) each["GPU"] = 1;
  spec.per_rank = api::ResourcesOf(each);
  spec.strategy = api::StrategyOf(options.strategy);
  spec.nodes = static_cast<std::uint32_t>(options.nodes);
  if (!options.labels.empty()) spec.where = api::WhereOf(options.labels);
  spec.attempts_max = static_cast<std::uint32_t>(options.max_attempts);
  spec.timeout_ms = static_cast<std::uint64_t>(options.timeout.count());
  spec.stop_grace_ms = static_cast<std::uint32_t>(options.stop_grace.count());
  spec.detached = options.detached;
  if (session.all_on_this_host()) spec.environment.working_directory = api::OwnDirectory();
  spec.environment.env = api::VariablesOf(options.env, session.place());
  return spec;
}

/// Payload of a rank: the program, by the function that makes one wherever the package has it.
std::string PayloadOf(const std::vector<std::string>& command) {
  Value::List rest;
  for (std::size_t i = 1; i < command.size(); ++i) rest.push_back(Value::String(command[i]));
  const Value fields = Value::OfDict({{Value::String("kind"), Value::String("command")},
                                      {Value::String("target"), Value::String(command[0])},
                                      {Value::String("arguments"), Value::OfTuple(rest)}});
  std::string payload;
  const Status written = api::WriteWorkPickle("troupe._pickled", "program", fields, &payload);
  if (!written.ok()) api::ThrowStatus(written);
  return payload;
}

Launch Start(const std::vector<std::string>& command, const std::string& name,
             const LaunchOptions& options) {
  if (command.empty() || command[0].empty())
    throw InvalidError("there is nothing to run: a command is a list of words, the program first");
  const std::shared_ptr<api::Session> session = api::NeedSession();
  wire::SubmitLaunch submit;
  submit.spec = SpecOf(options, name, *session);
  submit.request = api::NewId<RequestId>();
  StatusOr<wire::Message> answer = session->Request(std::move(submit), PayloadOf(command));
  if (!answer.ok()) api::ThrowStatus(answer.status());
  const auto* accepted = wire::GetIf<wire::LaunchAccepted>(&answer->body);
  if (accepted == nullptr) throw Error("a launch was answered with something else");
  return Launch(accepted->launch.Hex());
}

LaunchId IdOf(const std::string& hex) {
  const auto id = LaunchId::FromHex(hex);
  if (!id) throw InvalidError("\"" + hex + "\" is no launch's id");
  return *id;
}

bool HasEnded(const wire::LaunchInfo& info) { return info.state == wire::LaunchState::kTerminal; }

std::string FailureText(const wire::LaunchInfo& info) {
  const wire::Failure& failure = info.failure;
  std::string text = "launch " + info.launch.Short() + " " +
                     (info.outcome == wire::Outcome::kCancelled ? "was cancelled" : "failed") +
                     ": " + info.cause;
  if (!failure.node_name.empty()) text += " (on " + failure.node_name + ")";
  if (!failure.log_tail.empty()) text += "\n  last lines of its stderr:\n" + failure.log_tail;
  return text + "\n  all of its output: troupe logs " + info.launch.Short();
}

}  // namespace

bool RegisterFunction(std::string name, Runner run) {
  Functions& functions = All();
  MutexLock lock(functions.mutex);
  if (functions.known.emplace(name, run).second) return true;
  std::fprintf(stderr, "troupe: TROUPE_FUNCTION registers %s twice: once is enough\n",
               name.c_str());
  std::abort();
}

Launch SubmitCommand(const std::vector<std::string>& command, const LaunchOptions& options) {
  const std::string target = command.empty() ? "" : command[0];
  return Start(command, target.substr(target.rfind('/') + 1), options);
}

Launch SubmitFunction(const std::string& name, const LaunchOptions& options,
                      const Value::List& arguments) {
  if (name.empty() || FindFunction(name) == nullptr)
    throw InvalidError(
        "the function is not registered in this program\n  TROUPE_FUNCTION(Name) at "
        "namespace scope of one of its source files");
  std::string pickle;
  const Status written = api::WritePickle(Value::OfList(arguments), &pickle);
  if (!written.ok()) api::ThrowStatus(written);
  if (pickle.size() > kVariableBytesMax)
    throw TooLargeError("the arguments of " + name + "() take " + std::to_string(pickle.size()) +
                        " bytes, 48 KiB is the limit: put them into a file, or an actor");
  LaunchOptions with = options;
  with.env[kFunction] = name;
  with.env[kArguments] = absl::BytesToHexString(pickle);
  return Start({api::OwnFile()}, name, with);
}

void Launch::Wait(Timeout timeout) const {
  const std::shared_ptr<api::Session> session = api::NeedSession();
  const LaunchId id = IdOf(id_);
  if (const Status known = session->Follow(id); !known.ok()) api::ThrowStatus(known);
  const StatusOr<wire::LaunchInfo> info =
      session->AwaitLaunch(id, HasEnded, api::DeadlineOf(timeout));
  if (!info.ok() && ErrorCodeOf(info.status()) == ErrorCode::kTimeout)
    throw TimeoutError(absl::StrFormat(
        "launch %s has not ended within %g s of the call of Wait(); it goes on: wait again, or "
        "Cancel()",
        id.Short(), std::chrono::duration<double>(*timeout).count()));
  if (!info.ok()) api::ThrowStatus(info.status());
  session->ForgetLaunch(id);  // the head answers later questions
  if (info->outcome != wire::Outcome::kSucceeded) throw LaunchError(FailureText(*info));
}

void Launch::Cancel() const {
  const std::shared_ptr<api::Session> session = api::NeedSession();
  const LaunchId id = IdOf(id_);
  if (const Status known = session->Follow(id); !known.ok()) api::ThrowStatus(known);
  wire::CancelLaunch cancel;
  cancel.launch = id;
  cancel.hard = true;
  cancel.reason = "Cancel() was called";
  cancel.signal = 15;
  const StatusOr<wire::Message> answer = session->Request(std::move(cancel));
  if (!answer.ok()) api::ThrowStatus(answer.status());
  const StatusOr<wire::LaunchInfo> info = session->AwaitLaunch(id, HasEnded, Instant::max());
  if (!info.ok()) api::ThrowStatus(info.status());
}

namespace api {

void RunIfRank() {
  const char* const text = std::getenv(kFunction);
  if (text == nullptr) return;
  const std::string name = text;
  const char* const given = std::getenv(kArguments);
  const std::string pickle = absl::HexStringToBytes(given != nullptr ? given : "");
  ::unsetenv(kFunction);  // Init() in the function itself joins the cluster
  ::unsetenv(kArguments);
  int code = 0;
  try {
    const Runner run = FindFunction(name);
    if (run == nullptr)
      throw InvalidError(OwnFile() + " registers no function " + name + "\n  TROUPE_FUNCTION(" +
                         name + ") belongs into one of its source files");
    StatusOr<Value> arguments = ReadPickle(pickle);
    if (!arguments.ok()) ThrowStatus(arguments.status());
    run(arguments->AsList(), name + "()");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s() threw %s: %s\n", name.c_str(), TypeNameOf(error).c_str(),
                 error.what());
    code = 1;
  } catch (...) {
    std::fprintf(stderr, "%s() threw what is no std::exception\n", name.c_str());
    code = 1;
  }
  std::exit(code);
}

}  // namespace api
}  // namespace troupe
