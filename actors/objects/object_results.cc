// Results that lie in their maker's memory, or name objects: as their maker lends them, as their
// caller takes them.
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/core/call/call_frame.h"
#include "actors/core/call/result_body.h"
#include "actors/objects/object_turn.h"

namespace troupe::actors {
namespace {

constexpr std::size_t kHandedBytes = kObjectIdBytes + 8;

struct Result {
  bool in_memory = false;
  store::Location location;  // known for its maker only, where it is not in memory
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

ObjectStore::Took ObjectStore::TakeResult(Answer* slot, std::string_view body, Then then) {
  Result result;
  if (!Parse(body, &result)) return Took::kBad;
  const ProcessId maker = result.location.slot.maker;
  Turn turn(*this);
  store::ObjectId id{self_, slot->id()};
  if (!ObjectOfLocked(slot)) {  // not given to others yet
    id = table_.PutAs(slot->id(), store::Value(), {}, turn.now);
    NoteLocked(slot, id);
  }
  table_.Mind(maker, turn.now);
  if (!result.in_memory) {
    table_.Fulfil(id, {InlineOf(kFlagReply, result.bytes), std::move(result.contained)}, maker,
                  turn.now);
    slot->Fill(kFlagReply, result.bytes);
    return Took::kDone;
  }
  if (MappingLocked(id, result.location) != nullptr) {
    table_.Fulfil(id, {store::Value::At(result.location), std::move(result.contained)}, maker,
                  turn.now);
    slot->Fill(kFlagReply | kFlagObjects, NameBytes(id));
    return Took::kDone;
  }
  const SegmentKey key = SegmentOf(result.location);
  waits_.Arrive(key, {AnswerRef::Another(slot), result.location, std::move(result.contained),
                      std::move(then)});
  WantLocked(key, maker);
  return Took::kLater;
}

/// The memory of these replies is mapped: they are here.
void ObjectStore::FinishArrivedLocked(const SegmentKey& key) {
  for (ArrivingResult& arriving : waits_.TakeArrived(key)) {
    const store::ObjectId id{self_, arriving.slot->id()};
    MappingLocked(id, arriving.location);
    table_.Fulfil(id, {store::Value::At(arriving.location), std::move(arriving.contained)},
                  key.first, Now());
    afterwards_.answers.push_back({std::move(arriving.slot), kFlagReply | kFlagObjects,
                                   NameBytes(id), std::move(arriving.then), std::nullopt});
  }
  EndArrivalsLocked(key.first);
}

bool ObjectStore::AfterArrivals(std::unique_ptr<Completion>* then) {
  Turn turn(*this);
  return waits_.AfterArrivals(then);
}

void ObjectStore::EndArrivalsLocked(const ProcessId& maker) {
  for (std::unique_ptr<Completion>& then : waits_.TakeAfterArrivals(maker)) {
    afterwards_.posts.push_back(std::move(then));
  }
}

/// Takes its slot.
void ObjectStore::AnswerLostLocked(ArrivingResult& arriving, const std::string& why) {
  ByteBuffer body;
  AppendRuntimeError(body, kResultLost,
                     "the result, of " + std::to_string(arriving.location.bytes) +
                         " bytes, could not be read in the memory of its actor: " + why);
  constexpr std::uint16_t kFlags = kFlagReply | kFlagRuntimeError;
  const store::ObjectId id{self_, arriving.slot->id()};
  DueAnswer answer{std::move(arriving.slot), kFlags, std::string(body.view()),
                   std::move(arriving.then), std::nullopt};
  if (answer.then.fills_only) {
    answer.open = id;  // the call may be made again
  } else {
    table_.Fulfil(id, {InlineOf(kFlags, body.view()), std::move(arriving.contained)},
                  arriving.location.slot.maker, Now());
  }
  afterwards_.answers.push_back(std::move(answer));
}

}  // namespace troupe::actors
