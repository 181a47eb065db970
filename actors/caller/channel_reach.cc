// How a channel comes to its connection, and to another one when that is lost.
#include <absl/strings/str_format.h>

#include <functional>
#include <utility>

#include "actors/net/call_dial.h"
#include "actors/caller/channel.h"
#include "actors/net/now.h"
#include "actors/objects/object_store.h"
#include "actors/caller/reactor.h"
#include "actors/net/tls_loop.h"
#include "runtime/async/deadline.h"
#include "runtime/async/os_random.h"

namespace troupe::actors {
namespace {

SessionId NewSessionId() {
  async::OsRandom random;
  return SessionId::Random(random);
}

}  // namespace

/// On the background thread: another connection to an actor of this host.
class Channel::Redial : public Completion {
 public:
  explicit Redial(std::weak_ptr<Channel> channel) : channel_(std::move(channel)) {}
  void Run() override {
    const std::shared_ptr<Channel> channel = channel_.lock();
    if (channel != nullptr) channel->ReachHere();
  }

 private:
  const std::weak_ptr<Channel> channel_;
};

Channel::Channel(CallReactor& reactor, ChannelOptions options, Way way)
    : reactor_(reactor),
      options_(std::move(options)),
      id_(reactor.NextChannelId()),
      way_(std::move(way)),
      fates_(options_.description),
      items_(id_, options_.observer),
      session_(/*waits=*/!way_.here()),
      redial_(options_.grace, /*once=*/way_.here()) {}

StatusOr<std::shared_ptr<Channel>> Channel::Connect(CallReactor& reactor, const std::string& path,
                                                    ChannelOptions options) {
  TROUPE_ASSIGN(UnixStream stream, UnixStream::Connect(path));
  Way way;
  way.unix_path = path;
  std::shared_ptr<Channel> channel(new Channel(reactor, std::move(options), std::move(way)));
  {
    const std::lock_guard lock(channel->mutex_);
    channel->BeginLocked(CallStream(std::move(stream)));
  }
  TROUPE_TRY(reactor.Add(channel));
  return channel;
}

StatusOr<std::shared_ptr<Channel>> Channel::Dial(CallReactor& reactor, RemoteActor target,
                                                 IdentitySource identity, ChannelOptions options) {
  Way way;
  way.target = std::move(target);
  way.identity = std::move(identity);
  std::shared_ptr<Channel> channel(new Channel(reactor, std::move(options), std::move(way)));
  channel->place_.store(Place::kRemote, std::memory_order_relaxed);
  TROUPE_TRY(reactor.Add(channel));
  RedialPolicy::Step step;
  step.limit = channel->options_.grace;
  TlsLoop::Current().Spawn("dial", Reach(channel, step));
  return channel;
}

StatusOr<std::shared_ptr<Channel>> Channel::Later(CallReactor& reactor, ChannelOptions options) {
  std::shared_ptr<Channel> channel(new Channel(reactor, std::move(options), Way()));
  channel->aimless_ = true;
  TROUPE_TRY(reactor.Add(channel));
  return channel;
}

Status Channel::Aim(const std::string& path) {
  StatusOr<UnixStream> stream = UnixStream::Connect(path);
  if (!stream.ok()) {
    GiveUp(stream.status());
    return stream.status();
  }
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(aimless_, false)) return absl::OkStatus();  // it ended meanwhile
    way_.unix_path = path;
    session_.Waits(false);
    redial_ = RedialPolicy(options_.grace, /*once=*/true);
  }
  Attach(CallStream(*std::move(stream)));
  return absl::OkStatus();
}

void Channel::AimRemote(RemoteActor target, IdentitySource identity) {
  RedialPolicy::Step step;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(aimless_, false)) return;
    place_.store(Place::kRemote, std::memory_order_relaxed);
    way_.target = std::move(target);
    way_.identity = std::move(identity);
    step.limit = options_.grace;
  }
  TlsLoop::Current().Spawn("dial", Reach(weak_from_this(), step));
}

async::Task<void> Channel::Reach(std::weak_ptr<Channel> weak, RedialPolicy::Step step) {
  if (step.pause > Duration::zero()) co_await async::SleepFor(step.pause);
  std::function<bool()> wanted = [weak] {
    const std::shared_ptr<Channel> channel = weak.lock();
    if (channel == nullptr) return false;
    const std::lock_guard lock(channel->mutex_);
    return channel->fates_.open();
  };
  std::shared_ptr<Channel> channel = weak.lock();
  if (channel == nullptr) co_return;
  RemoteActor target = channel->way_.target;
  IdentitySource identity = channel->way_.identity;
  channel.reset();  // nobody but its users keeps it
  auto dialling =
      DialActor(std::move(target), std::move(identity), step.limit, std::move(wanted));
  StatusOr<CallStream> stream = co_await std::move(dialling);
  channel = weak.lock();
  if (channel == nullptr) co_return;
  if (stream.ok()) {
    channel->Attach(*std::move(stream));
  } else {
    channel->GiveUp(stream.status());
  }
}

void Channel::ReachHere() {
  StatusOr<UnixStream> stream = UnixStream::Connect(way_.unix_path, UnixStream::Wait::kNo);
  if (stream.ok()) return Attach(CallStream(*std::move(stream)));
  SlotList finished;
  {
    std::lock_guard lock(mutex_);
    EndLocked(lost_reason_);  // its process is gone, or going: the verdict says more
    finished.swap(finished_);
  }
  NotifyFinished(finished, false);
}

void Channel::BeginLocked(CallStream stream) {
  stream_ = std::move(stream);
  broken_ = false;
  ProcessId self;
  // Large results are lent to this process by name.
  if (const ObjectStore* objects = ObjectStore::Current()) self = objects->self();
  if (!self.IsNil() && way_.here()) place_.store(Place::kHere, std::memory_order_relaxed);
  session_.Connected(NewSessionId(), self);
  redial_.Connected(Now());
  attached_.store(true, std::memory_order_release);
}

void Channel::Attach(CallStream stream) {
  SlotList finished;
  Status watched;
  {
    std::lock_guard lock(mutex_);
    if (!fates_.open()) return;
    BeginLocked(std::move(stream));
    watched = reactor_.Watch(*this);
    if (watched.ok()) {
      FlushLocked();
      ExpectLocked(session_.greeting());
    }
    finished.swap(finished_);
  }
  NotifyFinished(finished, false);
  if (!watched.ok()) GiveUp(watched);
}

/// The connection is gone. True: another one is being made, on which the session may go on.
bool Channel::LoseLocked(const std::string& reason) {
  if (!fates_.open() || !session_.MayResume()) return false;
  const std::optional<RedialPolicy::Step> step = redial_.Lost(Now());
  if (!step) return false;
  lost_reason_ = reason;
  attached_.store(false);
  reactor_.Unwatch(*this);
  stream_ = CallStream();
  in_.Clear();
  write_armed_ = false;
  session_.Disconnected();
  ExpectLocked(false);
  if (way_.here()) {
    reactor_.Post(std::make_unique<Redial>(weak_from_this()));
  } else {
    TlsLoop::Current().Spawn("dial again", Reach(weak_from_this(), *step));
  }
  return true;
}

void Channel::GiveUp(const Status& why) {
  SlotList finished;
  {
    std::lock_guard lock(mutex_);
    if (!fates_.open()) return;
    const std::string text = MessageOf(why);
    EndLocked(lost_reason_.empty() ? text : absl::StrFormat("%s; then %s", lost_reason_, text));
    FailLocked(lost_reason_.empty() ? text : fates_.end_reason());
    finished.swap(finished_);
  }
  NotifyFinished(finished, false);
  TellObserver(false);
}

/// Somebody must read the welcome, though nobody waits for an answer.
void Channel::ExpectLocked(bool expect) {
  if (expecting_ == expect) return;
  expecting_ = expect;
  reactor_.Expect(expect);
}

}  // namespace troupe::actors
