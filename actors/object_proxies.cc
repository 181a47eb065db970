// Objects that stand here for those of other hosts: made when a reference comes, given their value when that does.
#include <utility>

#include "actors/call_frame.h"
#include "actors/object_turn.h"
#include "actors/reactor.h"
#include "actors/refs_head.h"

namespace troupe::actors {

// ---- names -------------------------------------------------------------------------------------------

/// What is called so between hosts, as it is known here.
store::ObjectId ObjectStore::Here(const store::ObjectId& name) const {
  if (table_.Look(name).known != store::Known::kNothing) return name;
  const auto found = here_.find(name);
  return found != here_.end() ? found->second : name;
}

store::ObjectId ObjectStore::Away(const store::ObjectId& id) const {
  const auto found = known_as_.find(id);
  return found != known_as_.end() ? found->second : id;
}

std::vector<store::ObjectId> ObjectStore::InsideOf(const store::ObjectId& id) const {
  if (id.owner == self_) {
    const auto own = table_.state().owned.find(id.sequence);
    return own != table_.state().owned.end() ? own->second.contained : std::vector<store::ObjectId>();
  }
  const auto borrowed = table_.state().borrowed.find(id);
  return borrowed != table_.state().borrowed.end() ? borrowed->second.contained : std::vector<store::ObjectId>();
}

std::vector<store::ObjectId> ObjectStore::Inside(const store::ObjectId& id) {
  Turn turn(*this);
  return InsideOf(id);
}

store::ObjectId ObjectStore::NameAway(const store::ObjectId& id) {
  Turn turn(*this);
  return Away(id);
}

std::vector<store::ObjectId> ObjectStore::InsideAway(const store::ObjectId& name) {
  Turn turn(*this);
  std::vector<store::ObjectId> inside = InsideOf(Here(name));
  std::erase_if(inside, store::IsLife);  // they stay behind
  for (store::ObjectId& each : inside) each = Away(each);
  return inside;
}

std::vector<store::ObjectId> ObjectStore::NamesAway(const std::vector<store::ObjectId>& ids) {
  Turn turn(*this);
  std::vector<store::ObjectId> names;
  for (const store::ObjectId& id : ids) {
    names.push_back(id);
    if (const store::ObjectId away = Away(id); !(away == id)) names.push_back(away);
    for (const store::ObjectId& inside : InsideOf(id)) {
      names.push_back(inside);
      if (const store::ObjectId away = Away(inside); !(away == inside)) names.push_back(away);
    }
  }
  return names;
}

// ---- what stands for others --------------------------------------------------------------------------

store::ObjectId ObjectStore::TakeAway(const store::ObjectId& name, const std::shared_ptr<AwaySource>& source,
                                      bool* fresh) {
  const std::uint64_t number = CallReactor::Current().NextLocalId();
  Turn turn(*this);
  *fresh = false;
  const store::ObjectId known = Here(name);
  const auto lost = proxies_.find(known);  // whoever sends it now may have it
  if (table_.Look(known).known != store::Known::kNothing && (lost == proxies_.end() || !lost->second.lost)) {
    table_.AddHandle(known);
    return known;
  }
  *fresh = true;
  const store::ObjectId id = table_.PutAs(number, store::Value(), {}, turn.now);
  proxies_.emplace(id, Proxy{name, source});
  here_[name] = id;
  known_as_[id] = name;
  return id;
}

void ObjectStore::FulfilAway(const store::ObjectId& id, std::uint16_t flags, const store::Writing& writing,
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

void ObjectStore::FailAway(const store::ObjectId& id, ErrorCode code, std::string_view text) {
  ByteBuffer body;
  AppendRuntimeError(body, code, text);
  Turn turn(*this);
  const auto proxy = proxies_.find(id);
  if (proxy == proxies_.end() || table_.Look(id).known != store::Known::kWaiting) return;
  proxy->second.lost = true;
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
  const auto found = store->slots_.find(slot);
  if (found != store->slots_.end()) store->Rouse(found->second);
}

void ObjectStore::ForgetAway(const store::ObjectId& id) {
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
