#include "actors/objects/object_links.h"

#include <sys/socket.h>

#include <utility>

#include "actors/net/now.h"
#include "actors/net/unix_stream.h"

namespace troupe::actors {
namespace {

constexpr std::size_t kLinksMax = 8192;
/// From the loss of a link, or a refused one, until the next is dialled: tells a process that ended
/// from one that lives, and is not a loop where a peer closes every link.
constexpr Duration kDialAgain = std::chrono::milliseconds(5);

const char kGone[] = "its process has ended";

std::string BytesOf(const ObjectFrame& frame) {
  std::string bytes;
  AppendObjectFrame(bytes, frame);
  return bytes;
}

ObjectFrame OfSegment(ObjectWord word, const SegmentKey& key, std::uint64_t bytes = 0) {
  return {word, key.first, {}, key.second, bytes};
}

}  // namespace

ObjectLinks::ObjectLinks(const ProcessId& self, GuardedFd listener, ObjectPoll& poll,
                         store::References& table, Events& events)
    : self_(self), listener_(std::move(listener)), poll_(poll), table_(table), events_(events) {
  static_cast<void>(poll_.Watch(listener_.get(), ObjectPoll::kListenerId));
}

ObjectLink* ObjectLinks::LinkTo(const ProcessId& peer) {
  const auto found = link_of_.find(peer);
  return found != link_of_.end() ? links_.at(found->second).get() : nullptr;
}

ObjectLink* ObjectLinks::UpTo(const ProcessId& peer) {
  ObjectLink* const link = LinkTo(peer);
  return link != nullptr && link->up ? link : nullptr;
}

void ObjectLinks::Append(ObjectLink& link, const std::string& bytes) {
  link.Append(bytes);
  unflushed_.insert(link.id());
}

// ---- what is sent ----------------------------------------------------------------------------

void ObjectLinks::SendFrame(const store::SendFrame& send) {
  ObjectLink* const link = UpTo(send.peer);
  if (link == nullptr) return;
  std::string bytes;
  store::AppendFrame(bytes, send.frame, table_.AppliedOf(send.peer));
  Append(*link, bytes);
  link->ack_due = false;
}

void ObjectLinks::SendAck(const ProcessId& peer) {
  ObjectLink* const link = UpTo(peer);
  if (link == nullptr) return;
  link->ack_due = true;
  unflushed_.insert(link->id());
}

void ObjectLinks::Say(const ProcessId& peer, const ObjectFrame& frame) {
  if (ObjectLink* const link = UpTo(peer)) Append(*link, BytesOf(frame));
}

void ObjectLinks::Want(const SegmentKey& key, const ProcessId& from) {
  ObjectLink* const link = LinkTo(from);
  if (link == nullptr) return Ensure(from);
  if (link->up) Append(*link, BytesOf(OfSegment(ObjectWord::kWant, key)));
}

void ObjectLinks::Give(ObjectLink& link, const SegmentKey& key, GuardedFd descriptor,
                       std::uint64_t bytes) {
  if (descriptor.get() < 0) return Append(link, BytesOf(OfSegment(ObjectWord::kGone, key)));
  link.AppendWith(BytesOf(OfSegment(ObjectWord::kHere, key, bytes)), std::move(descriptor));
  link.given.insert(key);
  unflushed_.insert(link.id());
}

void ObjectLinks::Retire(const SegmentKey& key) {
  for (const auto& [id, link] : links_) {
    if (link->given.erase(key) != 0) Append(*link, BytesOf(OfSegment(ObjectWord::kRetire, key)));
  }
}

void ObjectLinks::Flush() {
  for (const std::uint64_t id : std::exchange(unflushed_, {})) {
    const auto found = links_.find(id);
    if (found != links_.end()) FlushLink(*found->second);
  }
}

void ObjectLinks::FlushLink(ObjectLink& link) {
  if (std::exchange(link.ack_due, false)) {
    std::string bytes;
    store::AppendAck(bytes, table_.AppliedOf(link.peer));
    link.Append(bytes);
  }
  const ObjectLink::Flushed flushed = link.Flush();
  if (flushed == ObjectLink::Flushed::kOver) ended_.push_back(link.id());
  const bool watch = flushed == ObjectLink::Flushed::kLater;
  if (std::exchange(link.watches_writes, watch) == watch) return;
  poll_.WatchWrites(link.fd(), link.id(), watch);
}

// ---- links that begin and end ----------------------------------------------------------------

void ObjectLinks::Ensure(const ProcessId& peer) {
  if (peer == self_ || LinkTo(peer) != nullptr) return;
  GuardedFd fd;
  const bool room = links_.size() < kLinksMax;
  switch (room ? ObjectLink::Dial(peer, &fd) : ObjectLink::Dialled::kBusy) {
    case ObjectLink::Dialled::kNobody:
      dial_again_.erase(peer);
      events_.OnNothingFrom(peer, kGone);
      table_.Dead(peer, kGone, Now());
      return;
    case ObjectLink::Dialled::kBusy:
      DialAgain(peer);
      moved_ = true;
      return;
    case ObjectLink::Dialled::kOk:
      break;
  }
  dial_again_.erase(peer);
  const auto stamp =
      static_cast<std::uint64_t>(Now().time_since_epoch() / std::chrono::nanoseconds(1));
  Add(std::move(fd), /*dialled=*/true, peer, stamp);
  if (ObjectLink* const link = LinkTo(peer)) Append(*link, HelloTo(peer, stamp));
}

void ObjectLinks::Refuse(const ProcessId& peer) {
  dial_again_.erase(peer);
  if (const ObjectLink* const link = LinkTo(peer)) ended_.push_back(link->id());
}

void ObjectLinks::Unwatch(const ProcessId& peer) {
  dial_again_.erase(peer);
  connections_of_.erase(peer);
}

std::string ObjectLinks::HelloTo(const ProcessId& peer, std::uint64_t stamp) const {
  return BytesOf({ObjectWord::kHello, self_, peer, table_.AppliedOf(peer), stamp});
}

void ObjectLinks::Accept() {
  while (true) {
    GuardedFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.get() < 0) return;
    if (links_.size() >= kLinksMax || !CheckPeerIsSameUser(fd.get()).ok()) continue;
    Add(std::move(fd), /*dialled=*/false, ProcessId(), 0);
  }
}

void ObjectLinks::Add(GuardedFd fd, bool dialled, const ProcessId& peer, std::uint64_t stamp) {
  const std::uint64_t id = next_link_++;
  if (!poll_.Watch(fd.get(), id)) {
    if (dialled) DialAgain(peer);
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

void ObjectLinks::DialAgain(const ProcessId& peer) { dial_again_[peer] = Now() + kDialAgain; }

bool ObjectLinks::CloseEnded() {
  if (ended_.empty()) return false;
  for (const std::uint64_t id : std::exchange(ended_, {})) Close(id);
  return true;
}

void ObjectLinks::Close(std::uint64_t id) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  const std::unique_ptr<ObjectLink> link = std::move(found->second);
  links_.erase(found);
  const auto current = link_of_.find(link->peer);
  if (link->peer.IsNil() || current == link_of_.end() || current->second != id) return;
  link_of_.erase(current);
  if (link->up) {
    events_.OnDown(link->peer);
    table_.Disconnected(link->peer, connections_of_[link->peer], Now());
  }
  const auto known = table_.state().peers.find(link->peer);
  const bool minded = known != table_.state().peers.end();
  if (minded && known->second.Reachable() && LinkTo(link->peer) == nullptr) {
    DialAgain(link->peer);
  } else if (!minded) {
    events_.OnNothingFrom(link->peer, "the link to its process was lost");
  }
  moved_ = true;
}

std::optional<Instant> ObjectLinks::NextDial() const {
  std::optional<Instant> next;
  for (const auto& [peer, when] : dial_again_) {
    if (!next || when < *next) next = when;
  }
  return next;
}

void ObjectLinks::DialDue(Instant now) {
  std::vector<ProcessId> due;
  for (const auto& [peer, when] : dial_again_) {
    if (when <= now) due.push_back(peer);
  }
  for (const ProcessId& peer : due) {
    dial_again_.erase(peer);
    Ensure(peer);
  }
}

bool ObjectLinks::TakeMoved() { return std::exchange(moved_, false); }

// ---- what comes ------------------------------------------------------------------------------

void ObjectLinks::OnEvent(const epoll_event& event) {
  const std::uint64_t id = event.data.u64;
  if (id == ObjectPoll::kListenerId) return Accept();
  if (id == ObjectPoll::kWakeId) return poll_.Woken();
  const auto link = links_.find(id);
  if (link == links_.end()) return;
  constexpr auto kRoom = static_cast<std::uint32_t>(EPOLLOUT);
  if ((event.events & kRoom) != 0) unflushed_.insert(id);
  if ((event.events & ~kRoom) != 0) Read(*link->second);
}

void ObjectLinks::Read(ObjectLink& link) {
  const bool open = link.Read();
  const bool good = TakeFrames(link);
  if (!open || !good) ended_.push_back(link.id());
}

/// False: the link is over.
bool ObjectLinks::TakeFrames(ObjectLink& link) {
  std::size_t used = 0;
  bool good = true;
  std::string why;
  while (good) {
    const std::string_view bytes = std::string_view(link.in()).substr(used);
    ObjectFrame frame;
    const ObjectParse parsed = ReadObjectFrame(bytes, &frame, &why);
    if (parsed == ObjectParse::kNeedMore) break;
    if (parsed == ObjectParse::kFrame) {
      used += kObjectFrameBytes;
      good = TakeFrame(link, frame);
    } else if (parsed == ObjectParse::kBad || !link.up) {
      if (link.up) table_.Refused(link.peer, Now());
      good = false;
    } else if (!TakeControl(link, bytes, &used, &good)) {
      break;
    }
  }
  link.in().erase(0, used);
  return good;
}

/// The frame of a reference table at the front of `bytes`. False: it is not all there yet.
bool ObjectLinks::TakeControl(ObjectLink& link, std::string_view bytes, std::size_t* used,
                              bool* good) {
  store::ReceivedFrame received;
  std::string why;
  switch (store::ReadFrame(bytes, store::ControlLimits(), &received, &why)) {
    case store::FrameOutcome::kNeedMore:
      return false;
    case store::FrameOutcome::kBad:
      table_.Refused(link.peer, Now());
      *good = false;
      return true;
    default:
      break;
  }
  *used += received.bytes;
  *good = events_.OnControl(link.peer, connections_of_[link.peer], received);
  return true;
}

bool ObjectLinks::TakeFrame(ObjectLink& link, const ObjectFrame& frame) {
  if (frame.word == ObjectWord::kHello) return Greet(link, frame);
  if (frame.word == ObjectWord::kRefused) {
    if (!link.dialled()) return false;
    table_.Refused(link.peer, Now());
    events_.OnNothingFrom(link.peer, "its process refuses this one");
    return false;
  }
  return link.up && events_.OnFrame(link, frame);
}

/// Identifies the peer, and decides whether this link becomes the pair's. False: it does not.
bool ObjectLinks::Greet(ObjectLink& link, const ObjectFrame& hello) {
  if (link.up || hello.b != self_ || hello.a.IsNil() || hello.a == self_) return false;
  if (link.dialled() && hello.a != link.peer) return false;
  if (!link.dialled()) {
    if (!Precede(link, hello)) return false;
    link.peer = hello.a;
    link_of_[hello.a] = link.id();
    Append(link, HelloTo(hello.a, hello.y));
  }
  const auto known = table_.state().peers.find(hello.a);
  // The hello is older than frames that were acknowledged on another link: that link counts.
  const bool minded = known != table_.state().peers.end();
  if (minded && hello.x < known->second.stream.acknowledged()) return false;
  connections_of_[hello.a] = ++connections_;
  if (table_.Connected(hello.a, connections_, hello.x, Now()) != store::Greeting::kResumed) {
    link.Append(BytesOf({ObjectWord::kRefused, self_, hello.a, 0, 0}));
    static_cast<void>(link.Flush());
    return false;
  }
  link.up = true;
  std::string bytes;
  for (const SegmentKey& key : events_.WantedFrom(hello.a)) {
    AppendObjectFrame(bytes, OfSegment(ObjectWord::kWant, key));
  }
  if (!bytes.empty()) link.Append(bytes);
  unflushed_.insert(link.id());
  return true;
}

/// Ends the link that the pair has, if it was dialled before this one. False: it was dialled later,
/// and counts, at both ends.
bool ObjectLinks::Precede(ObjectLink& link, const ObjectFrame& hello) {
  link.stamp = hello.y;
  ObjectLink* const other = LinkTo(hello.a);
  if (other == nullptr) return true;
  const std::uint64_t stamp = other->stamp;
  const bool older = stamp != hello.y ? hello.y < stamp : other->dialled() == (hello.a < self_);
  if (older) return false;
  ended_.push_back(other->id());
  if (other->up) {
    events_.OnDown(hello.a);
    table_.Disconnected(hello.a, connections_of_[hello.a], Now());
  }
  return true;
}

}  // namespace troupe::actors
