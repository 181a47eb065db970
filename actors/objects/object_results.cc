// Results that lie in their maker's memory, or name objects: as their maker lends them, as their caller takes them.
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/core/call/call_frame.h"
#include "actors/objects/object_turn.h"
#include "actors/core/call/result_body.h"

namespace troupe::actors {
namespace {

constexpr std::size_t kHandedBytes = kObjectIdBytes + 8;

struct Result {
  bool in_memory = false;
  store::Location location;  // of its maker only, where it is not in memory
  std::vector<store::Handed> contained;
  std::string_view bytes;
};

bool Parse(std::string_view body, Result* result) {
  ResultBody read;
  if (!TakeResultBody(&body, &read)) return false;
  if (read.kind != ResultBody::kInMemory && read.kind != ResultBody::kInFrame) return false;
  result->in_memory = read.kind == ResultBody::kInMemory;
  result->location.slot = {ProcessId(read.maker[0], read.maker[1]), read.segment, read.slot};
  result->location.generation = read.generation;
  result->location.offset = read.offset;
  result->location.bytes = read.bytes;
  if (read.contained > body.size() / kHandedBytes) return false;
  for (std::uint32_t i = 0; i < read.contained; ++i) {
    const std::optional<store::ObjectId> id = ReadObjectId(body.substr(0, kObjectIdBytes));
    if (!id) return false;
    store::Handed handed{*id, 0};
    std::memcpy(&handed.loan, body.data() + kObjectIdBytes, sizeof handed.loan);
    result->contained.push_back(handed);
    body.remove_prefix(kHandedBytes);
  }
  result->bytes = body;
  return !result->location.slot.maker.IsNil();
}

}  // namespace

StatusOr<std::shared_ptr<ResultHold>> ObjectStore::LendResult(
    const store::Writing* writing, std::string_view bytes,
    const std::vector<store::ObjectId>& contained, const ProcessId& owner, std::string* body) {
  Turn turn(*this);
  if (!table_.Mind(owner, turn.now)) {
    if (writing != nullptr) pool_.GiveUp(*writing);
    return MakeError(kObjectLost, "the object is lost: the caller's process is gone");
  }
  ResultBody result;
  result.kind = writing != nullptr ? ResultBody::kInMemory : ResultBody::kInFrame;
  result.contained = static_cast<std::uint32_t>(contained.size());
  result.maker[0] = self_.hi;
  result.maker[1] = self_.lo;
  store::Location at;
  if (writing != nullptr) {
    at = pool_.Lend(*writing, owner);
    result.segment = at.slot.segment;
    result.slot = at.slot.slot;
    result.generation = at.generation;
    result.offset = at.offset;
    result.bytes = at.bytes;
  }
  body->assign(reinterpret_cast<const char*>(&result), sizeof result);
  std::vector<std::uint64_t> loans;
  for (const store::ObjectId& id : contained) {
    const store::Handed handed = table_.LendInside(id, owner, turn.now);
    body->append(NameBytes(id));
    body->append(reinterpret_cast<const char*>(&handed.loan), sizeof handed.loan);
    if (handed.loan != 0) loans.push_back(handed.loan);
  }
  body->append(bytes);
  const bool wrote = writing != nullptr;
  return std::make_shared<ResultHold>([this, owner, at, wrote, loans = std::move(loans)] {
    if (generation_ != ForkGuard::generation()) return;
    Turn lost(*this);
    table_.Recall(owner, loans, lost.now);
    if (wrote) pool_.Free(owner, at.slot, at.generation, /*clean=*/false);
  });
}

std::optional<std::uint64_t> ObjectStore::ResultBytes(std::string_view body) {
  ResultBody away;
  if (body.size() >= sizeof away) std::memcpy(&away, body.data(), sizeof away);
  if (away.kind == ResultBody::kRemote) return away.bytes;
  if (away.kind == ResultBody::kRemoteInFrame) return body.size();
  Result result;
  if (!Parse(body, &result)) return std::nullopt;
  return result.in_memory ? result.location.bytes : body.size();
}

ObjectStore::Took ObjectStore::TakeResult(Slot* slot, std::string_view body, Then then) {
  Result result;
  if (!Parse(body, &result)) return Took::kBad;
  const ProcessId maker = result.location.slot.maker;
  Turn turn(*this);
  store::ObjectId id{self_, slot->id()};
  if (!ObjectOf(slot)) {  // not given to others yet
    id = table_.PutAs(slot->id(), store::Value(), {}, turn.now);
    Note(slot, id);
  }
  table_.Mind(maker, turn.now);
  if (!result.in_memory) {
    table_.Fulfil(id, {InlineOf(kFlagReply, result.bytes), std::move(result.contained)}, maker, turn.now);
    slot->Fill(kFlagReply, result.bytes);
    return Took::kDone;
  }
  if (MappingOf(id, result.location) != nullptr) {
    table_.Fulfil(id, {store::Value::At(result.location), std::move(result.contained)}, maker, turn.now);
    slot->Fill(kFlagReply | kFlagObjects, NameBytes(id));
    return Took::kDone;
  }
  slot->AddReference();
  const Key key{maker, result.location.slot.segment};
  arriving_.emplace(key, Arriving{slot, result.location, std::move(result.contained), std::move(then)});
  Want(key, maker);
  return Took::kLater;
}

/// The memory of these replies is mapped: they are here.
void ObjectStore::FinishArrived(const Key& key) {
  const auto [first, last] = arriving_.equal_range(key);
  for (auto each = first; each != last; ++each) {
    Arriving& arriving = each->second;
    const store::ObjectId id{self_, arriving.slot->id()};
    MappingOf(id, arriving.location);
    table_.Fulfil(id, {store::Value::At(arriving.location), std::move(arriving.contained)}, key.first, Now());
    answers_.push_back({arriving.slot, kFlagReply | kFlagObjects, NameBytes(id), std::move(arriving.then), std::nullopt});
  }
  arriving_.erase(first, last);
  EndArrivals(key.first);
}

bool ObjectStore::Arrives(const ProcessId& maker) const {
  const auto first = arriving_.lower_bound({maker, 0});
  return first != arriving_.end() && first->first.first == maker;
}

bool ObjectStore::AfterArrivals(std::unique_ptr<Completion>* then) {
  Turn turn(*this);
  if (arriving_.empty()) return false;
  after_arrivals_.emplace(arriving_.begin()->first.first, std::move(*then));
  return true;
}

void ObjectStore::EndArrivals(const ProcessId& maker) {
  if (Arrives(maker)) return;
  const auto [first, last] = after_arrivals_.equal_range(maker);
  for (auto each = first; each != last; ++each) posts_.push_back(std::move(each->second));
  after_arrivals_.erase(first, last);
}

void ObjectStore::AnswerLost(Arriving& arriving, const std::string& why) {
  ByteBuffer body;
  AppendRuntimeError(body, kResultLost,
                     "the result, of " + std::to_string(arriving.location.bytes) +
                         " bytes, could not be read in the memory of its actor: " + why);
  constexpr std::uint16_t kFlags = kFlagReply | kFlagRuntimeError;
  Answer answer{arriving.slot, kFlags, std::string(body.view()), std::move(arriving.then), std::nullopt};
  const store::ObjectId id{self_, arriving.slot->id()};
  if (answer.then.fills_only) {
    answer.open = id;  // the call may be made again
  } else {
    table_.Fulfil(id, {InlineOf(kFlags, body.view()), std::move(arriving.contained)}, arriving.location.slot.maker, Now());
  }
  answers_.push_back(std::move(answer));
}

/// Nobody has the descriptor (any more).
void ObjectStore::Missing(const Key& key, const std::string& why) {
  wanted_.erase(key);
  missing_[key] = why;
  const auto [first, last] = arriving_.equal_range(key);
  for (auto each = first; each != last; ++each) AnswerLost(each->second, why);
  arriving_.erase(first, last);
  EndArrivals(key.first);
  AnswerBorrowedOf(key);
  woken_ = true;
}

}  // namespace troupe::actors
