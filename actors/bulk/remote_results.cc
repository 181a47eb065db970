// Results that go to another host: as their maker offers them, as their caller pulls them.
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "actors/core/call/call_frame.h"
#include "actors/bulk/bulk_session.h"
#include "actors/objects/object_turn.h"
#include "actors/slots/completions.h"
#include "actors/core/remote/value_refs.h"
#include "actors/core/call/result_body.h"

namespace troupe::actors {
namespace {

/// What an answer that does not come becomes; memory that is short keeps its own error.
void AnswerMissing(Completions& completions, Slot* slot, std::uint64_t bytes, const Status& why, ObjectStore::Then& then) {
  ByteBuffer body;
  const ErrorCode code = ErrorCodeOf(why) == ErrorCode::kTooLarge ? ErrorCode::kTooLarge : kResultLost;
  AppendRuntimeError(body, code,
                     absl::StrFormat("the result, of %u bytes, could not be fetched from its actor's host: %s", bytes,
                                     MessageOf(why)));
  Conclude(completions, slot, kFlagReply | kFlagRuntimeError, body.view(), then);
}

}  // namespace

bool ObjectStore::TryAddHandle(const store::ObjectId& id) {
  Turn turn(*this);
  return table_.AddHandle(id);
}

bool ObjectStore::Knows(const store::ObjectId& id) {
  Turn turn(*this);
  return table_.Knows(id);
}

std::shared_ptr<ResultHold> ObjectStore::OfferResult(const store::Writing* writing, std::string_view bytes,
                                                     Handles contained, const std::shared_ptr<BulkSession>& bulk_session,
                                                     std::string* body) {
  std::vector<store::ObjectId> names;
  for (const store::ObjectId& each : contained.ids()) names.push_back(RemoteNameOf(each));
  const std::uint64_t number = completions_.NextLocalId();
  ResultBody result;
  result.kind = writing != nullptr ? ResultBody::kRemote : ResultBody::kRemoteInFrame;
  result.contained = static_cast<std::uint32_t>(names.size());
  result.maker[0] = self_.hi;
  result.maker[1] = self_.lo;
  result.generation = number;
  result.bytes = writing != nullptr ? writing->bytes : bytes.size();
  body->assign(reinterpret_cast<const char*>(&result), sizeof result);
  for (const store::ObjectId& name : names) body->append(NameBytes(name));
  body->append(bytes);
  const store::ObjectId id{self_, number};
  Handles held;
  if (writing != nullptr) {
    held.Add(Put(*writing, number, contained.ids()));
  } else {
    held = std::move(contained);
  }
  bulk_session->GiveResult(id, std::move(held), std::move(names));
  return std::make_shared<ResultHold>([bulk_session, id] { bulk_session->WithdrawResult(id); });
}

namespace {

/// The reply of another host's, taken apart.
struct RemoteResult {
  store::ObjectId id;
  bool in_frame = false;
  std::uint64_t bytes = 0;
  std::vector<store::ObjectId> names;
  std::string value;  // in the frame
};

bool Parse(std::string_view body, RemoteResult* result) {
  ResultBody read;
  if (!TakeResultBody(&body, &read)) return false;
  if (read.kind != ResultBody::kRemote && read.kind != ResultBody::kRemoteInFrame) return false;
  if (read.contained > RemoteHeld::kInsideMax || read.contained > body.size() / kObjectIdBytes) return false;
  result->id = {ProcessId(read.maker[0], read.maker[1]), read.generation};
  result->in_frame = read.kind == ResultBody::kRemoteInFrame;
  result->bytes = read.bytes;
  for (std::uint32_t i = 0; i < read.contained; ++i) {
    const std::optional<store::ObjectId> name = ReadObjectId(body.substr(0, kObjectIdBytes));
    if (!name) return false;
    result->names.push_back(*name);
    body.remove_prefix(kObjectIdBytes);
  }
  if (result->in_frame) {
    if (read.bytes == 0 || read.bytes > body.size()) return false;
    result->value = std::string(body.substr(0, read.bytes));
  }
  return !result->id.owner.IsNil() && body.size() < result->value.size() + sizeof(std::uint64_t);
}

}  // namespace

/// It, and what lies inside it, is here.
void ObjectStore::FinishRemote(Slot* slot, const store::Writing* writing, std::string value,
                             const std::vector<store::ObjectId>& contained, Then& then) {
  if (writing == nullptr) {
    Turn turn(*this);
    RenameRefs(&value, [this](const store::ObjectId& name) { return Here(name); });
  }
  const store::ObjectId here = Provide(slot, writing, value, contained);
  const std::uint16_t flags = writing != nullptr ? kFlagReply | kFlagObjects : kFlagReply;
  Conclude(completions_, slot, flags, writing != nullptr ? NameBytes(here) : value, then);
}

ObjectStore::Took ObjectStore::TakeRemoteResult(Slot* slot, std::string_view body,
                                              const std::shared_ptr<BulkSession>& bulk_session, bool wanted, Then then) {
  RemoteResult result;
  if (bulk_session == nullptr || !Parse(body, &result)) return Took::kBad;
  if (!wanted) {
    bulk_session->Decline(result.id);
    if (then.run != nullptr) completions_.Post(std::move(then.run));
    return Took::kLater;
  }
  slot->AddReference();
  const auto last = std::make_shared<Then>(std::move(then));  // what is posted is copied
  auto done = [this, slot, last, bytes = result.bytes, value = std::move(result.value)](
                  StatusOr<store::Writing> writing, const std::vector<store::ObjectId>& inside) {
    const SlotHold hold(slot);
    if (!writing.ok()) return AnswerMissing(completions_, slot, bytes, writing.status(), *last);
    FinishRemote(slot, value.empty() ? &*writing : nullptr, value, inside, *last);
  };
  if (result.in_frame) {
    bulk_session->TakeResult(result.id, std::move(result.names), std::move(done));
  } else {
    bulk_session->PullResult(result.id, std::move(result.names), std::move(done));
  }
  return Took::kLater;
}

}  // namespace troupe::actors
