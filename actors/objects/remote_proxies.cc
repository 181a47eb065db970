// Objects that stand here for those of other hosts: made when a reference comes, given their value when that does.
#include <utility>

#include "actors/core/call/call_frame.h"
#include "actors/objects/object_turn.h"
#include "actors/slots/completions.h"
#include "actors/core/remote/value_refs.h"

namespace troupe::actors {

// ---- names -------------------------------------------------------------------------------------------

/// What is called so between hosts, as it is known here.
store::ObjectId ObjectStore::Here(const store::ObjectId& name) const {
  if (table_.Knows(name)) return name;
  const auto found = here_.find(name);
  return found != here_.end() ? found->second : name;
}

store::ObjectId ObjectStore::RemoteName(const store::ObjectId& id) const {
  const auto found = known_as_.find(id);
  return found != known_as_.end() ? found->second : id;
}

std::vector<store::ObjectId> ObjectStore::InsideOf(const store::ObjectId& id) const {
  if (id.owner == self_) {
    const auto own = table_.state().owned.find(id.sequence);
    return own != table_.state().owned.end() ? own->second.contained : std::vector<store::ObjectId>();
  }
  const store::BorrowedObject* const borrowed = table_.state().borrowed.Find(id);
  return borrowed != nullptr ? borrowed->contained : std::vector<store::ObjectId>();
}

std::vector<store::ObjectId> ObjectStore::Inside(const store::ObjectId& id) {
  Turn turn(*this);
  return InsideOf(id);
}

store::ObjectId ObjectStore::RemoteNameOf(const store::ObjectId& id) {
  Turn turn(*this);
  return RemoteName(id);
}

std::vector<store::ObjectId> ObjectStore::RemoteInsideOf(const store::ObjectId& name) {
  Turn turn(*this);
  std::vector<store::ObjectId> inside = InsideOf(Here(name));
  for (store::ObjectId& each : inside) each = RemoteName(each);
  return inside;
}

std::vector<store::ObjectId> ObjectStore::RemoteNamesOf(const std::vector<store::ObjectId>& ids) {
  Turn turn(*this);
  std::vector<store::ObjectId> names;
  for (const store::ObjectId& id : ids) {
    names.push_back(id);
    if (const store::ObjectId away = RemoteName(id); !(away == id)) names.push_back(away);
    for (const store::ObjectId& inside : InsideOf(id)) {
      names.push_back(inside);
      if (const store::ObjectId away = RemoteName(inside); !(away == inside)) names.push_back(away);
    }
  }
  return names;
}

// ---- what stands for others --------------------------------------------------------------------------

store::ObjectId ObjectStore::TakeRemote(const store::ObjectId& name, const std::shared_ptr<RemoteSource>& source,
                                      bool* fresh) {
  const std::uint64_t number = completions_.NextLocalId();
  Turn turn(*this);
  *fresh = false;
  const store::ObjectId known = Here(name);
  const auto lost = proxies_.find(known);  // whoever sends it now may have it
  if (table_.Look(known).known != store::Known::kNothing && (lost == proxies_.end() || !lost->second.lost)) {
    table_.AddHandle(known);
    return known;
  }
  *fresh = true;
  const bool life = store::IsLife(name);  // nobody asks for its value, and nothing waits for one
  const store::ObjectId id = table_.PutAs(life ? number | store::kLifeBit : number,
                                          life ? InlineOf(kFlagReply, {}) : store::Value(), {}, turn.now);
  proxies_.emplace(id, Proxy{name, source, /*asleep=*/!life});
  here_[name] = id;
  known_as_[id] = name;
  return id;
}

void ObjectStore::FulfilRemote(const store::ObjectId& id, std::uint16_t flags, const store::Writing& writing,
                             const std::vector<store::ObjectId>& contained) {
  Turn turn(*this);
  store::Answer answer;
  if ((flags & kFlagObjects) != 0) {
    answer.value = store::Value::At(pool_.Lend(writing, self_));
  } else {
    RenameRefs(writing.data, writing.bytes, [this](const store::ObjectId& name) { return Here(name); });
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
  const auto proxy = proxies_.find(id);
  if (proxy == proxies_.end()) return;
  const bool waiting = table_.Look(id).known == store::Known::kWaiting;
  proxy->second.lost = proxy->second.lost || waiting || store::IsLife(id);
  if (!waiting) return;
  table_.Fulfil(id, {InlineOf(kFlagReply | kFlagRuntimeError, body.view()), {}}, self_, turn.now);
}

/// Somebody asks for its value.
void ObjectStore::Rouse(const store::ObjectId& id) {
  const auto proxy = proxies_.find(id);
  if (proxy == proxies_.end() || !std::exchange(proxy->second.asleep, false)) return;
  proxy->second.source->Want(proxy->second.name, id.sequence);
}

void ObjectStore::Asked(const Slot* slot) {
  ObjectStore* const store = Existing();
  if (store == nullptr) return;  // inherited by a forked child
  Turn turn(*store);
  const std::optional<store::ObjectId> id = store->ObjectOf(slot);
  if (id) store->Rouse(*id);
}

// ---- lives that are handed on ------------------------------------------------------------------------

void ObjectStore::NoteLentOn(const store::ObjectId& name, bool lent) {
  Turn turn(*this);
  CountLentOn(Here(name), lent);
}

/// Who gave it is to keep it, should this process end before those that have it from here.
void ObjectStore::CountLentOn(const store::ObjectId& id, bool lent) {
  if (!store::IsLife(id)) return;
  const auto proxy = proxies_.find(id);
  if (id.owner == self_ && proxy == proxies_.end()) return;  // it ends with this process
  std::size_t& times = lent_on_[id];
  const bool news = lent ? times++ == 0 : times != 0 && --times == 0;
  if (times == 0) lent_on_.erase(id);
  if (!news) return;
  if (proxy != proxies_.end()) return proxy->second.source->LentOn(proxy->second.name, id.sequence, lent);
  ObjectLink* const link = LinkTo(id.owner);
  if (link == nullptr || !link->up) return;
  std::string bytes;
  AppendObjectFrame(bytes, {ObjectWord::kLentOn, id.owner, {}, id.sequence, lent ? 1u : 0u});
  link->Append(bytes);
  unflushed_.insert(link->id());
}

/// Who borrows it on this host has changed, perhaps: those count once.
void ObjectStore::NoteBorrowed(const store::ObjectId& id) {
  if (!store::IsLife(id) || proxies_.count(id) == 0) return;
  const auto own = table_.state().owned.find(id.sequence);
  const bool lent = own != table_.state().owned.end() && !own->second.borrowers.empty();
  if (lent == (lent_beside_.count(id) != 0)) return;
  if (lent) {
    lent_beside_.insert(id);
  } else {
    lent_beside_.erase(id);
  }
  CountLentOn(id, lent);
}

/// A process of this host has lent a life of this one's to another host, or does no more. It is held here meanwhile, so
/// that it outlives that process.
void ObjectStore::HoldLentOn(const ProcessId& borrower, const store::ObjectId& id, bool lent) {
  const auto own = table_.state().owned.find(id.sequence);
  const bool borrows = own != table_.state().owned.end() && own->second.borrowers.count(borrower) != 0;
  if (id.owner != self_ || !store::IsLife(id)) return;
  if (!lent) {
    if (held_lent_on_.erase({borrower, id}) != 0) table_.DropHandle(id, Now());
  } else if (borrows && held_lent_on_.emplace(borrower, id).second) {
    table_.AddHandle(id);
  }
}

void ObjectStore::ForgetRemote(const store::ObjectId& id) {
  lent_on_.erase(id);
  lent_beside_.erase(id);
  const auto name = known_as_.find(id);
  if (name == known_as_.end()) return;
  const auto current = here_.find(name->second);
  if (current != here_.end() && current->second == id) here_.erase(current);
  known_as_.erase(name);
  const auto proxy = proxies_.find(id);
  if (proxy == proxies_.end()) return;
  proxy->second.source->LetGo(proxy->second.name, id.sequence);
  proxies_.erase(proxy);
}

}  // namespace troupe::actors
