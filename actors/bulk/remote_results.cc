#include "actors/bulk/remote_results.h"

#include <absl/strings/str_format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/core/call/call_frame.h"
#include "actors/core/call/object_name.h"
#include "actors/core/call/result_body.h"
#include "actors/core/remote/remote_held.h"
#include "actors/slots/completions.h"

namespace troupe::actors {
namespace {

/// Answers a call whose result does not come; a lack of memory keeps its own error.
void AnswerMissing(Completions& completions, Answer* slot, std::uint64_t bytes, const Status& why,
                   ResultThen& then) {
  ByteBuffer body;
  const bool short_of_memory = ErrorCodeOf(why) == ErrorCode::kTooLarge;
  AppendRuntimeError(
      body, short_of_memory ? ErrorCode::kTooLarge : kResultLost,
      absl::StrFormat("the result, of %u bytes, could not be fetched from its actor's host: %s",
                      bytes, MessageOf(why)));
  Conclude(completions, slot, kFlagReply | kFlagRuntimeError, body.view(), then);
}

}  // namespace

std::shared_ptr<ResultHold> OfferResult(ObjectStore& store, const store::Writing* writing,
                                        std::string_view bytes, Handles contained,
                                        const std::shared_ptr<BulkSession>& bulk_session,
                                        std::string* body) {
  std::vector<store::ObjectId> names;
  for (const store::ObjectId& each : contained.ids()) names.push_back(store.RemoteNameOf(each));
  const std::uint64_t number = store.completions().NextLocalId();
  ResultBody result;
  result.kind = writing != nullptr ? ResultBody::kRemote : ResultBody::kRemoteInFrame;
  result.contained = static_cast<std::uint32_t>(names.size());
  result.maker[0] = store.self().hi;
  result.maker[1] = store.self().lo;
  result.generation = number;
  result.bytes = writing != nullptr ? writing->bytes : bytes.size();
  body->assign(reinterpret_cast<const char*>(&result), sizeof result);
  for (const store::ObjectId& name : names) body->append(NameBytes(name));
  body->append(bytes);
  const store::ObjectId id{store.self(), number};
  Handles held;
  if (writing != nullptr) {
    held.Add(store.Put(*writing, number, contained.ids()));
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
  if (read.contained > RemoteHeld::kInsideMax) return false;
  if (read.contained > body.size() / kObjectIdBytes) return false;
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

/// A reply that was taken apart, and whose value is awaited.
struct Awaited {
  AnswerRef slot;
  ResultThen then;
  std::uint64_t bytes = 0;
  std::string value;  // value of a result that came in the frame
};

/// Called when the value, and the objects inside it, are here.
void FinishRemote(ObjectStore& store, Awaited& awaited, const store::Writing* writing,
                  const std::vector<store::ObjectId>& contained) {
  if (writing == nullptr) store.NameAsHere(&awaited.value);
  Answer* const slot = awaited.slot.get();
  const store::ObjectId here = store.Provide(slot, writing, awaited.value, contained);
  const std::uint16_t flags = writing != nullptr ? kFlagReply | kFlagObjects : kFlagReply;
  Conclude(store.completions(), slot, flags, writing != nullptr ? NameBytes(here) : awaited.value,
           awaited.then);
}

}  // namespace

ObjectStore::Took TakeRemoteResult(ObjectStore& store, Answer* slot, std::string_view body,
                                   const std::shared_ptr<BulkSession>& bulk_session, bool wanted,
                                   ResultThen then) {
  RemoteResult result;
  if (bulk_session == nullptr || !Parse(body, &result)) return ObjectStore::Took::kBad;
  if (!wanted) {
    bulk_session->Decline(result.id);
    if (then.run != nullptr) store.completions().Post(std::move(then.run));
    return ObjectStore::Took::kLater;
  }
  // Posted work is copied, and the answer is given once.
  const auto shared = std::make_shared<Awaited>(
      Awaited{AnswerRef::Another(slot), std::move(then), result.bytes, std::move(result.value)});
  auto done = [&store, shared](StatusOr<store::Writing> writing,
                               const std::vector<store::ObjectId>& inside) {
    Awaited awaited = std::move(*shared);  // the slot is given back here
    if (!writing.ok()) {
      return AnswerMissing(store.completions(), awaited.slot.get(), awaited.bytes, writing.status(),
                           awaited.then);
    }
    FinishRemote(store, awaited, awaited.value.empty() ? &*writing : nullptr, inside);
  };
  if (result.in_frame) {
    bulk_session->TakeResult(result.id, std::move(result.names), std::move(done));
  } else {
    bulk_session->PullResult(result.id, std::move(result.names), std::move(done));
  }
  return ObjectStore::Took::kLater;
}

}  // namespace troupe::actors
