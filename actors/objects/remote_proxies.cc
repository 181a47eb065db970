// Objects that stand here for those of other hosts: made when a reference comes, given their value
// when that does.
#include <utility>

#include "actors/core/call/call_frame.h"
#include "actors/core/remote/value_refs.h"
#include "actors/objects/object_turn.h"
#include "actors/slots/completions.h"

namespace troupe::actors {

// ---- names ------------------------------------------------------------------------------------

/// Returns the local name of an object with this name between hosts.
store::ObjectId ObjectStore::HereLocked(const store::ObjectId& name) const {
  return table_.Knows(name) ? name : names_.Here(name);
}

std::vector<store::ObjectId> ObjectStore::InsideLocked(const store::ObjectId& id) const {
  if (id.owner == self_) {
    const auto own = table_.state().owned.find(id.sequence);
    return own != table_.state().owned.end() ? own->second.contained
                                             : std::vector<store::ObjectId>();
  }
  const store::BorrowedObject* const borrowed = table_.state().borrowed.Find(id);
  return borrowed != nullptr ? borrowed->contained : std::vector<store::ObjectId>();
}

std::vector<store::ObjectId> ObjectStore::Inside(const store::ObjectId& id) {
  Turn turn(*this);
  return InsideLocked(id);
}

store::ObjectId ObjectStore::RemoteNameOf(const store::ObjectId& id) {
  Turn turn(*this);
  return names_.NameOf(id);
}

std::vector<store::ObjectId> ObjectStore::RemoteInsideOf(const store::ObjectId& name) {
  Turn turn(*this);
  std::vector<store::ObjectId> inside = InsideLocked(HereLocked(name));
  for (store::ObjectId& each : inside) each = names_.NameOf(each);
  return inside;
}

std::vector<store::ObjectId> ObjectStore::RemoteNamesOf(const std::vector<store::ObjectId>& ids) {
  Turn turn(*this);
  std::vector<store::ObjectId> names;
  const auto add = [&names](const store::ObjectId& id, const store::ObjectId& between_hosts) {
    names.push_back(id);
    if (!(between_hosts == id)) names.push_back(between_hosts);
  };
  for (const store::ObjectId& id : ids) {
    add(id, names_.NameOf(id));
    for (const store::ObjectId& inside : InsideLocked(id)) add(inside, names_.NameOf(inside));
  }
  return names;
}

void ObjectStore::NameAsHere(std::string* value) {
  Turn turn(*this);
  RenameRefs(value, [this](const store::ObjectId& name) {
    mutex_.AssertHeld();
    return HereLocked(name);
  });
}

// ---- what stands for others -------------------------------------------------------------------

store::ObjectId ObjectStore::TakeRemote(const store::ObjectId& name,
                                        const std::shared_ptr<RemoteSource>& source, bool* fresh) {
  const std::uint64_t number = completions_.NextLocalId();
  Turn turn(*this);
  *fresh = false;
  const store::ObjectId known = HereLocked(name);
  // A sender of a lost object may have its value again.
  if (table_.Look(known).known != store::Known::kNothing && !names_.Lost(known)) {
    table_.AddHandle(known);
    return known;
  }
  *fresh = true;
  const bool life = store::IsLife(name);  // nobody asks for its value, and nothing waits for one
  const store::ObjectId id =
      table_.PutAs(life ? number | store::kLifeBit : number,
                   life ? InlineOf(kFlagReply, {}) : store::Value(), {}, turn.now);
  names_.StandFor(id, name);
  sources_.emplace(id, source);
  return id;
}

void ObjectStore::FulfilRemote(const store::ObjectId& id, std::uint16_t flags,
                               const store::Writing& writing,
                               const std::vector<store::ObjectId>& contained) {
  Turn turn(*this);
  store::Answer answer;
  if ((flags & kFlagObjects) != 0) {
    answer.value = store::Value::At(pool_.Lend(writing, self_));
  } else {
    RenameRefs(writing.data, writing.bytes, [this](const store::ObjectId& name) {
      mutex_.AssertHeld();
      return HereLocked(name);
    });
    answer.value = InlineOf(flags, {writing.data, writing.bytes});
    pool_.GiveUp(writing);
  }
  for (const store::ObjectId& each : contained) answer.contained.push_back({each, 0});
  table_.Fulfil(id, answer, self_, turn.now);
}

void ObjectStore::FailRemote(const store::ObjectId& id, ErrorCode code, std::string_view text) {
  ByteBuffer body;
  AppendRuntimeError(body, code, text);
  Turn turn(*this);
  if (!names_.StandsIn(id)) return;
  const bool waiting = table_.Look(id).known == store::Known::kWaiting;
  if (waiting || store::IsLife(id)) names_.Lose(id);
  if (!waiting) return;
  table_.Fulfil(id, {InlineOf(kFlagReply | kFlagRuntimeError, body.view()), {}}, self_, turn.now);
}

/// Somebody asks for its value.
void ObjectStore::RouseLocked(const store::ObjectId& id) {
  const std::optional<store::ObjectId> name = names_.Rouse(id);
  if (name) sources_.at(id)->Want(*name, id.sequence);
}

void ObjectStore::Asked(const Answer* slot) {
  ObjectStore* const store = Existing();
  if (store == nullptr) return;  // inherited by a forked child
  Turn turn(*store);
  const std::optional<store::ObjectId> id = store->ObjectOfLocked(slot);
  if (id) store->RouseLocked(*id);
}

// ---- lives that are handed on -----------------------------------------------------------------

void ObjectStore::NoteLentOn(const store::ObjectId& name, bool lent) {
  Turn turn(*this);
  const store::ObjectId id = HereLocked(name);
  TellLentOnLocked(names_.LentOn(id, lent), id, lent);
}

/// Tells the lender to keep the object, should this process end before those that have it from
/// here.
void ObjectStore::TellLentOnLocked(RemoteNames::Tell whom, const store::ObjectId& id, bool lent) {
  switch (whom) {
    case RemoteNames::Tell::kNobody:
      return;
    case RemoteNames::Tell::kSource:
      return sources_.at(id)->LentOn(names_.NameOf(id), id.sequence, lent);
    case RemoteNames::Tell::kOwner:
      return links_.Say(id.owner, {ObjectWord::kLentOn, id.owner, {}, id.sequence, lent ? 1u : 0u});
  }
}

/// Notes that the borrowers on this host may have changed.
void ObjectStore::NoteBorrowedLocked(const store::ObjectId& id) {
  if (!names_.StandsIn(id)) return;
  const auto own = table_.state().owned.find(id.sequence);
  const bool lent = own != table_.state().owned.end() && !own->second.borrowers.empty();
  TellLentOnLocked(names_.Borrowed(id, lent), id, lent);
}

/// A process of this host has lent a life of this one's to another host, or does no more. It is
/// held here meanwhile, so that it outlives that process.
void ObjectStore::HoldLentOnLocked(const ProcessId& borrower, const store::ObjectId& id,
                                   bool lent) {
  const auto own = table_.state().owned.find(id.sequence);
  const bool borrows =
      own != table_.state().owned.end() && own->second.borrowers.count(borrower) != 0;
  switch (names_.HandedOn(borrower, id, lent, borrows)) {
    case RemoteNames::Handle::kNone:
      return;
    case RemoteNames::Handle::kAdd:
      table_.AddHandle(id);
      return;
    case RemoteNames::Handle::kDrop:
      return table_.DropHandle(id, Now());
  }
}

}  // namespace troupe::actors
