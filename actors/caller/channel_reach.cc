// How a channel comes to its connection, and to another one when that is lost.
#include <absl/strings/str_format.h>

#include <optional>
#include <utility>

#include "actors/caller/channel.h"
#include "actors/caller/reactor.h"
#include "actors/net/now.h"
#include "actors/net/unix_stream.h"
#include "actors/objects/object_store.h"
#include "runtime/async/os_random.h"

namespace troupe::actors {
namespace {

SessionId NewSessionId() {
  async::OsRandom random;
  return SessionId::Random(random);
}

}  // namespace

Channel::Channel(CallReactor& reactor, ChannelOptions options)
    : reactor_(reactor),
      options_(std::move(options)),
      id_(reactor.NextChannelId()),
      route_(options_.grace),
      fates_(options_.description),
      items_(id_, options_.observer),
      session_(/*waits=*/true) {}

StatusOr<std::shared_ptr<Channel>> Channel::Connect(CallReactor& reactor, const std::string& path,
                                                    ChannelOptions options) {
  TROUPE_ASSIGN(UnixStream stream, UnixStream::Connect(path));
  std::shared_ptr<Channel> channel(new Channel(reactor, std::move(options)));
  channel->Begin(path, CallStream(std::move(stream)));
  TROUPE_TRY(reactor.Add(channel));
  return channel;
}

StatusOr<std::shared_ptr<Channel>> Channel::Dial(CallReactor& reactor, RemoteActor target,
                                                 IdentitySource identity, ChannelOptions options) {
  std::shared_ptr<Channel> channel(new Channel(reactor, std::move(options)));
  TROUPE_TRY(reactor.Add(channel));
  channel->AimRemote(std::move(target), std::move(identity));
  return channel;
}

StatusOr<std::shared_ptr<Channel>> Channel::Later(CallReactor& reactor, ChannelOptions options) {
  std::shared_ptr<Channel> channel(new Channel(reactor, std::move(options)));
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
    MutexLock lock(mutex_);
    if (!route_.AimHere(path)) return absl::OkStatus();  // ended meanwhile
    session_.Waits(false);
  }
  Attach(CallStream(*std::move(stream)));
  return absl::OkStatus();
}

void Channel::AimRemote(RemoteActor target, IdentitySource identity) {
  MutexLock lock(mutex_);
  if (!route_.AimRemote(std::move(target), std::move(identity))) return;
  place_.store(Place::kRemote, std::memory_order_relaxed);
  route_.Dial(weak_from_this());
}

bool Channel::WantsConnection() {
  MutexLock lock(mutex_);
  return fates_.open();
}

void Channel::LoseActor() {
  AnswerList finished;
  {
    MutexLock lock(mutex_);
    EndLocked(route_.lost_reason());
    finished.swap(finished_);
  }
  NotifyFinished(finished, false);
}

/// The first connection, to an actor of this host, before the reactor knows the channel.
void Channel::Begin(const std::string& path, CallStream stream) {
  MutexLock lock(mutex_);
  route_.AimHere(path);
  session_.Waits(false);
  BeginLocked(std::move(stream));
}

void Channel::BeginLocked(CallStream stream) {
  ProcessId self;
  // Large results are lent to this process by name.
  if (const ObjectStore* objects = ObjectStore::Current()) self = objects->self();
  if (!self.IsNil() && route_.here()) place_.store(Place::kHere, std::memory_order_relaxed);
  session_.Connected(NewSessionId(), self);
  route_.Connected(Now());
  stream_.Begin(std::move(stream));
}

void Channel::Attach(CallStream stream) {
  AnswerList finished;
  Status watched;
  {
    MutexLock lock(mutex_);
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
  const std::optional<RedialPolicy::Step> step = route_.Lost(Now(), reason);
  if (!step) return false;
  reactor_.Unwatch(*this);
  stream_.Lose();
  reactor_knows_.writes = false;
  session_.Disconnected();
  ExpectLocked(false);
  route_.Redial(weak_from_this(), *step, reactor_);
  return true;
}

void Channel::GiveUp(const Status& why) {
  AnswerList finished;
  {
    MutexLock lock(mutex_);
    if (!fates_.open()) return;
    const std::string text = MessageOf(why);
    const std::string& before = route_.lost_reason();
    EndLocked(before.empty() ? text : absl::StrFormat("%s; then %s", before, text));
    FailLocked(before.empty() ? text : fates_.end_reason());
    finished.swap(finished_);
  }
  NotifyFinished(finished, false);
  TellObserver(false);
}

/// Somebody must read the welcome, though nobody waits for an answer.
void Channel::ExpectLocked(bool expect) {
  if (std::exchange(reactor_knows_.expecting, expect) != expect) reactor_.Expect(expect);
}

}  // namespace troupe::actors
