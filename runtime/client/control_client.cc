#include "runtime/client/control_client.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "runtime/async/loop_thread.h"
#include "runtime/async/real_clock.h"
#include "runtime/async/scope.h"
#include "runtime/base/mutex.h"
#include "runtime/client/client_inbox.h"
#include "runtime/client/fork_registry.h"
#include "runtime/client/redial.h"

namespace troupe::client {
namespace {

namespace asio = async::asio;
using async::Task;
using net::Connection;
using wire::Message;
using namespace std::chrono_literals;

constexpr Duration kCloseLimit = 500ms;

/// The result of one step on the loop, for the thread that waits for it.
class Outcome {
 public:
  void Finish(Status status) {
    const MutexLock lock(mutex_);
    status_ = std::move(status);
    done_ = true;
    finished_.NotifyAll();
  }
  /// Errors: the step's, kTimeout, or that of `poll`.
  Status Await(std::optional<WaitClock::time_point> until, const PollHook& poll) {
    MutexLock lock(mutex_);
    PolledWait wait(poll);
    while (!done_) TROUPE_TRY(wait.Some(mutex_, finished_, until));
    return status_;
  }

 private:
  Mutex mutex_;
  CondVar finished_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  Status status_ ABSL_GUARDED_BY(mutex_);
};

Status ForkedError() {
  return MakeError(ErrorCode::kConnection,
                   "this connection belongs to the parent process, not to this forked child\n"
                   "  connect anew in this process");
}

std::optional<std::size_t> KindNamed(std::string_view name) {
  const auto* end = std::end(wire::kBodyNames);
  const auto* it = std::find(std::begin(wire::kBodyNames), end, name);
  if (it == end) return std::nullopt;
  return static_cast<std::size_t>(it - std::begin(wire::kBodyNames));
}

}  // namespace

/// The client's thread and its connection. What threads wait for lies in the inbox, with its lock;
/// all else is the loop's.
class ControlClient::Impl {
 public:
  Impl()
      : generation_(ForkRegistry::Generation()),
        loop_(std::make_unique<async::LoopThread>("troupe-control")),
        scope_(std::make_unique<async::Scope>(loop_->executor(), "control client")),
        inbox_([this] { asio::post(loop_->executor(), [this] { SendUnsent(); }); }) {}

  ~Impl() { Close(); }

  bool Forked() const { return generation_ != ForkRegistry::Generation(); }
  const net::Joined& joined() const { return joined_; }
  const std::string& peer() const { return peer_; }

  Status status() const {
    if (Forked()) return ForkedError();
    return inbox_.status();
  }

  /// Runs `step` on the loop and waits for its status.
  Status OnLoopDo(Task<Status> step, const PollHook& poll) {
    auto outcome = std::make_shared<Outcome>();
    asio::post(loop_->executor(),
               [this, outcome, task = std::make_shared<Task<Status>>(std::move(step))] {
                 scope_->Spawn("connect", Store(std::move(*task), outcome));
               });
    return outcome->Await(std::nullopt, poll);
  }

  Task<Status> Open(net::OpenOptions options, Duration return_limit) {
    net::OpenOptions first = options;
    TROUPE_CO_ASSIGN(net::OpenedSession opened,
                     co_await net::OpenSession(std::move(first), async::RealClock::Shared()));
    joined_ = std::move(opened.joined);
    peer_ = opened.connection->peer().address;
    return_limit_ = return_limit;
    if (return_limit > Duration::zero()) return_options_ = OptionsToReturn(options, joined_);
    Use(std::move(opened.connection));
    inbox_.Connected();
    scope_->Spawn("receive", ReceiveLoop(this));
    co_return Status();
  }

  Task<Status> Take(UniqueFd fd, std::string peer) {
    const async::Executor executor = loop_->executor();
    TROUPE_CO_ASSIGN(auto connection,
                     net::AdoptUnixSocket(executor, std::move(fd), std::move(peer)));
    peer_ = connection->peer().address;
    Use(std::move(connection));
    inbox_.Connected();
    scope_->Spawn("receive", ReceiveLoop(this));
    co_return Status();
  }

  StatusOr<Message> Request(Message message, std::optional<Duration> limit, const PollHook& poll) {
    if (Forked()) return ForkedError();
    if (loop_->OnLoop())
      return MakeError(ErrorCode::kInternal, "a push callback must not wait for an answer");
    return inbox_.Request(std::move(message), limit, poll, peer_);
  }

  StatusOr<bool> Ask(Message message) {
    if (Forked()) return ForkedError();
    return inbox_.Ask(std::move(message));
  }

  Status Send(Message message) {
    TROUPE_TRY(status());
    Post(std::move(message));
    return {};
  }

  StatusOr<std::optional<Push>> NextPush(std::optional<Duration> limit, const PollHook& poll) {
    if (Forked()) return ForkedError();
    return inbox_.NextPush(limit, poll);
  }

  /// Before anything is read.
  void OnPush(std::size_t kind, PushCallback callback) { callbacks_[kind] = std::move(callback); }

  void Close() {
    if (Forked()) return;
    const MutexLock closing(closing_);
    if (closed_) return;
    closed_ = true;
    auto outcome = std::make_shared<Outcome>();
    asio::post(loop_->executor(),
               [this, outcome] { scope_->Spawn("close", CloseOnLoop(this, outcome)); });
    static_cast<void>(outcome->Await(WaitClock::now() + kCloseLimit * 3, {}));
    loop_->Stop();
  }

 private:
  static Task<void> Store(Task<Status> step, std::shared_ptr<Outcome> outcome) {
    Status status = co_await std::move(step);
    outcome->Finish(std::move(status));
  }

  static Task<void> CloseOnLoop(Impl* self, std::shared_ptr<Outcome> outcome) {
    self->ended_ = true;
    if (self->connection_) co_await self->connection_->Finish(kCloseLimit);
    self->Lose(
        MakeError(ErrorCode::kConnection, "the connection to " + self->peer_ + " was closed here"));
    self->scope_->Cancel();
    outcome->Finish({});
  }

  void Post(Message message) {
    asio::post(loop_->executor(), [this, message = std::move(message)] {
      if (connection_) static_cast<void>(connection_->Send(message));  // Receive reports its end
    });
  }

  // The rest runs on the loop.
  void Use(std::shared_ptr<Connection> connection) {
    connection_ = std::move(connection);
    guarded_fd_ = connection_->native_fd();
    ForkRegistry::Add(guarded_fd_);
  }

  void SendUnsent() {
    for (const RequestTable::Outgoing& each : inbox_.TakeUnsent()) {
      const Status sent = connection_->Send(*each.message);
      if (!sent.ok() && ErrorCodeOf(sent) != ErrorCode::kConnection) inbox_.Answer(each.id, sent);
    }
  }

  static Task<void> ReceiveLoop(Impl* self) {
    for (;;) {
      const std::shared_ptr<Connection> connection = self->connection_;
      for (;;) {
        StatusOr<Message> message = co_await connection->Receive();
        if (!message.ok()) {
          if (self->final_.ok()) self->final_ = message.status();
          break;
        }
        self->Handle(*std::move(message));
      }
      const Status why = std::exchange(self->final_, Status());
      if (!self->return_options_ || self->ended_) co_return self->Lose(why);
      self->GoAway(why);
      net::OpenOptions options = *self->return_options_;
      auto opened =
          co_await Redial(std::move(options), why, self->return_limit_, async::RealClock::Shared());
      if (!opened.ok()) co_return self->Lose(opened.status());
      self->ComeBack(*std::move(opened));
    }
  }

  /// The peer is gone, perhaps for a while: what must not be repeated ends here.
  void GoAway(const Status& why) {
    ForkRegistry::Remove(std::exchange(guarded_fd_, -1));
    connection_->Close(why);
    connection_.reset();
    inbox_.Lost(why, peer_);
  }

  void ComeBack(net::OpenedSession opened) {
    if (opened.joined.credentials)
      return_options_->credentials = std::move(opened.joined.credentials);
    Use(std::move(opened.connection));
    inbox_.Back(std::move(opened.joined.welcome));
    SendUnsent();
  }

  void Handle(Message message) {
    if (const auto* goodbye = wire::GetIf<wire::Goodbye>(&message.body)) {
      ended_ = true;
      final_ = MakeError(ErrorCode::kConnection, peer_ + " said goodbye: " + goodbye->reason);
      return;
    }
    if (message.reply_to != 0) {
      const std::uint64_t id = message.reply_to;
      if (const auto* error = wire::GetIf<wire::ErrorReply>(&message.body)) {
        const ErrorCode code =
            error->code == 0 ? ErrorCode::kInternal : static_cast<ErrorCode>(error->code);
        return inbox_.Answer(id, MakeError(code, error->text));
      }
      return inbox_.Answer(id, std::move(message));
    }
    const auto callback = callbacks_.find(message.body.index());
    if (callback != callbacks_.end()) return callback->second(message);
    if (inbox_.AddPush(std::move(message))) return;
    Status slow =
        MakeError(ErrorCode::kConnection,
                  "the connection to " + peer_ +
                      " was closed: 64 MiB of its messages were not read by this program");
    asio::post(loop_->executor(), [this, slow] {
      ended_ = true;
      if (connection_) connection_->Close(slow);
    });
  }

  void Lose(const Status& why) {
    if (guarded_fd_ >= 0) ForkRegistry::Remove(std::exchange(guarded_fd_, -1));
    if (connection_) connection_->Close(why);
    inbox_.End(MakeError(ErrorCode::kConnection, MessageOf(why)));
  }

  const std::uint32_t generation_;
  Mutex closing_;
  bool closed_ ABSL_GUARDED_BY(closing_) = false;
  std::unique_ptr<async::LoopThread> loop_;
  std::unique_ptr<async::Scope> scope_;
  ClientInbox inbox_;
  // Used on the loop; callbacks_, joined_ and peer_ do not change once Connect or Adopt has
  // returned.
  std::shared_ptr<Connection> connection_;
  std::map<std::size_t, PushCallback> callbacks_;
  int guarded_fd_ = -1;
  std::optional<net::OpenOptions> return_options_;
  Duration return_limit_{};
  bool ended_ = false;  // the peer, or this side, wants no other connection
  Status final_;        // why the present connection is about to end
  net::Joined joined_;
  std::string peer_;
};

ControlClient::ControlClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ControlClient::~ControlClient() {
  // In a forked child neither the thread nor a lock can be relied on: all of it is left alone.
  if (impl_->Forked()) (void)impl_.release();
}

StatusOr<std::shared_ptr<ControlClient>> ControlClient::Connect(net::OpenOptions options,
                                                                const PollHook& poll,
                                                                Duration return_limit) {
  auto impl = std::make_unique<Impl>();
  TROUPE_TRY(impl->OnLoopDo(impl->Open(std::move(options), return_limit), poll));
  return std::shared_ptr<ControlClient>(new ControlClient(std::move(impl)));
}

StatusOr<std::shared_ptr<ControlClient>> ControlClient::Adopt(UniqueFd fd, std::string peer,
                                                              PushCallbacks callbacks) {
  auto impl = std::make_unique<Impl>();
  for (auto& [kind, callback] : callbacks) {
    const std::optional<std::size_t> index = KindNamed(kind);
    if (!index) return MakeError(ErrorCode::kInvalid, "no control message is called " + kind);
    impl->OnPush(*index, std::move(callback));
  }
  TROUPE_TRY(impl->OnLoopDo(impl->Take(std::move(fd), std::move(peer)), {}));
  return std::shared_ptr<ControlClient>(new ControlClient(std::move(impl)));
}

StatusOr<Message> ControlClient::Request(Message message, std::optional<Duration> limit,
                                         const PollHook& poll) {
  return impl_->Request(std::move(message), limit, poll);
}
StatusOr<bool> ControlClient::Ask(Message message) { return impl_->Ask(std::move(message)); }
Status ControlClient::Send(Message message) { return impl_->Send(std::move(message)); }
StatusOr<std::optional<Push>> ControlClient::NextPush(std::optional<Duration> limit,
                                                      const PollHook& poll) {
  return impl_->NextPush(limit, poll);
}
const net::Joined& ControlClient::joined() const { return impl_->joined(); }
const std::string& ControlClient::peer() const { return impl_->peer(); }
Status ControlClient::status() const { return impl_->status(); }
void ControlClient::Close() { impl_->Close(); }

}  // namespace troupe::client
