// Results that go to another host: as their maker offers them, as their caller pulls them.
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "actors/call_frame.h"
#include "actors/crossing.h"
#include "actors/object_turn.h"
#include "actors/reactor.h"
#include "actors/result_body.h"

namespace troupe::actors {
namespace {

/// What an answer that does not come becomes; memory that is short keeps its own error.
void AnswerMissing(Slot* slot, std::uint64_t bytes, const Status& why) {
  ByteBuffer body;
  const ErrorCode code = ErrorCodeOf(why) == ErrorCode::kTooLarge ? ErrorCode::kTooLarge : kObjectLost;
  AppendRuntimeError(body, code,
                     absl::StrFormat("the result, of %u bytes, could not be fetched from its actor's host: %s", bytes,
                                     MessageOf(why)));
  CallReactor::Current().Answer(slot, kFlagReply | kFlagRuntimeError, body.view());
}

}  // namespace

bool ObjectStore::TryAddHandle(const store::ObjectId& id) {
  Turn turn(*this);
  if (table_.Look(id).known == store::Known::kNothing) return false;
  table_.AddHandle(id);
  return true;
}

bool ObjectStore::Knows(const store::ObjectId& id) {
  Turn turn(*this);
  return table_.Look(id).known != store::Known::kNothing;
}

bool ObjectStore::Contains(const store::ObjectId& id, bool besides_lives) {
  Turn turn(*this);
  const auto names = [&](const std::vector<store::ObjectId>& contained) {
    return std::any_of(contained.begin(), contained.end(),
                       [&](const store::ObjectId& each) { return !besides_lives || !store::IsLife(each); });
  };
  if (id.owner == self_) {
    const auto own = table_.state().owned.find(id.sequence);
    return own != table_.state().owned.end() && names(own->second.contained);
  }
  const auto borrowed = table_.state().borrowed.find(id);
  return borrowed != table_.state().borrowed.end() && names(borrowed->second.contained);
}

std::shared_ptr<ResultHold> ObjectStore::OfferResult(const store::Writing& writing,
                                                     const std::shared_ptr<Crossing>& crossing, std::string* body) {
  const store::ObjectId id = Put(writing, CallReactor::Current().NextLocalId(), {});
  Handles handle;
  handle.Add(id);
  crossing->GiveResult(id, std::move(handle));
  ResultBody result;
  result.kind = ResultBody::kAway;
  result.maker[0] = id.owner.hi;
  result.maker[1] = id.owner.lo;
  result.generation = id.sequence;
  result.bytes = writing.bytes;
  body->assign(reinterpret_cast<const char*>(&result), sizeof result);
  return std::make_shared<ResultHold>([crossing, id] { crossing->WithdrawResult(id); });
}

ObjectStore::Took ObjectStore::TakeResultAway(Slot* slot, std::string_view body,
                                              const std::shared_ptr<Crossing>& crossing, bool wanted) {
  ResultBody result;
  if (body.size() != sizeof result || crossing == nullptr) return Took::kBad;
  std::memcpy(&result, body.data(), sizeof result);
  const store::ObjectId id{ProcessId(result.maker[0], result.maker[1]), result.generation};
  if (result.kind != ResultBody::kAway || result.contained != 0 || id.owner.IsNil()) return Took::kBad;
  if (!wanted) {
    crossing->Decline(id);
    return Took::kLater;
  }
  slot->AddReference();
  crossing->PullResult(id, [this, slot, bytes = result.bytes](StatusOr<store::Writing> writing) {
    const SlotHold hold(slot);
    if (!writing.ok()) return AnswerMissing(slot, bytes, writing.status());
    const store::ObjectId here = Provide(slot, &*writing, {}, {});
    CallReactor::Current().Answer(slot, kFlagReply | kFlagObjects, NameBytes(here));
  });
  return Took::kLater;
}

}  // namespace troupe::actors
