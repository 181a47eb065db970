// What comes over the object store's links: control frames of other processes.
#include <utility>

#include "actors/objects/object_turn.h"
#include "runtime/store/core/control_frame.h"

namespace troupe::actors {

void ObjectStore::OnReadable(ObjectLink& link) {
  const std::uint64_t id = link.id();
  const bool open = link.Read();
  const bool good = TakeFrames(link);
  if (!open || !good) over_.push_back(id);
}

/// False: the link is over.
bool ObjectStore::TakeFrames(ObjectLink& link) {
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
      continue;
    }
    store::ReceivedFrame received;
    const store::FrameOutcome outcome =
        parsed == ObjectParse::kControl && link.up
            ? store::ReadFrame(bytes, store::ControlLimits(), &received, &why)
            : store::FrameOutcome::kBad;
    if (outcome == store::FrameOutcome::kNeedMore) break;
    if (outcome == store::FrameOutcome::kBad) {
      if (link.up) table_.Refused(link.peer, Now());
      good = false;
      break;
    }
    used += received.bytes;
    // Who holds it will have its value from this process.
    const auto* const hold = received.alone ? nullptr : std::get_if<store::Hold>(&received.frame.body);
    if (hold != nullptr) Rouse(hold->object);
    const std::uint64_t connection = connections_of_[link.peer];
    good = received.alone
               ? table_.Ack(link.peer, connection, received.acknowledged, Now())
               : table_.Frame(link.peer, connection, received.acknowledged, received.frame, Now());
    const auto* const drop = received.alone ? nullptr : std::get_if<store::Drop>(&received.frame.body);
    if (hold != nullptr) NoteBorrowed(hold->object);
    if (drop != nullptr) NoteBorrowed(drop->object);
  }
  link.in().erase(0, used);
  return good;
}

bool ObjectStore::TakeFrame(ObjectLink& link, const ObjectFrame& frame) {
  if (frame.word == ObjectWord::kHello) return Greet(link, frame);
  if (frame.word == ObjectWord::kRefused) {
    if (!link.dialled()) return false;
    table_.Refused(link.peer, Now());
    MissAllFrom(link.peer, "its process refuses this one");
    return false;
  }
  if (!link.up) return false;
  const Key key{frame.a, static_cast<std::uint32_t>(frame.x)};
  const auto wanted = wanted_.find(key);
  const bool asked = wanted != wanted_.end() && wanted->second == link.peer;
  switch (frame.word) {
    case ObjectWord::kWant:
      Give(link, frame);
      return true;
    case ObjectWord::kHere: {
      GuardedFd descriptor = link.TakeDescriptor();
      if (descriptor.get() < 0) return false;
      if (asked) Map(key, std::move(descriptor), frame.y);
      return true;
    }
    case ObjectWord::kGone:
      if (asked) Missing(key, "its memory is closed");
      return true;
    case ObjectWord::kRetire:
      if (key.first != self_) Retire(key);
      return true;
    case ObjectWord::kLentOn:
      HoldLentOn(link.peer, {frame.a, frame.x}, frame.y != 0);
      return true;
    case ObjectWord::kHello:
    case ObjectWord::kRefused:
      break;
  }
  return false;
}

/// Who it is, and whether this link becomes the pair's. False: it does not.
bool ObjectStore::Greet(ObjectLink& link, const ObjectFrame& hello) {
  if (link.up || hello.b != self_ || hello.a.IsNil() || hello.a == self_) return false;
  if (link.dialled() && hello.a != link.peer) return false;
  if (!link.dialled()) {
    link.stamp = hello.y;
    ObjectLink* other = LinkTo(hello.a);
    if (other != nullptr) {
      // Both dialled: the later link counts, at both ends.
      const std::uint64_t stamp = other->stamp;
      const bool older = stamp != hello.y ? hello.y < stamp : other->dialled() == (hello.a < self_);
      if (older) return false;
      over_.push_back(other->id());
      if (other->up) {
        ForgetMaker(hello.a);
        table_.Disconnected(hello.a, connections_of_[hello.a], Now());
      }
    }
    link.peer = hello.a;
    link_of_[hello.a] = link.id();
    link.Append(HelloTo(hello.a, hello.y));
    unflushed_.insert(link.id());
  }
  const auto known = table_.state().peers.find(hello.a);
  // Said before frames that were acknowledged since on another link: that one counts.
  if (known != table_.state().peers.end() && hello.x < known->second.stream.acknowledged()) return false;
  connections_of_[hello.a] = ++connections_;
  if (table_.Connected(hello.a, connections_, hello.x, Now()) != store::Greeting::kResumed) {
    std::string bytes;
    AppendObjectFrame(bytes, {ObjectWord::kRefused, self_, hello.a, 0, 0});
    link.Append(bytes);
    static_cast<void>(link.Flush());
    return false;
  }
  link.up = true;
  std::string bytes;
  for (const auto& [key, from] : wanted_) {
    if (from == hello.a) AppendObjectFrame(bytes, {ObjectWord::kWant, key.first, {}, key.second, 0});
  }
  if (!bytes.empty()) link.Append(bytes);
  unflushed_.insert(link.id());
  return true;
}

}  // namespace troupe::actors
