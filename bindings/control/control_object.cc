#include "bindings/control/control_object.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "actors/net/control_session.h"
#include "actors/net/now.h"
#include "bindings/control/control_convert.h"
#include "bindings/support/gil.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

using client::ControlClient;
using client::PollHook;

constexpr double kForEverSeconds = 1e9;
constexpr std::chrono::seconds kLeaveLimit{1};
constexpr std::size_t kPushesAtOnce = 100;

std::optional<Duration> LimitOf(std::optional<double> seconds) {
  if (!seconds || *seconds > kForEverSeconds) return std::nullopt;
  return Duration(static_cast<std::int64_t>(std::max(0.0, *seconds) * 1e9));
}

/// Runs Python's signal handlers, where Python runs them: on the main thread. Other threads wait
/// without taking the GIL, which a rank may hold for long.
PollHook SignalHook() {
  if (gettid() != getpid()) return {};
  return [] {
    const PyGILState_STATE gil = EnsureGil();
    const bool fine = PyErr_CheckSignals() == 0;
    PyGILState_Release(gil);
    if (fine) return Status();
    return MakeError(ErrorCode::kCancelled, "a signal handler raised");
  };
}

/// The Python error a signal handler left wins over the status that carried it here.
[[noreturn]] void Throw(const Status& status) {
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  ThrowStatus(status);
}

std::string PythonVersion() {
  return std::to_string(PY_MAJOR_VERSION) + "." + std::to_string(PY_MINOR_VERSION);
}

StatusOr<net::OpenOptions> OptionsOf(const net::Address& address,
                                     const ConnectArguments& arguments) {
  actors::JoinArguments join;
  join.role = arguments.role;
  join.name = arguments.name;
  join.token = arguments.token;
  join.token_file = arguments.token_file;
  join.certificate = arguments.certificate;
  join.python_version = PythonVersion();
  join.limit = LimitOf(arguments.timeout_s).value_or(Duration(std::chrono::hours(1)));
  return actors::OpenOptionsOf(address, join);
}

nb::tuple PushToPython(const client::Push& push) {
  const nb::tuple message = MessageToPython(push);
  if (push.asked == nullptr) return message;
  return nb::make_tuple(message[0], message[1], message[2], MessageToPython(*push.asked));
}

std::unique_ptr<ControlObject> Open(StatusOr<net::OpenOptions> options,
                                    Duration return_limit = Duration::zero()) {
  if (!options.ok()) ThrowStatus(options.status());
  const PollHook hook = SignalHook();
  StatusOr<std::shared_ptr<ControlClient>> client = MakeError(ErrorCode::kInternal, "not run");
  {
    const GilReleased released;
    client = ControlClient::Connect(*std::move(options), hook, return_limit);
  }
  if (!client.ok()) Throw(client.status());
  return std::make_unique<ControlObject>(*std::move(client));
}

}  // namespace

class ControlObject::InWait {
 public:
  explicit InWait(ControlObject& owner) : owner_(owner) {
    MutexLock lock(owner_.waits_mutex_);
    ++owner_.waits_;
  }
  ~InWait() {
    MutexLock lock(owner_.waits_mutex_);
    if (--owner_.waits_ == 0) owner_.waits_over_.NotifyAll();
  }

 private:
  ControlObject& owner_;
};

ControlObject::ControlObject(std::shared_ptr<ControlClient> client)
    : client_(std::move(client)),
      identity_(std::make_shared<client::ProcessIdentity>(client_, client_->joined().credentials)) {
}

ControlObject::~ControlObject() {
  // The last message may still be on its way out: nobody else has to wait for that.
  const GilReleased released;
  identity_.reset();
  client_.reset();
}

std::unique_ptr<ControlObject> ControlObject::Connect(const net::Address& address,
                                                      const ConnectArguments& arguments) {
  return Open(OptionsOf(address, arguments),
              LimitOf(arguments.return_s).value_or(Duration(std::chrono::hours(1))));
}

std::unique_ptr<ControlObject> ControlObject::Adopt(int fd, const std::string& peer) {
  StatusOr<std::shared_ptr<ControlClient>> client = MakeError(ErrorCode::kInternal, "not run");
  {
    const GilReleased released;
    client = actors::AdoptProcess(UniqueFd(fd), peer);
  }
  if (!client.ok()) ThrowStatus(client.status());
  return std::make_unique<ControlObject>(*std::move(client));
}

std::unique_ptr<ControlObject> ControlObject::ConnectWorker(const std::string& host, int port,
                                                            const std::string& node,
                                                            double timeout_s) {
  StatusOr<std::shared_ptr<const client::IdentityShown>> shown =
      MakeError(ErrorCode::kInternal, "not run");
  {
    const GilReleased released;
    shown = identity_->Get();
  }
  if (!shown.ok()) {
    ThrowStatus(MakeError(ErrorCodeOf(shown.status()), "cannot reach the worker at " + host + ":" +
                                                           std::to_string(port) + ": " +
                                                           MessageOf(shown.status())));
  }
  const net::Credentials& credentials = (*shown)->credentials;
  StatusOr<net::Address> address = net::TcpAddress(host, port);
  if (!address.ok()) ThrowStatus(address.status());
  net::OpenOptions options(*std::move(address));
  options.credentials = credentials;
  options.expected.role = wire::Role::kWorker;
  if (!node.empty()) {
    const auto id = NodeId::FromHex(node);
    if (!id) ThrowStatus(MakeError(ErrorCode::kInvalid, "'" + node + "' is not a node id"));
    options.expected.id = *id;
  }
  options.hello = actors::HelloOf(credentials.certificate.identity()->role, "", PythonVersion());
  options.limit = LimitOf(timeout_s).value_or(Duration(std::chrono::hours(1)));
  return Open(std::move(options));
}

actors::IdentitySource ControlObject::identity() const {
  return [identity = identity_] { return identity->Get(); };
}

nb::tuple ControlObject::Request(const std::string& kind, nb::object fields, nb::object attachment,
                                 std::optional<double> timeout_s) {
  wire::Message message = MessageFromPython(kind, std::move(fields), std::move(attachment));
  const PollHook hook = SignalHook();
  StatusOr<wire::Message> answer = MakeError(ErrorCode::kInternal, "not run");
  {
    const InWait counted(*this);
    const GilReleased released;
    answer = client_->Request(std::move(message), LimitOf(timeout_s), hook);
  }
  if (!answer.ok()) Throw(answer.status());
  return MessageToPython(*answer);
}

bool ControlObject::Ask(const std::string& kind, nb::object fields, nb::object attachment) {
  const StatusOr<bool> asked =
      client_->Ask(MessageFromPython(kind, std::move(fields), std::move(attachment)));
  if (!asked.ok()) ThrowStatus(asked.status());
  return *asked;
}

void ControlObject::Send(const std::string& kind, nb::object fields, nb::object attachment) {
  const Status sent =
      client_->Send(MessageFromPython(kind, std::move(fields), std::move(attachment)));
  if (!sent.ok()) ThrowStatus(sent);
}

nb::object ControlObject::NextPush(std::optional<double> timeout_s) {
  const PollHook hook = SignalHook();
  StatusOr<std::optional<client::Push>> push = MakeError(ErrorCode::kInternal, "not run");
  {
    const InWait counted(*this);
    const GilReleased released;
    push = client_->NextPush(LimitOf(timeout_s), hook);
  }
  if (!push.ok()) Throw(push.status());
  if (!*push) return nb::none();
  return PushToPython(**push);
}

nb::list ControlObject::NextPushes() {
  nb::list pushes;
  const nb::object first = NextPush(std::nullopt);
  if (first.is_none()) return pushes;
  pushes.append(first);
  while (nb::len(pushes) < kPushesAtOnce) {
    // Takes pushes that have come already without releasing the GIL; the next call raises an error.
    const StatusOr<std::optional<client::Push>> next = client_->NextPush(Duration::zero());
    if (!next.ok() || !*next) break;
    pushes.append(PushToPython(**next));
  }
  return pushes;
}

void ControlObject::Close() {
  const GilReleased released;
  client_->Close();
  const Instant until = actors::Now() + kLeaveLimit;
  MutexLock lock(waits_mutex_);
  for (Instant now = actors::Now(); waits_ != 0 && now < until; now = actors::Now()) {
    waits_over_.WaitFor(waits_mutex_, until - now);
  }
}

}  // namespace troupe::bindings
