// References between processes: a slot that becomes an object others may hold, an object of others
// that gets a slot here.
#include <absl/strings/str_format.h>

#include <cstring>
#include <utility>

#include "actors/core/call/call_frame.h"
#include "actors/objects/object_turn.h"
#include "actors/slots/completions.h"

namespace troupe::actors {
namespace {

bool Unpack(const store::Value& value, std::uint16_t* flags, std::string* bytes) {
  if (value.bytes == nullptr || value.bytes->size() < sizeof *flags) return false;
  std::memcpy(flags, value.bytes->data(), sizeof *flags);
  *flags &= kFlagReply | kFlagTaskError | kFlagRuntimeError;
  *bytes = value.bytes->substr(sizeof *flags);
  return true;
}

/// Runs when an exported slot has its answer.
class ExportedEnds : public Completion {
 public:
  ExportedEnds(ObjectStore& store, Answer* slot, const store::ObjectId& id)
      : store_(store), slot_(AnswerRef::Another(slot)), id_(id) {}
  void Run() override { store_.EndExported(id_, slot_->flags(), slot_->bytes()); }

 private:
  ObjectStore& store_;
  const AnswerRef slot_;
  const store::ObjectId id_;
};

}  // namespace

std::unique_ptr<Completion> EndOf(ObjectStore& store, Answer* slot, const store::ObjectId& id) {
  return std::make_unique<ExportedEnds>(store, slot, id);
}

store::Value InlineOf(std::uint16_t flags, std::string_view bytes) {
  std::string packed(reinterpret_cast<const char*>(&flags), sizeof flags);
  packed.append(bytes);
  return store::Value::Inline(std::move(packed));
}

/// `id` has the number of the slot.
void ObjectStore::NoteLocked(Answer* slot, const store::ObjectId& id) {
  slot->StandForObject(id.owner, generation_);
  waits_.Live(id, slot);
}

/// Nothing: it is none, or was one in the process that this one was forked from.
std::optional<store::ObjectId> ObjectStore::ObjectOfLocked(const Answer* slot) const {
  if (!slot->stands_for_object() || slot->object_generation() != generation_) return std::nullopt;
  return store::ObjectId{slot->object_owner(), slot->id()};
}

void ObjectStore::Released(const Answer* slot) {
  ObjectStore* store = Existing();
  if (store == nullptr) return;  // inherited by a forked child
  Turn turn(*store);
  const std::optional<store::ObjectId> id = store->ObjectOfLocked(slot);
  if (!id) return;
  store->waits_.Ended(*id, slot);
  if (!store->table_.DropOneOfMore(*id)) store->table_.DropHandle(*id, turn.now);
}

store::ObjectId ObjectStore::Provide(Answer* slot, const store::Writing* writing,
                                     std::string_view bytes,
                                     const std::vector<store::ObjectId>& contained) {
  Turn turn(*this);
  store::Value value = writing != nullptr ? store::Value::At(pool_.Lend(*writing, self_))
                                          : InlineOf(kFlagReply, bytes);
  const std::optional<store::ObjectId> known = ObjectOfLocked(slot);
  if (!known) {
    const store::ObjectId id = table_.PutAs(slot->id(), std::move(value), contained, turn.now);
    NoteLocked(slot, id);
    return id;
  }
  store::Answer answer{std::move(value), {}};
  for (const store::ObjectId& each : contained) answer.contained.push_back({each, 0});
  table_.Fulfil(*known, answer, self_, turn.now);
  return *known;
}

std::optional<store::ObjectId> ObjectStore::Export(Answer* slot) {
  store::ObjectId id;
  {
    Turn turn(*this);
    const std::optional<store::ObjectId> known = ObjectOfLocked(slot);
    if (known) {
      table_.AddHandle(*known);
      return known;
    }
    store::Value value;
    if (slot->done()) {
      if ((slot->flags() & kFlagObjects) != 0) return std::nullopt;
      value = InlineOf(slot->flags(), slot->bytes());
    }
    const bool pending = !value.Ended();
    id = table_.PutAs(slot->id(), std::move(value), {}, turn.now);
    NoteLocked(slot, id);  // the first handle is the slot's
    table_.AddHandle(id);
    if (!pending) return id;
  }
  static_cast<void>(completions_.OnDone(slot, EndOf(*this, slot, id)));
  return id;
}

bool ObjectStore::WhenForgotten(const Answer* slot, std::unique_ptr<Completion>* then) {
  Turn turn(*this);
  const std::optional<store::ObjectId> known = ObjectOfLocked(slot);
  if (!known) return false;
  waits_.WhenForgotten(*known, then);
  return true;
}

std::optional<store::ObjectId> ObjectStore::NameOf(const Answer* slot) {
  Turn turn(*this);
  return ObjectOfLocked(slot);
}

void ObjectStore::EndExported(const store::ObjectId& id, std::uint16_t flags,
                              std::string_view bytes) {
  if ((flags & kFlagObjects) != 0) return;  // TakeResult has said so
  Turn turn(*this);
  table_.Fulfil(id, {InlineOf(flags, bytes), {}}, self_, turn.now);
}

AnswerRef ObjectStore::Borrow(const store::ObjectId& name, const store::ObjectId* known_as) {
  Turn turn(*this);
  return BorrowLocked(name, known_as, turn.now);
}

std::vector<AnswerRef> ObjectStore::BorrowAll(const std::vector<store::ObjectId>& names) {
  Turn turn(*this);
  std::vector<AnswerRef> slots;
  slots.reserve(names.size());
  for (const store::ObjectId& name : names) {
    slots.push_back(BorrowLocked(name, nullptr, turn.now));
  }
  return slots;
}

AnswerRef ObjectStore::BorrowLocked(const store::ObjectId& name, const store::ObjectId* known_as,
                                    Instant now) {
  const store::ObjectId id = HereLocked(name);
  AnswerRef slot = waits_.SlotOf(id);
  if (!slot && !table_.AddHandle(id)) return slot;
  if (known_as != nullptr) names_.Call(id, *known_as);
  if (slot) return slot;
  table_.Want(id, now);
  slot = AnswerRef(Answer::New(id.sequence));
  NoteLocked(slot.get(), id);
  std::uint16_t flags = 0;
  std::string body;
  if (SightedLocked(id, &flags, &body)) {
    slot->Claim();
    slot->Fill(flags, body);
    slot->Finish();
  } else {
    if (names_.Asleep(id)) slot->AnswerWhenAsked();
    waits_.AwaitValue(id, slot.get());
  }
  return slot;
}

/// The answer that a slot of the object has, if there is one yet.
bool ObjectStore::SightedLocked(const store::ObjectId& id, std::uint16_t* flags,
                                std::string* body) {
  ByteBuffer error;
  const auto fail = [&](ErrorCode code, const std::string& text) {
    AppendRuntimeError(error, code, text);
    *flags = kFlagReply | kFlagRuntimeError;
    *body = std::string(error.view());
    return true;
  };
  const store::Sight sight = table_.Look(id);
  switch (sight.known) {
    case store::Known::kWaiting:
      return false;
    case store::Known::kOrphan:
      return fail(kOwnerDied, "the process that owned the object is gone: " + sight.cause);
    case store::Known::kLost:
      return fail(kObjectLost, "the object is lost: " + sight.cause);
    case store::Known::kNothing:
      return fail(kObjectLost, "the object is lost: nothing held it any more");
    case store::Known::kValue:
      break;
  }
  if (sight.value.locations.empty()) {
    return Unpack(sight.value, flags, body) ||
           fail(kObjectLost, "the object is lost: its owner sent no value");
  }
  const store::Location& location = sight.value.locations.front();
  if (MappingLocked(id, location) != nullptr) {
    *flags = kFlagReply | kFlagObjects;
    *body = NameBytes(id);
    return true;
  }
  const SegmentKey key = SegmentOf(location);
  const std::string* const missing = segments_.WhyMissing(key);
  if (missing != nullptr) return fail(kObjectLost, "the object is lost: " + *missing);
  waits_.AwaitMemory(key, id);
  WantLocked(key, id.owner);
  return false;
}

void ObjectStore::AnswerBorrowedLocked(const store::ObjectId& id) {
  if (!waits_.ValueAwaited(id)) return;
  std::uint16_t flags = 0;
  std::string body;
  if (!SightedLocked(id, &flags, &body)) return;
  for (AnswerRef& slot : waits_.TakeAwaiting(id)) {
    afterwards_.answers.push_back({std::move(slot), flags, body, {}, std::nullopt});
  }
}

/// This memory is mapped, or lost.
void ObjectStore::AnswerBorrowedOfLocked(const SegmentKey& key) {
  for (const store::ObjectId& id : waits_.TakeAwaitingMemory(key)) AnswerBorrowedLocked(id);
}

}  // namespace troupe::actors
