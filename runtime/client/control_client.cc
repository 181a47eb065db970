#include "runtime/client/control_client.h"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <variant>

#include "runtime/async/deadline.h"
#include "runtime/async/loop_thread.h"
#include "runtime/async/real_clock.h"
#include "runtime/async/scope.h"
#include "runtime/client/fork_registry.h"

namespace troupe::client {
namespace {

namespace asio = async::asio;
using async::Task;
using net::Connection;
using wire::Message;
using WaitClock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr Duration kCloseLimit = 500ms;
// Besides its bytes a queued push costs this much, so that empty ones are bounded too.
constexpr std::size_t kPushOverhead = 256;

const Clock& WallClock() {
  static const async::RealClock clock;
  return clock;
}

/// One wait of one thread: what it waits for is guarded by the client's mutex.
struct Waiter {
  std::condition_variable wake;
};

std::optional<std::size_t> KindNamed(std::string_view name) {
  const auto* end = std::end(wire::kBodyNames);
  const auto* it = std::find(std::begin(wire::kBodyNames), end, name);
  if (it == end) return std::nullopt;
  return static_cast<std::size_t>(it - std::begin(wire::kBodyNames));
}

}  // namespace

class ControlClient::Impl {
 public:
  Impl() : generation_(ForkRegistry::Generation()), loop_(std::make_unique<async::LoopThread>("troupe-control")),
           scope_(std::make_unique<async::Scope>(loop_->executor(), "control client")) {}

  ~Impl() { Close(); }

  bool Forked() const { return generation_ != ForkRegistry::Generation(); }
  const net::Joined& joined() const { return joined_; }
  const std::string& peer() const { return peer_; }

  Status status() const {
    if (Forked()) return ForkedError();
    const std::lock_guard lock(mutex_);
    return lost_;
  }

  /// Runs `step` on the loop and waits for its status.
  Status OnLoopDo(Task<Status> step, const PollHook& poll) {
    auto outcome = std::make_shared<Outcome>();
    asio::post(loop_->executor(), [this, outcome, task = std::make_shared<Task<Status>>(std::move(step))] {
      scope_->Spawn("connect", Store(std::move(*task), this, outcome));
    });
    std::unique_lock lock(mutex_);
    TROUPE_TRY(Await(lock, outcome->waiter, std::nullopt, poll, [&] { return outcome->done; }));
    return outcome->status;
  }

  Task<Status> Open(net::OpenOptions options) {
    TROUPE_CO_ASSIGN(net::OpenedSession opened, co_await net::OpenSession(std::move(options), WallClock()));
    joined_ = std::move(opened.joined);
    Use(std::move(opened.connection));
    co_return Status();
  }

  Task<Status> Take(UniqueFd fd, std::string peer) {
    const async::Executor executor = loop_->executor();
    TROUPE_CO_ASSIGN(auto connection, net::AdoptUnixSocket(executor, std::move(fd), std::move(peer)));
    Use(std::move(connection));
    co_return Status();
  }

  StatusOr<Message> Request(Message message, std::optional<Duration> limit, const PollHook& poll) {
    if (Forked()) return ForkedError();
    if (loop_->OnLoop()) return MakeError(ErrorCode::kInternal, "a push callback must not wait for an answer");
    const std::string kind(wire::NameOf(message.body));
    auto pending = std::make_shared<Pending>();
    const std::uint64_t id = next_id_.fetch_add(1, std::memory_order_relaxed);
    message.id = id;
    std::unique_lock lock(mutex_);
    if (!lost_.ok()) return lost_;
    pending_[id] = pending;
    lock.unlock();
    Post(std::move(message));
    lock.lock();
    Status waited = Await(lock, pending->waiter, limit, poll, [&] { return pending->answer.has_value(); });
    pending_.erase(id);
    if (!waited.ok() && ErrorCodeOf(waited) == ErrorCode::kTimeout && limit) {
      return async::TimeoutError(*limit, "the answer of " + peer_ + " to " + kind);
    }
    if (!waited.ok()) return waited;
    return *std::move(pending->answer);
  }

  Status Send(Message message) {
    TROUPE_TRY(status());
    Post(std::move(message));
    return {};
  }

  StatusOr<std::optional<Message>> NextPush(std::optional<Duration> limit, const PollHook& poll) {
    if (Forked()) return ForkedError();
    std::unique_lock lock(mutex_);
    Status waited = Await(lock, push_waiter_, limit, poll, [&] { return !pushes_.empty() || !lost_.ok(); });
    if (!pushes_.empty()) {
      std::optional<Message> next = std::move(pushes_.front());
      pushes_.pop_front();
      push_bytes_ -= Weight(*next);
      return next;
    }
    if (waited.ok()) return lost_;
    if (ErrorCodeOf(waited) == ErrorCode::kTimeout) return std::optional<Message>();
    return waited;
  }

  void OnPush(std::size_t kind, PushCallback callback) {
    asio::post(loop_->executor(), [this, kind, callback = std::move(callback)]() mutable {
      std::deque<Message> ready;
      {
        const std::lock_guard lock(mutex_);
        std::deque<Message> others;
        for (Message& push : pushes_) (push.body.index() == kind ? ready : others).push_back(std::move(push));
        pushes_.swap(others);
        for (const Message& push : ready) push_bytes_ -= Weight(push);
      }
      for (const Message& push : ready) callback(push);
      callbacks_[kind] = std::move(callback);
    });
  }

  void Close() {
    if (Forked()) return;
    const std::lock_guard closing(closing_);
    if (closed_) return;
    closed_ = true;
    auto outcome = std::make_shared<Outcome>();
    asio::post(loop_->executor(), [this, outcome] { scope_->Spawn("close", CloseOnLoop(this, outcome)); });
    {
      std::unique_lock lock(mutex_);
      outcome->waiter.wake.wait_for(lock, kCloseLimit * 3, [&] { return outcome->done; });
    }
    loop_->Stop();
  }

 private:
  struct Pending {
    Waiter waiter;
    std::optional<StatusOr<Message>> answer;
  };
  struct Outcome {
    Waiter waiter;
    bool done = false;
    Status status;
  };

  static Status ForkedError() {
    return MakeError(ErrorCode::kConnection,
                     "this connection belongs to the parent process, not to this forked child\n"
                     "  connect anew in this process");
  }
  static std::size_t Weight(const Message& message) { return message.attachment.size() + kPushOverhead; }

  static Task<void> Store(Task<Status> step, Impl* self, std::shared_ptr<Outcome> outcome) {
    Status status = co_await std::move(step);
    const std::lock_guard lock(self->mutex_);
    outcome->status = std::move(status);
    outcome->done = true;
    outcome->waiter.wake.notify_all();
  }

  static Task<void> CloseOnLoop(Impl* self, std::shared_ptr<Outcome> outcome) {
    if (self->connection_) co_await self->connection_->Finish(kCloseLimit);
    self->Lose(MakeError(ErrorCode::kConnection, "the connection to " + self->peer_ + " was closed here"));
    self->scope_->Cancel();
    const std::lock_guard lock(self->mutex_);
    outcome->done = true;
    outcome->waiter.wake.notify_all();
  }

  /// Waits until `done()`, the limit (kTimeout) or an error of `poll`; `lock` holds the mutex.
  template <class Done>
  Status Await(std::unique_lock<std::mutex>& lock, Waiter& waiter, std::optional<Duration> limit,
               const PollHook& poll, Done done) {
    const WaitClock::time_point end = limit ? WaitClock::now() + *limit : WaitClock::time_point::max();
    while (!done()) {
      const WaitClock::time_point now = WaitClock::now();
      if (now >= end) return MakeError(ErrorCode::kTimeout, "timed out");
      if (!poll && !limit) {
        waiter.wake.wait(lock);
        continue;
      }
      waiter.wake.wait_until(lock, poll ? std::min(end, now + kPollSlice) : end);
      if (!poll || done()) continue;
      lock.unlock();
      Status polled = poll();
      lock.lock();
      if (!polled.ok()) return polled;
    }
    return {};
  }

  void Post(Message message) {
    asio::post(loop_->executor(), [this, message = std::move(message)] {
      if (!connection_) return;
      const Status sent = connection_->Send(message);
      if (!sent.ok() && message.id != 0) Answer(message.id, sent);
    });
  }

  // The rest runs on the loop.
  void Use(std::shared_ptr<Connection> connection) {
    connection_ = std::move(connection);
    peer_ = connection_->peer().address;
    guarded_fd_ = connection_->native_fd();
    ForkRegistry::Add(guarded_fd_);
    scope_->Spawn("receive", ReceiveLoop(this, connection_));
  }

  static Task<void> ReceiveLoop(Impl* self, std::shared_ptr<Connection> connection) {
    for (;;) {
      StatusOr<Message> message = co_await connection->Receive();
      if (!message.ok()) {
        self->Lose(message.status());
        co_return;
      }
      self->Handle(*std::move(message));
    }
  }

  void Handle(Message message) {
    if (message.reply_to != 0) {
      const std::uint64_t id = message.reply_to;
      if (const auto* error = std::get_if<wire::ErrorReply>(&message.body)) {
        const ErrorCode code = error->code == 0 ? ErrorCode::kInternal : static_cast<ErrorCode>(error->code);
        return Answer(id, MakeError(code, error->text));
      }
      return Answer(id, std::move(message));
    }
    const auto callback = callbacks_.find(message.body.index());
    if (callback != callbacks_.end()) return callback->second(message);
    const std::lock_guard lock(mutex_);
    push_bytes_ += Weight(message);
    pushes_.push_back(std::move(message));
    push_waiter_.wake.notify_one();
    if (push_bytes_ <= kPushBytesMax) return;
    Status slow = MakeError(ErrorCode::kConnection, "the connection to " + peer_ +
                                                        " was closed: 64 MiB of its messages were not read by this program");
    asio::post(loop_->executor(), [this, slow] { connection_->Close(slow); });
  }

  void Answer(std::uint64_t id, StatusOr<Message> answer) {
    const std::lock_guard lock(mutex_);
    const auto it = pending_.find(id);
    if (it == pending_.end()) return;  // its caller has given up
    it->second->answer.emplace(std::move(answer));
    it->second->waiter.wake.notify_all();
  }

  void Lose(const Status& why) {
    if (guarded_fd_ >= 0) ForkRegistry::Remove(std::exchange(guarded_fd_, -1));
    if (connection_) connection_->Close(why);
    const std::lock_guard lock(mutex_);
    if (!lost_.ok()) return;
    lost_ = MakeError(ErrorCode::kConnection, MessageOf(why));
    for (auto& [id, pending] : pending_) {
      if (!pending->answer) pending->answer.emplace(lost_);
      pending->waiter.wake.notify_all();
    }
    push_waiter_.wake.notify_all();
  }

  const std::uint32_t generation_;
  std::mutex closing_;
  bool closed_ = false;
  std::unique_ptr<async::LoopThread> loop_;
  std::unique_ptr<async::Scope> scope_;
  // Of the loop; joined_ and peer_ do not change once Connect or Adopt has returned.
  std::shared_ptr<Connection> connection_;
  std::map<std::size_t, PushCallback> callbacks_;
  int guarded_fd_ = -1;
  net::Joined joined_;
  std::string peer_;

  std::atomic<std::uint64_t> next_id_{2};  // 1 was the Hello's
  mutable std::mutex mutex_;               // guards what follows
  Status lost_;
  std::map<std::uint64_t, std::shared_ptr<Pending>> pending_;
  std::deque<Message> pushes_;
  std::size_t push_bytes_ = 0;
  Waiter push_waiter_;
};

ControlClient::ControlClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ControlClient::~ControlClient() {
  // In a forked child neither the thread nor a lock can be relied on: all of it is left alone.
  if (impl_->Forked()) (void)impl_.release();
}

StatusOr<std::shared_ptr<ControlClient>> ControlClient::Connect(net::OpenOptions options, const PollHook& poll) {
  auto impl = std::make_unique<Impl>();
  TROUPE_TRY(impl->OnLoopDo(impl->Open(std::move(options)), poll));
  return std::shared_ptr<ControlClient>(new ControlClient(std::move(impl)));
}

StatusOr<std::shared_ptr<ControlClient>> ControlClient::Adopt(UniqueFd fd, std::string peer) {
  auto impl = std::make_unique<Impl>();
  TROUPE_TRY(impl->OnLoopDo(impl->Take(std::move(fd), std::move(peer)), {}));
  return std::shared_ptr<ControlClient>(new ControlClient(std::move(impl)));
}

StatusOr<Message> ControlClient::Request(Message message, std::optional<Duration> limit, const PollHook& poll) {
  return impl_->Request(std::move(message), limit, poll);
}
Status ControlClient::Send(Message message) { return impl_->Send(std::move(message)); }
StatusOr<std::optional<Message>> ControlClient::NextPush(std::optional<Duration> limit, const PollHook& poll) {
  return impl_->NextPush(limit, poll);
}
Status ControlClient::OnPush(std::string_view kind, PushCallback callback) {
  const std::optional<std::size_t> index = KindNamed(kind);
  if (!index) return MakeError(ErrorCode::kInvalid, "no control message is called " + std::string(kind));
  TROUPE_TRY(impl_->status());
  impl_->OnPush(*index, std::move(callback));
  return {};
}
const net::Joined& ControlClient::joined() const { return impl_->joined(); }
const std::string& ControlClient::peer() const { return impl_->peer(); }
Status ControlClient::status() const { return impl_->status(); }
void ControlClient::Close() { impl_->Close(); }

}  // namespace troupe::client
