// The object store's other half: what its table asks for, the links to other processes, its thread.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "actors/objects/object_turn.h"
#include "actors/net/unix_stream.h"
#include "runtime/store/core/control_frame.h"

namespace troupe::actors {
namespace {

constexpr std::uint64_t kLinksListenerId = 1;
constexpr std::uint64_t kLinksWakeId = 2;
constexpr std::size_t kLinksMax = 8192;
constexpr int kTrimEveryMs = 10000;
/// From the loss of a link, or a refused one, until the next is dialled: tells a process that ended from
/// one that lives, and is not a loop where a peer closes every link.
constexpr Duration kDialAgain = std::chrono::milliseconds(5);

const char kGone[] = "its process has ended";

}  // namespace

// ---- what the table asks for -----------------------------------------------------------------------

void ObjectStore::Apply() {
  while (true) {
    const store::Effects effects = table_.TakeEffects();
    for (const store::Effect& effect : effects) ApplyOne(effect);
    CloseSegments();
    FlushAll();
    if (effects.empty() && over_.empty()) return;
    for (const std::uint64_t id : std::exchange(over_, {})) CloseLink(id);
  }
}

void ObjectStore::ApplyOne(const store::Effect& effect) {
  if (const auto* send = std::get_if<store::SendFrame>(&effect)) {
    ObjectLink* link = LinkTo(send->peer);
    if (link == nullptr || !link->up) return;  // it is sent again on the next
    std::string bytes;
    store::AppendFrame(bytes, send->frame, table_.AppliedOf(send->peer));
    link->Append(bytes);
    link->ack_due = false;
    unflushed_.insert(link->id());
  } else if (const auto* ack = std::get_if<store::SendAck>(&effect)) {
    ObjectLink* link = LinkTo(ack->peer);
    if (link == nullptr || !link->up) return;
    link->ack_due = true;
    unflushed_.insert(link->id());
  } else if (const auto* connect = std::get_if<store::Connect>(&effect)) {
    deadline_moved_ = true;
    EnsureLink(connect->peer);
  } else if (const auto* watch = std::get_if<store::Watch>(&effect)) {
    EnsureLink(watch->process);
  } else if (const auto* refuse = std::get_if<store::Refuse>(&effect)) {
    MissAllFrom(refuse->peer, refuse->why);
    dial_again_.erase(refuse->peer);
    if (ObjectLink* link = LinkTo(refuse->peer)) over_.push_back(link->id());
  } else if (const auto* unwatch = std::get_if<store::Unwatch>(&effect)) {
    dial_again_.erase(unwatch->process);
    connections_of_.erase(unwatch->process);
  } else if (const auto* wake = std::get_if<store::Wake>(&effect)) {
    woken_ = true;
    AnswerBorrowed(wake->object);
  } else if (const auto* forgotten = std::get_if<store::Forgotten>(&effect)) {
    pinned_.erase(forgotten->object);
    ForgetRemote(forgotten->object);
    const auto waits = when_forgotten_.find(forgotten->object);
    if (waits == when_forgotten_.end()) return;
    posts_.push_back(std::move(waits->second));
    when_forgotten_.erase(waits);
  } else if (const auto* free = std::get_if<store::FreeSlot>(&effect)) {
    pool_.Free(free->owner, free->slot, free->generation, free->clean);
  } else if (const auto* lost = std::get_if<store::OwnerLost>(&effect)) {
    deadline_moved_ = true;
    pool_.OwnerLost(lost->owner, lost->dead);
    ForgetMaker(lost->owner);
    MissAllFrom(lost->owner, kGone);
  }
  // FreeAtKeeper: the maker is gone, and its memory goes with the last mapping.
}

/// Of segments that the pool closed: views live on, nothing else does.
void ObjectStore::CloseSegments() {
  for (const store::CloseSegment& closed : pool_.TakeClosed()) Retire({self_, closed.segment});
}

void ObjectStore::Retire(const Key& key) {
  mapped_.erase(key);
  const auto known = known_.find(key);
  if (known != known_.end() && known->second.expired()) known_.erase(known);
  for (const auto& [id, link] : links_) {
    if (link->given.erase(key) == 0) continue;
    std::string bytes;
    AppendObjectFrame(bytes, {ObjectWord::kRetire, key.first, {}, key.second, 0});
    link->Append(bytes);
    unflushed_.insert(id);
  }
}

void ObjectStore::ForgetMaker(const ProcessId& maker) {
  std::vector<Key> keys;
  for (auto at = mapped_.lower_bound({maker, 0}); at != mapped_.end() && at->first.first == maker; ++at) {
    keys.push_back(at->first);
  }
  for (const Key& key : keys) Retire(key);
  const auto known = known_.lower_bound({maker, 0});
  for (auto at = known; at != known_.end() && at->first.first == maker;) {
    at = at->second.expired() ? known_.erase(at) : std::next(at);
  }
}

// ---- descriptors -----------------------------------------------------------------------------------

void ObjectStore::Want(const Key& key, const ProcessId& from) {
  if (!wanted_.emplace(key, from).second) return;
  ObjectLink* link = LinkTo(from);
  if (link == nullptr) return EnsureLink(from);
  if (!link->up) return;  // asked once it is
  std::string bytes;
  AppendObjectFrame(bytes, {ObjectWord::kWant, key.first, {}, key.second, 0});
  link->Append(bytes);
  unflushed_.insert(link->id());
}

void ObjectStore::MissAllFrom(const ProcessId& peer, const std::string& why) {
  std::vector<Key> keys;
  for (const auto& [key, from] : wanted_) {
    if (from == peer) keys.push_back(key);
  }
  for (const Key& key : keys) Missing(key, why);
}

void ObjectStore::Give(ObjectLink& link, const ObjectFrame& want) {
  const Key key{want.a, static_cast<std::uint32_t>(want.x)};
  GuardedFd copy;
  std::uint64_t bytes = 0;
  const auto known = known_.find(key);
  const std::shared_ptr<ObjectMapping> mapping = known == known_.end() ? nullptr : known->second.lock();
  if (mapping != nullptr) {
    copy = GuardedFd(::fcntl(mapping->descriptor.get(), F_DUPFD_CLOEXEC, 0));
    bytes = mapping->bytes;
  } else if (key.first == self_) {
    StatusOr<UniqueFd> fd = pool_.DescriptorOf(key.second, &bytes);
    if (fd.ok()) copy = GuardedFd(fd->Release());
  }
  std::string frame;
  if (copy.get() < 0) {
    AppendObjectFrame(frame, {ObjectWord::kGone, key.first, {}, key.second, 0});
    link.Append(frame);
  } else {
    AppendObjectFrame(frame, {ObjectWord::kHere, key.first, {}, key.second, bytes});
    link.AppendWith(frame, std::move(copy));
    link.given.insert(key);
  }
  unflushed_.insert(link.id());
}

// ---- links -----------------------------------------------------------------------------------------

ObjectLink* ObjectStore::LinkTo(const ProcessId& peer) {
  const auto found = link_of_.find(peer);
  if (found == link_of_.end()) return nullptr;
  return links_.at(found->second).get();
}

std::string ObjectStore::HelloTo(const ProcessId& peer, std::uint64_t stamp) const {
  std::string bytes;
  AppendObjectFrame(bytes, {ObjectWord::kHello, self_, peer, table_.AppliedOf(peer), stamp});
  return bytes;
}

void ObjectStore::EnsureLink(const ProcessId& peer) {
  if (peer == self_ || LinkTo(peer) != nullptr) return;
  GuardedFd fd;
  switch (links_.size() < kLinksMax ? ObjectLink::Dial(peer, &fd) : ObjectLink::Dialled::kBusy) {
    case ObjectLink::Dialled::kNobody:
      dial_again_.erase(peer);
      MissAllFrom(peer, kGone);
      table_.Dead(peer, kGone, Now());
      return;
    case ObjectLink::Dialled::kBusy:
      dial_again_[peer] = Now() + kDialAgain;
      deadline_moved_ = true;
      return;
    case ObjectLink::Dialled::kOk:
      break;
  }
  dial_again_.erase(peer);
  const auto stamp = static_cast<std::uint64_t>(Now().time_since_epoch() / std::chrono::nanoseconds(1));
  AddLink(std::move(fd), /*dialled=*/true, peer, stamp);
  ObjectLink* link = LinkTo(peer);
  if (link == nullptr) return;
  link->Append(HelloTo(peer, stamp));
  unflushed_.insert(link->id());
}

void ObjectStore::AddLink(GuardedFd fd, bool dialled, const ProcessId& peer, std::uint64_t stamp) {
  const std::uint64_t id = next_link_++;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
    if (dialled) dial_again_[peer] = Now() + kDialAgain;
    return;
  }
  auto link = std::make_unique<ObjectLink>(std::move(fd), id, dialled);
  link->stamp = stamp;
  if (dialled) {
    link->peer = peer;
    link_of_[peer] = id;
  }
  links_.emplace(id, std::move(link));
}

void ObjectStore::Accept() {
  while (true) {
    GuardedFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.get() < 0) return;
    if (links_.size() >= kLinksMax || !CheckPeerIsSameUser(fd.get()).ok()) continue;
    AddLink(std::move(fd), /*dialled=*/false, ProcessId(), 0);
  }
}

void ObjectStore::FlushAll() {
  for (const std::uint64_t id : std::exchange(unflushed_, {})) {
    const auto found = links_.find(id);
    if (found != links_.end()) FlushLink(*found->second);
  }
}

void ObjectStore::FlushLink(ObjectLink& link) {
  if (std::exchange(link.ack_due, false)) {
    std::string bytes;
    store::AppendAck(bytes, table_.AppliedOf(link.peer));
    link.Append(bytes);
  }
  const ObjectLink::Flushed flushed = link.Flush();
  if (flushed == ObjectLink::Flushed::kOver) over_.push_back(link.id());
  const bool watch = flushed == ObjectLink::Flushed::kLater;
  if (std::exchange(link.watches_writes, watch) == watch) return;
  epoll_event event{};
  event.events = EPOLLIN | (watch ? static_cast<unsigned>(EPOLLOUT) : 0u);
  event.data.u64 = link.id();
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, link.fd(), &event);
}

void ObjectStore::CloseLink(std::uint64_t id) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  const std::unique_ptr<ObjectLink> link = std::move(found->second);
  links_.erase(found);
  const auto current = link_of_.find(link->peer);
  if (link->peer.IsNil() || current == link_of_.end() || current->second != id) return;
  link_of_.erase(current);
  if (link->up) {
    ForgetMaker(link->peer);  // it cannot tell of its segments any more
    table_.Disconnected(link->peer, connections_of_[link->peer], Now());
  }
  const auto known = table_.state().peers.find(link->peer);
  if (known != table_.state().peers.end() && known->second.Reachable() &&
      LinkTo(link->peer) == nullptr) {
    dial_again_[link->peer] = Now() + kDialAgain;
  } else if (known == table_.state().peers.end()) {
    MissAllFrom(link->peer, "the link to its process was lost");
  }
  deadline_moved_ = true;
}

// ---- the thread ------------------------------------------------------------------------------------

int ObjectStore::NextTimeoutMs() {
  const Turn turn(*this);
  std::optional<Instant> next = table_.NextDeadline();
  for (const auto& [peer, when] : dial_again_) {
    if (!next || when < *next) next = when;
  }
  const bool trims = pool_.OverHalf();
  if (!next) return trims ? kTrimEveryMs : -1;
  const std::int64_t left = Millis(*next - Instant(turn.now)) + 1;
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, kTrimEveryMs));
}

void ObjectStore::RunDue(Instant now) {
  const std::optional<Instant> deadline = table_.NextDeadline();
  if (deadline && *deadline <= now) table_.Expire(now);
  std::vector<ProcessId> due;
  for (const auto& [peer, when] : dial_again_) {
    if (when <= now) due.push_back(peer);
  }
  for (const ProcessId& peer : due) {
    dial_again_.erase(peer);
    EnsureLink(peer);
  }
  pool_.Trim(now);
}

void ObjectStore::Run() {
  pthread_setname_np(pthread_self(), "troupe-objects");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kLinksListenerId;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event);
  event.data.u64 = kLinksWakeId;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
  epoll_event events[64];
  while (true) {
    const int count = ::epoll_wait(epoll_.get(), events, 64, NextTimeoutMs());
    if (count < 0 && errno != EINTR) return;
    const Turn turn(*this);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t id = events[i].data.u64;
      if (id == kLinksListenerId) {
        Accept();
      } else if (id == kLinksWakeId) {
        std::uint64_t ignored;
        (void)!::read(wake_.get(), &ignored, sizeof ignored);
      } else if (const auto link = links_.find(id); link != links_.end()) {
        if ((events[i].events & EPOLLOUT) != 0) unflushed_.insert(id);
        if ((events[i].events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) OnReadable(*link->second);
      }
    }
    RunDue(turn.now);
  }
}

}  // namespace troupe::actors
