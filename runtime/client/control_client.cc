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
#include <vector>

#include "runtime/async/deadline.h"
#include "runtime/async/loop_thread.h"
#include "runtime/async/os_random.h"
#include "runtime/async/real_clock.h"
#include "runtime/async/scope.h"
#include "runtime/client/fork_registry.h"
#include "runtime/client/redial.h"
#include "runtime/wire/repeat.h"

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

  Task<Status> Open(net::OpenOptions options, Duration return_limit) {
    net::OpenOptions first = options;
    TROUPE_CO_ASSIGN(net::OpenedSession opened, co_await net::OpenSession(std::move(first), async::RealClock::Shared()));
    joined_ = std::move(opened.joined);
    peer_ = opened.connection->peer().address;
    return_limit_ = return_limit;
    if (return_limit > Duration::zero()) return_options_ = OptionsToReturn(options, joined_);
    Use(std::move(opened.connection));
    scope_->Spawn("receive", ReceiveLoop(this));
    co_return Status();
  }

  Task<Status> Take(UniqueFd fd, std::string peer) {
    const async::Executor executor = loop_->executor();
    TROUPE_CO_ASSIGN(auto connection, net::AdoptUnixSocket(executor, std::move(fd), std::move(peer)));
    peer_ = connection->peer().address;
    Use(std::move(connection));
    scope_->Spawn("receive", ReceiveLoop(this));
    co_return Status();
  }

  StatusOr<Message> Request(Message message, std::optional<Duration> limit, const PollHook& poll) {
    if (Forked()) return ForkedError();
    if (loop_->OnLoop()) return MakeError(ErrorCode::kInternal, "a push callback must not wait for an answer");
    const std::string kind(wire::NameOf(message.body));
    auto pending = std::make_shared<Pending>();
    const std::uint64_t id = next_id_.fetch_add(1, std::memory_order_relaxed);
    message.id = id;
    NameIt(message);
    pending->request = std::move(message);
    std::unique_lock lock(mutex_);
    if (!lost_.ok()) return lost_;
    pending_[id] = pending;
    SendLocked(pending);
    Status waited = Await(lock, pending->waiter, limit, poll, [&] { return pending->answer.has_value(); },
                          /*only_while_here=*/true);
    pending_.erase(id);
    if (!waited.ok() && ErrorCodeOf(waited) == ErrorCode::kTimeout && limit) {
      return async::TimeoutError(*limit, "the answer of " + peer_ + " to " + kind);
    }
    if (!waited.ok()) return waited;
    return *std::move(pending->answer);
  }

  StatusOr<bool> Ask(Message message) {
    if (Forked()) return ForkedError();
    auto pending = std::make_shared<Pending>();
    pending->nobody_waits = true;
    const std::uint64_t id = next_id_.fetch_add(1, std::memory_order_relaxed);
    message.id = id;
    NameIt(message);
    pending->request = std::move(message);
    const std::lock_guard lock(mutex_);
    if (!lost_.ok()) return lost_;
    if (asked_ == kAskedMax) return false;
    ++asked_;
    SendLocked(pending);
    pending_[id] = std::move(pending);
    return true;
  }

  Status Send(Message message) {
    TROUPE_TRY(status());
    Post(std::move(message));
    return {};
  }

  StatusOr<std::optional<Push>> NextPush(std::optional<Duration> limit, const PollHook& poll) {
    if (Forked()) return ForkedError();
    std::unique_lock lock(mutex_);
    Status waited = Await(lock, push_waiter_, limit, poll, [&] { return !pushes_.empty() || !lost_.ok(); });
    if (!pushes_.empty()) {
      std::optional<Push> next = std::move(pushes_.front());
      pushes_.pop_front();
      push_bytes_ -= Weight(*next);
      return next;
    }
    if (waited.ok()) return lost_;
    if (ErrorCodeOf(waited) == ErrorCode::kTimeout) return std::optional<Push>();
    return waited;
  }

  /// Before anything is read.
  void OnPush(std::size_t kind, PushCallback callback) { callbacks_[kind] = std::move(callback); }

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
    bool nobody_waits = false;  // a refusal goes where pushes go
    Message request;          // of the loop once posted
    std::uint64_t sent = 0;   // of the loop: on which connection
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
    self->ended_ = true;
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
               const PollHook& poll, Done done, bool only_while_here = false) {
    const WaitClock::time_point begin = WaitClock::now();
    const WaitClock::duration away_before = Away(begin);
    while (!done()) {
      const WaitClock::time_point now = WaitClock::now();
      const bool counts = limit && !(only_while_here && away_since_);
      WaitClock::time_point end = WaitClock::time_point::max();
      if (counts) end = begin + *limit + (only_while_here ? Away(now) - away_before : WaitClock::duration());
      if (now >= end) return MakeError(ErrorCode::kTimeout, "timed out");
      if (!poll && !counts) {
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
      if (connection_) static_cast<void>(connection_->Send(message));  // its end is told by Receive
    });
  }

  static void NameIt(Message& message) {
    async::OsRandom random;
    wire::NameRequest(message.body, random);
  }

  /// Time without a connection up to `now`; under the mutex.
  WaitClock::duration Away(WaitClock::time_point now) const {
    return away_ + (away_since_ ? now - *away_since_ : WaitClock::duration());
  }

  // The rest runs on the loop.
  void Use(std::shared_ptr<Connection> connection) {
    connection_ = std::move(connection);
    ++connections_;
    guarded_fd_ = connection_->native_fd();
    ForkRegistry::Add(guarded_fd_);
  }

  /// What many calls leave at once is one turn of the loop.
  void SendLocked(std::shared_ptr<Pending> pending) {
    to_send_.push_back(std::move(pending));
    if (to_send_.size() > 1) return;
    asio::post(loop_->executor(), [this] {
      std::vector<std::shared_ptr<Pending>> requests;
      {
        const std::lock_guard lock(mutex_);
        requests.swap(to_send_);
      }
      for (const auto& pending : requests) SendRequest(*pending);
    });
  }

  void SendRequest(Pending& pending) {
    if (!connection_ || pending.sent == connections_) return;
    pending.sent = connections_;
    const Status sent = connection_->Send(pending.request);
    if (!sent.ok() && ErrorCodeOf(sent) != ErrorCode::kConnection) Answer(pending.request.id, sent);
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
      auto opened = co_await Redial(std::move(options), why, self->return_limit_, async::RealClock::Shared());
      if (!opened.ok()) co_return self->Lose(opened.status());
      self->ComeBack(*std::move(opened));
    }
  }

  /// The peer is gone, perhaps for a while: what must not be repeated ends here.
  void GoAway(const Status& why) {
    ForkRegistry::Remove(std::exchange(guarded_fd_, -1));
    connection_->Close(why);
    connection_.reset();
    wire::ErrorReply lost;
    lost.code = static_cast<std::uint16_t>(ErrorCode::kConnection);
    lost.text = MessageOf(why);
    const std::lock_guard lock(mutex_);
    away_since_ = WaitClock::now();
    QueueLocked(std::move(lost));
    std::vector<std::uint64_t> unknown;
    for (const auto& [id, pending] : pending_) {
      if (pending->sent != 0 && !pending->answer && !wire::Repeatable(pending->request.body)) unknown.push_back(id);
    }
    for (const std::uint64_t id : unknown) {
      const std::string what(wire::NameOf(pending_.at(id)->request.body));
      AnswerLocked(id, MakeError(ErrorCode::kUnknownOutcome, "the connection to " + peer_ + " was lost before " + what +
                                                                 " was answered: whether it took effect is not known"));
    }
  }

  void ComeBack(net::OpenedSession opened) {
    if (opened.joined.credentials) return_options_->credentials = std::move(opened.joined.credentials);
    Use(std::move(opened.connection));
    std::vector<std::shared_ptr<Pending>> again;
    {
      const std::lock_guard lock(mutex_);
      away_ = Away(WaitClock::now());
      away_since_.reset();
      for (auto& [id, pending] : pending_) {
        if (!pending->answer) again.push_back(pending);
        pending->waiter.wake.notify_all();
      }
      QueueLocked(std::move(opened.joined.welcome));
    }
    for (const auto& pending : again) SendRequest(*pending);
  }

  void QueueLocked(wire::Body body, std::shared_ptr<const Message> asked = nullptr) {
    Message message;
    message.body = std::move(body);
    QueueLocked(Push{std::move(message), std::move(asked)});
  }
  void QueueLocked(Push push) {
    push_bytes_ += Weight(push);
    pushes_.push_back(std::move(push));
    push_waiter_.wake.notify_one();
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
        const ErrorCode code = error->code == 0 ? ErrorCode::kInternal : static_cast<ErrorCode>(error->code);
        return Answer(id, MakeError(code, error->text));
      }
      return Answer(id, std::move(message));
    }
    const auto callback = callbacks_.find(message.body.index());
    if (callback != callbacks_.end()) return callback->second(message);
    const std::lock_guard lock(mutex_);
    QueueLocked(Push{std::move(message), nullptr});
    if (push_bytes_ <= kPushBytesMax) return;
    Status slow = MakeError(ErrorCode::kConnection, "the connection to " + peer_ +
                                                        " was closed: 64 MiB of its messages were not read by this program");
    asio::post(loop_->executor(), [this, slow] {
      ended_ = true;
      if (connection_) connection_->Close(slow);
    });
  }

  void Answer(std::uint64_t id, StatusOr<Message> answer) {
    const std::lock_guard lock(mutex_);
    AnswerLocked(id, std::move(answer));
  }
  void AnswerLocked(std::uint64_t id, StatusOr<Message> answer) {
    const auto it = pending_.find(id);
    if (it == pending_.end()) return;  // its caller has given up
    const std::shared_ptr<Pending> pending = it->second;
    if (!pending->nobody_waits) {
      pending->answer.emplace(std::move(answer));
      pending->waiter.wake.notify_all();
      return;
    }
    pending_.erase(it);
    --asked_;
    if (answer.ok()) return;
    wire::ErrorReply error;
    error.code = static_cast<std::uint16_t>(ErrorCodeOf(answer.status()));
    error.text = MessageOf(answer.status());
    QueueLocked(std::move(error), {pending, &pending->request});
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
  // Of the loop; callbacks_, joined_ and peer_ do not change once Connect or Adopt has returned.
  std::shared_ptr<Connection> connection_;
  std::map<std::size_t, PushCallback> callbacks_;
  int guarded_fd_ = -1;
  std::uint64_t connections_ = 0;  // how many there have been
  std::optional<net::OpenOptions> return_options_;
  Duration return_limit_{};
  bool ended_ = false;  // the peer, or this side, wants no other connection
  Status final_;        // why the present connection is about to end
  net::Joined joined_;
  std::string peer_;

  std::atomic<std::uint64_t> next_id_{2};  // 1 was the Hello's
  mutable std::mutex mutex_;               // guards what follows
  Status lost_;
  std::optional<WaitClock::time_point> away_since_;
  WaitClock::duration away_{};  // in all, before that
  std::map<std::uint64_t, std::shared_ptr<Pending>> pending_;
  std::size_t asked_ = 0;  // of them, those nobody waits for
  std::vector<std::shared_ptr<Pending>> to_send_;
  std::deque<Push> pushes_;
  std::size_t push_bytes_ = 0;
  Waiter push_waiter_;
};

ControlClient::ControlClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ControlClient::~ControlClient() {
  // In a forked child neither the thread nor a lock can be relied on: all of it is left alone.
  if (impl_->Forked()) (void)impl_.release();
}

StatusOr<std::shared_ptr<ControlClient>> ControlClient::Connect(net::OpenOptions options, const PollHook& poll,
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

StatusOr<Message> ControlClient::Request(Message message, std::optional<Duration> limit, const PollHook& poll) {
  return impl_->Request(std::move(message), limit, poll);
}
StatusOr<bool> ControlClient::Ask(Message message) { return impl_->Ask(std::move(message)); }
Status ControlClient::Send(Message message) { return impl_->Send(std::move(message)); }
StatusOr<std::optional<Push>> ControlClient::NextPush(std::optional<Duration> limit, const PollHook& poll) {
  return impl_->NextPush(limit, poll);
}
const net::Joined& ControlClient::joined() const { return impl_->joined(); }
const std::string& ControlClient::peer() const { return impl_->peer(); }
Status ControlClient::status() const { return impl_->status(); }
void ControlClient::Close() { impl_->Close(); }

}  // namespace troupe::client
