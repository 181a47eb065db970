// Effects of the reference table in its process, messages of other stores, and their consequences
// for segments.
#include <fcntl.h>

#include <utility>
#include <variant>

#include "actors/objects/object_turn.h"

namespace troupe::actors {
namespace {

const char kOwnerGone[] = "its process has ended";

}  // namespace

// ---- what the table asks for ------------------------------------------------------------------

void ObjectStore::ApplyLocked() {
  while (true) {
    const store::Effects effects = table_.TakeEffects();
    for (const store::Effect& effect : effects) ApplyOneLocked(effect);
    for (const store::CloseSegment& closed : pool_.TakeClosed()) {
      RetireLocked({self_, closed.segment});
    }
    links_.Flush();
    const bool closed = links_.CloseEnded();
    if (effects.empty() && !closed) return;
  }
}

void ObjectStore::ApplyOneLocked(const store::Effect& effect) {
  if (const auto* send = std::get_if<store::SendFrame>(&effect)) {
    links_.SendFrame(*send);
  } else if (const auto* ack = std::get_if<store::SendAck>(&effect)) {
    links_.SendAck(ack->peer);
  } else if (const auto* connect = std::get_if<store::Connect>(&effect)) {
    afterwards_.deadline_moved = true;
    links_.Ensure(connect->peer);
  } else if (const auto* watch = std::get_if<store::Watch>(&effect)) {
    links_.Ensure(watch->process);
  } else if (const auto* refuse = std::get_if<store::Refuse>(&effect)) {
    OnNothingFrom(refuse->peer, refuse->why);
    links_.Refuse(refuse->peer);
  } else if (const auto* unwatch = std::get_if<store::Unwatch>(&effect)) {
    links_.Unwatch(unwatch->process);
  } else if (const auto* wake = std::get_if<store::Wake>(&effect)) {
    afterwards_.changed = true;
    AnswerBorrowedLocked(wake->object);
  } else if (const auto* forgotten = std::get_if<store::Forgotten>(&effect)) {
    ForgetLocked(forgotten->object);
  } else if (const auto* free = std::get_if<store::FreeSlot>(&effect)) {
    pool_.Free(free->owner, free->slot, free->generation, free->clean);
  } else if (const auto* lost = std::get_if<store::OwnerLost>(&effect)) {
    afterwards_.deadline_moved = true;
    pool_.OwnerLost(lost->owner, lost->dead);
    OnDown(lost->owner);
    OnNothingFrom(lost->owner, kOwnerGone);
  }
  // FreeAtKeeper: the maker is gone, and its memory goes with the last mapping.
}

void ObjectStore::ForgetLocked(const store::ObjectId& id) {
  segments_.Unpin(id);
  if (const std::optional<store::ObjectId> name = names_.Forget(id)) {
    const auto source = sources_.extract(id);
    source.mapped()->LetGo(*name, id.sequence);
  }
  if (std::unique_ptr<Completion> then = waits_.TakeForgotten(id)) {
    afterwards_.posts.push_back(std::move(then));
  }
}

// ---- what other stores say --------------------------------------------------------------------

bool ObjectStore::OnFrame(ObjectLink& link, const ObjectFrame& frame) {
  const SegmentKey key{frame.a, static_cast<std::uint32_t>(frame.x)};
  switch (frame.word) {
    case ObjectWord::kWant:
      GiveLocked(link, key);
      return true;
    case ObjectWord::kHere: {
      GuardedFd descriptor = link.TakeDescriptor();
      if (descriptor.get() < 0) return false;
      if (segments_.WantedFrom(key, link.peer)) MapLocked(key, std::move(descriptor), frame.y);
      return true;
    }
    case ObjectWord::kGone:
      if (segments_.WantedFrom(key, link.peer)) MissLocked(key, "its memory is closed");
      return true;
    case ObjectWord::kRetire:
      if (key.first != self_) RetireLocked(key);
      return true;
    case ObjectWord::kLentOn:
      HoldLentOnLocked(link.peer, {frame.a, frame.x}, frame.y != 0);
      return true;
    case ObjectWord::kHello:
    case ObjectWord::kRefused:
      break;  // handled by the links
  }
  return false;
}

bool ObjectStore::OnControl(const ProcessId& peer, std::uint64_t connection,
                            const store::ReceivedFrame& received) {
  if (received.alone) return table_.Ack(peer, connection, received.acknowledged, Now());
  const auto* const hold = std::get_if<store::Hold>(&received.frame.body);
  const auto* const drop = std::get_if<store::Drop>(&received.frame.body);
  if (hold != nullptr) RouseLocked(hold->object);  // the holder will get the value from here
  const bool good = table_.Frame(peer, connection, received.acknowledged, received.frame, Now());
  if (hold != nullptr) NoteBorrowedLocked(hold->object);
  if (drop != nullptr) NoteBorrowedLocked(drop->object);
  return good;
}

/// The peer cannot report on its segments any more.
void ObjectStore::OnDown(const ProcessId& peer) {
  for (const SegmentKey& key : segments_.ForgetMaker(peer)) links_.Retire(key);
}

void ObjectStore::OnNothingFrom(const ProcessId& peer, const std::string& why) {
  for (const SegmentKey& key : segments_.AllWantedFrom(peer)) MissLocked(key, why);
}

std::vector<SegmentKey> ObjectStore::WantedFrom(const ProcessId& peer) {
  return segments_.AllWantedFrom(peer);
}

// ---- segments ---------------------------------------------------------------------------------

/// The segment a value lies in, if it is mapped here; it stays so while the object is known.
std::shared_ptr<ObjectMapping> ObjectStore::MappingLocked(const store::ObjectId& id,
                                                          const store::Location& at) {
  const SegmentKey key = SegmentOf(at);
  std::shared_ptr<ObjectMapping> mapping = segments_.Find(key);
  if (key.first == self_) return mapping != nullptr ? mapping : OwnMappingLocked(key);
  if (mapping != nullptr) segments_.Pin(id, mapping);
  return mapping;
}

std::shared_ptr<ObjectMapping> ObjectStore::OwnMappingLocked(const SegmentKey& key) {
  std::uint64_t bytes = 0;
  StatusOr<UniqueFd> fd = pool_.DescriptorOf(key.second, &bytes);
  if (!fd.ok()) {
    segments_.Miss(key, MessageOf(fd.status()));
    return nullptr;
  }
  MapLocked(key, GuardedFd(fd->Release()), bytes);
  return segments_.Find(key);
}

void ObjectStore::MapLocked(const SegmentKey& key, GuardedFd descriptor, std::uint64_t bytes) {
  const Status mapped = segments_.Map(key, std::move(descriptor), bytes);
  if (!mapped.ok()) return MissLocked(key, MessageOf(mapped));
  FinishArrivedLocked(key);
  AnswerBorrowedOfLocked(key);
  afterwards_.changed = true;
}

/// Nobody has the descriptor (any more).
void ObjectStore::MissLocked(const SegmentKey& key, const std::string& why) {
  segments_.Miss(key, why);
  for (ArrivingResult& arriving : waits_.TakeArrived(key)) AnswerLostLocked(arriving, why);
  EndArrivalsLocked(key.first);
  AnswerBorrowedOfLocked(key);
  afterwards_.changed = true;
}

void ObjectStore::WantLocked(const SegmentKey& key, const ProcessId& from) {
  if (segments_.Want(key, from)) links_.Want(key, from);
}

void ObjectStore::GiveLocked(ObjectLink& link, const SegmentKey& key) {
  GuardedFd copy;
  std::uint64_t bytes = 0;
  if (const std::shared_ptr<ObjectMapping> mapping = segments_.Find(key)) {
    copy = GuardedFd(::fcntl(mapping->descriptor.get(), F_DUPFD_CLOEXEC, 0));
    bytes = mapping->bytes;
  } else if (key.first == self_) {
    StatusOr<UniqueFd> fd = pool_.DescriptorOf(key.second, &bytes);
    if (fd.ok()) copy = GuardedFd(fd->Release());
  }
  links_.Give(link, key, std::move(copy), bytes);
}

/// Views of it live on, nothing else does; who got it from here is told.
void ObjectStore::RetireLocked(const SegmentKey& key) {
  segments_.Retire(key);
  links_.Retire(key);
}

}  // namespace troupe::actors
