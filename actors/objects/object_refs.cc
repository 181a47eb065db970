// References between processes: a slot that becomes an object others may hold, an object of others that gets a
// slot here.
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
  ExportedEnds(ObjectStore& store, Slot* slot, const store::ObjectId& id)
      : store_(store), slot_(slot), id_(id) {
    slot->AddReference();
  }
  void Run() override { store_.EndExported(id_, slot_.get()->flags(), slot_.get()->bytes()); }

 private:
  ObjectStore& store_;
  const SlotHold slot_;
  const store::ObjectId id_;
};

}  // namespace

std::unique_ptr<Completion> EndOf(ObjectStore& store, Slot* slot, const store::ObjectId& id) {
  return std::make_unique<ExportedEnds>(store, slot, id);
}

store::Value InlineOf(std::uint16_t flags, std::string_view bytes) {
  std::string packed(reinterpret_cast<const char*>(&flags), sizeof flags);
  packed.append(bytes);
  return store::Value::Inline(std::move(packed));
}

/// `id` has the number of the slot.
void ObjectStore::Note(Slot* slot, const store::ObjectId& id) {
  slot->StandForObject(id.owner, generation_);
  slot_of_.insert_or_assign(id, slot);
}

/// Nothing: it is none, or was one in the process that this one was forked from.
std::optional<store::ObjectId> ObjectStore::ObjectOf(const Slot* slot) const {
  if (!slot->stands_for_object() || slot->object_generation() != generation_) return std::nullopt;
  return store::ObjectId{slot->object_owner(), slot->id()};
}

void ObjectStore::Released(const Slot* slot) {
  ObjectStore* store = Existing();
  if (store == nullptr) return;  // inherited by a forked child
  Turn turn(*store);
  const std::optional<store::ObjectId> id = store->ObjectOf(slot);
  if (!id) return;
  const auto here = store->slot_of_.find(*id);
  if (here != store->slot_of_.end() && here->second == slot) store->slot_of_.erase(here);
  const auto [first, last] = store->borrowing_.equal_range(*id);
  for (auto each = first; each != last; ++each) {
    if (each->second != slot) continue;
    store->borrowing_.erase(each);
    break;
  }
  if (!store->table_.DropOneOfMore(*id)) store->table_.DropHandle(*id, turn.now);
}

store::ObjectId ObjectStore::Provide(Slot* slot, const store::Writing* writing, std::string_view bytes,
                                     const std::vector<store::ObjectId>& contained) {
  Turn turn(*this);
  store::Value value = writing != nullptr ? store::Value::At(pool_.Lend(*writing, self_))
                                          : InlineOf(kFlagReply, bytes);
  const std::optional<store::ObjectId> known = ObjectOf(slot);
  if (!known) {
    const store::ObjectId id = table_.PutAs(slot->id(), std::move(value), contained, turn.now);
    Note(slot, id);
    return id;
  }
  store::Answer answer{std::move(value), {}};
  for (const store::ObjectId& each : contained) answer.contained.push_back({each, 0});
  table_.Fulfil(*known, answer, self_, turn.now);
  return *known;
}

std::optional<store::ObjectId> ObjectStore::Export(Slot* slot) {
  store::ObjectId id;
  {
    Turn turn(*this);
    const std::optional<store::ObjectId> known = ObjectOf(slot);
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
    Note(slot, id);  // the first handle is the slot's
    table_.AddHandle(id);
    if (!pending) return id;
  }
  static_cast<void>(completions_.OnDone(slot, EndOf(*this, slot, id)));
  return id;
}

bool ObjectStore::WhenForgotten(const Slot* slot, std::unique_ptr<Completion>* then) {
  Turn turn(*this);
  const std::optional<store::ObjectId> known = ObjectOf(slot);
  if (!known) return false;
  std::unique_ptr<Completion>& waits = when_forgotten_[*known];
  if (waits == nullptr) waits = std::move(*then);
  return true;
}

std::optional<store::ObjectId> ObjectStore::NameOf(const Slot* slot) {
  Turn turn(*this);
  return ObjectOf(slot);
}

void ObjectStore::EndExported(const store::ObjectId& id, std::uint16_t flags, std::string_view bytes) {
  if ((flags & kFlagObjects) != 0) return;  // TakeResult has said so
  Turn turn(*this);
  table_.Fulfil(id, {InlineOf(flags, bytes), {}}, self_, turn.now);
}

Slot* ObjectStore::Borrow(const store::ObjectId& name, const store::ObjectId* known_as) {
  Turn turn(*this);
  return BorrowOne(name, known_as, turn.now);
}

std::vector<Slot*> ObjectStore::BorrowAll(const std::vector<store::ObjectId>& names) {
  Turn turn(*this);
  std::vector<Slot*> slots;
  slots.reserve(names.size());
  for (const store::ObjectId& name : names) slots.push_back(BorrowOne(name, nullptr, turn.now));
  return slots;
}

Slot* ObjectStore::BorrowOne(const store::ObjectId& name, const store::ObjectId* known_as, Instant now) {
  const store::ObjectId id = Here(name);
  const auto here = slot_of_.find(id);
  Slot* const known = here != slot_of_.end() && here->second->TryAddReference() ? here->second : nullptr;
  if (known == nullptr && !table_.AddHandle(id)) return nullptr;
  if (known_as != nullptr && !(*known_as == id) && known_as_.emplace(id, *known_as).second) here_[*known_as] = id;
  if (known != nullptr) return known;
  table_.Want(id, now);
  Slot* slot = Slot::New(id.sequence);
  Note(slot, id);
  std::uint16_t flags = 0;
  std::string body;
  if (Sighted(id, &flags, &body)) {
    slot->Claim();
    slot->Fill(flags, body);
    slot->Finish();
  } else {
    const auto proxy = proxies_.find(id);
    if (proxy != proxies_.end() && proxy->second.asleep) slot->AnswerWhenAsked();
    borrowing_.emplace(id, slot);
  }
  return slot;
}

/// The answer that a slot of the object has, if there is one yet.
bool ObjectStore::Sighted(const store::ObjectId& id, std::uint16_t* flags, std::string* body) {
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
    return Unpack(sight.value, flags, body) || fail(kObjectLost, "the object is lost: its owner sent no value");
  }
  const store::Location& location = sight.value.locations.front();
  const Key key{location.slot.maker, location.slot.segment};
  if (MappingOf(id, location) != nullptr) {
    *flags = kFlagReply | kFlagObjects;
    *body = NameBytes(id);
    return true;
  }
  const auto missing = missing_.find(key);
  if (missing != missing_.end()) return fail(kObjectLost, "the object is lost: " + missing->second);
  borrowing_of_.emplace(key, id);
  Want(key, id.owner);
  return false;
}

void ObjectStore::AnswerBorrowed(const store::ObjectId& id) {
  if (borrowing_.count(id) == 0) return;
  std::uint16_t flags = 0;
  std::string body;
  if (!Sighted(id, &flags, &body)) return;
  const auto [first, last] = borrowing_.equal_range(id);
  for (auto each = first; each != last; ++each) {
    if (each->second->TryAddReference()) answers_.push_back({each->second, flags, body, nullptr});
  }
  borrowing_.erase(first, last);
}

/// This memory is mapped, or lost.
void ObjectStore::AnswerBorrowedOf(const Key& key) {
  const auto [first, last] = borrowing_of_.equal_range(key);
  std::vector<store::ObjectId> ids;
  for (auto each = first; each != last; ++each) ids.push_back(each->second);
  borrowing_of_.erase(first, last);
  for (const store::ObjectId& id : ids) AnswerBorrowed(id);
}

}  // namespace troupe::actors
