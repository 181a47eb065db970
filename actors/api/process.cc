#include "actors/api/process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "actors/api/core/pickle.h"
#include "actors/api/executor.h"
#include "actors/api/registry.h"
#include "actors/api/session.h"
#include "actors/net/control_session.h"
#include "actors/server/call_server.h"
#include "runtime/os/memory.h"

namespace troupe::api {
namespace {

constexpr char kControlVariable[] = "TROUPE_CONTROL_FD";  // worker/core/environment.h
constexpr int kExitWorkerLost = 75;  // as of processes of Python (_process/channel.py)
constexpr int kExitBroken = 70;
constexpr int kOomScore = 500;  // equal for all processes that run user code
                                // (_process/bootstrap.py)

std::atomic<bool> leaving{false};  // by itself: the end of its channel is no news

[[noreturn]] void Leave(int code) {
  std::fflush(nullptr);
  ::_exit(code);
}

[[noreturn]] void LeaveBroken(const std::string& why) {
  std::fprintf(stderr, "troupe: the actor's process could not start: %s\n", why.c_str());
  Leave(kExitBroken);
}

/// Sets up a process of the runtime: who may read it, its streams, its OOM score.
void Prepare() {
  ::prctl(PR_SET_PTRACER, static_cast<unsigned long>(::getppid()), 0, 0, 0);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::signal(SIGPIPE, SIG_IGN);
  os::SetOomScore(::getpid(), std::min(os::OomScore(::getpid()) + kOomScore, 1000));
}

/// Directory, affinity and title; the environment is there already.
void Apply(const wire::ForkRequest& request) {
  const std::string& directory = request.working_directory;
  if (::chdir(directory.empty() ? "/" : directory.c_str()) != 0) {
    std::fprintf(stderr,
                 "troupe: the caller's directory %s is not on this host (%s); running in /\n",
                 directory.c_str(), std::strerror(errno));
    if (::chdir("/") != 0) LeaveBroken("it cannot enter /");
  }
  if (!request.cpus.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const std::uint32_t each : request.cpus) CPU_SET(each, &set);
    ::sched_setaffinity(0, sizeof set, &set);
  }
}

/// The channel's messages that are no answers and no word of the cluster.
bool TakeOfWorker(const wire::Message& message) {
  if (const auto* end = wire::GetIf<wire::ProcessEnd>(&message.body)) {
    if (!end->own_time) Leave(end->exit_code);
    return true;
  }
  if (const auto* stop = wire::GetIf<wire::ProcessStop>(&message.body)) {
    if (stop->signal != 0) ::kill(::getpid(), stop->signal);
    return true;
  }
  return false;
}

/// The actor's process, step by step.
class ActorProcess {
 public:
  explicit ActorProcess(std::shared_ptr<client::ControlClient> control)
      : control_(std::move(control)) {}

  [[noreturn]] void Run() {
    Begin();
    StartSession();
    const ClassEntry* const entry = FindClass(begin_.class_name);
    if (entry == nullptr) RefuseClass();
    StatusOr<std::unique_ptr<actors::CallServer>> server =
        actors::CallServer::Listen(begin_.socket_path, session_->identity());
    if (!server.ok()) LeaveBroken(MessageOf(server.status()));
    std::shared_ptr<void> self = Construct(*entry);
    Say(wire::ActorReady());
    CppExecutor executor(*entry, self.get(), Who());
    (*server)->Serve(executor);
    try {
      self.reset();
    } catch (...) {
    }
    wire::RankResult meant;  // so that it is not started again
    meant.outcome = wire::Outcome::kSucceeded;
    Say(meant);
    leaving = true;
    control_->Close();
    Leave(0);
  }

 private:
  std::string Who() const {
    return "actor " + begin_.class_name + " (C++, pid " + std::to_string(::getpid()) + " on " +
           begin_.node_name + ")";
  }

  template <class Body>
  void Say(Body body) {
    wire::Message message;
    message.body = std::move(body);
    control_->Send(std::move(message)).IgnoreError();
  }

  void Begin() {
    while (true) {
      StatusOr<std::optional<client::Push>> push = control_->NextPush(std::nullopt);
      if (!push.ok()) Leave(kExitWorkerLost);
      if (!*push || TakeOfWorker(**push)) continue;
      if (const auto* request = wire::GetIf<wire::ForkRequest>(&(*push)->body)) {
        Apply(*request);
      } else if (auto* begin = wire::GetIf<wire::ActorBegin>(&(*push)->body)) {
        begin_ = *begin;
        payload_ = std::move((*push)->attachment);
        return;
      }
    }
  }

  void StartSession() {
    const char* const name = std::getenv("TROUPE_NAMESPACE");
    const char* const job = std::getenv("TROUPE_JOB_ID");
    SessionPlace place;
    place.address = "this node's worker";
    place.namespace_ = name != nullptr ? name : "";
    place.job = job != nullptr ? job : "";
    place.launch = begin_.launch;
    place.in_process = true;
    session_ = std::make_shared<Session>(control_, std::move(place));
    session_->Start(TakeOfWorker, [] {
      if (!leaving) Leave(kExitWorkerLost);
    });
    Session::SetCurrent(session_);
  }

  [[noreturn]] void Fail(const std::string& type, const std::string& cause,
                         const std::string& pickle) {
    wire::ActorReady ready;
    ready.failed = true;
    ready.failure.kind = wire::FailureKind::kRaised;
    ready.failure.cause = cause;
    ready.failure.exception_type = type;
    ready.failure.pid = ::getpid();
    wire::Message message;
    message.body = std::move(ready);
    message.attachment = pickle;
    control_->Send(std::move(message)).IgnoreError();
    leaving = true;
    control_->Close();
    Leave(1);
  }

  [[noreturn]] void RefuseClass() {
    char path[4096] = "";
    if (::readlink("/proc/self/exe", path, sizeof path - 1) < 0) path[0] = '\0';
    const std::string text = std::string(path) + " registers no actor class " + begin_.class_name +
                             "; it registers: " + KnownClasses() + "\n  TROUPE_ACTOR(" +
                             begin_.class_name + "(...), ...) belongs into one of its source files";
    Fail("InvalidError", text, PythonExceptionOf(std::invalid_argument(text)));
  }

  StatusOr<Value::List> ReadArguments() {
    std::string bytes = std::move(payload_);
    if (!begin_.payload_path.empty()) {
      std::ifstream file(begin_.payload_path, std::ios::binary);
      bytes.assign(std::istreambuf_iterator<char>(file), {});
      if (!file) return MakeError(ErrorCode::kInternal, "cannot read " + begin_.payload_path);
    }
    TROUPE_ASSIGN(const Value arguments, ReadPickle(bytes));
    return arguments.AsList();
  }

  std::shared_ptr<void> Construct(const ClassEntry& entry) {
    const std::string what = "the constructor " + entry.name + "()";
    try {
      StatusOr<Value::List> arguments = ReadArguments();
      if (!arguments.ok())
        throw InvalidError("an argument of " + what + ": " + MessageOf(arguments.status()));
      return entry.make(*arguments, what);
    } catch (const InvalidError& error) {
      Fail("InvalidError", error.what(), PythonExceptionOf(error));
    } catch (const std::exception& error) {
      Fail(TypeNameOf(error), what + " threw " + TypeNameOf(error) + ": " + error.what(),
           PythonExceptionOf(error));
    } catch (...) {
      const std::runtime_error error(what + " threw what is no std::exception");
      Fail("", error.what(), PythonExceptionOf(error));
    }
  }

  const std::shared_ptr<client::ControlClient> control_;
  wire::ActorBegin begin_;
  std::string payload_;
  std::shared_ptr<Session> session_;
};

}  // namespace

void ServeIfActor() {
  const char* const text = std::getenv(kControlVariable);
  if (text == nullptr) return;
  const int fd = std::atoi(text);
  ::unsetenv(kControlVariable);  // programs that this process starts are no actors
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  Prepare();
  StatusOr<std::shared_ptr<client::ControlClient>> control =
      actors::AdoptProcess(UniqueFd(fd), "the worker");
  if (!control.ok()) LeaveBroken(MessageOf(control.status()));
  ActorProcess(*std::move(control)).Run();
}

}  // namespace troupe::api
