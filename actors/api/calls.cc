#include "actors/api/calls.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <set>
#include <utility>
#include <vector>

#include "actors/api/session.h"
#include "actors/api/value_codec.h"
#include "actors/bulk/bulk_session.h"
#include "actors/caller/call_holds.h"
#include "actors/caller/reactor.h"
#include "actors/core/call/call_frame.h"
#include "actors/core/call/value_form.h"
#include "actors/net/now.h"
#include "actors/objects/object_store.h"

namespace troupe {
namespace api {
namespace {

using actors::ByteBuffer;
using actors::CallReactor;
using actors::Channel;

/// Nothing of the language's is to be let go of while a thread waits.
class NoHost final : public actors::WaitHost {
 public:
  void Suspend() override {}
  void Resume() override {}
  bool Interrupted() override { return false; }
  bool HandlesSignals() const override { return false; }
};

class KeptAlive final : public actors::Completion {
 public:
  explicit KeptAlive(std::shared_ptr<void> kept) : kept_(std::move(kept)) {}
  void Run() override {}

 private:
  const std::shared_ptr<void> kept_;
};

actors::WaitResult Await(const std::vector<actors::Answer*>& slots, std::size_t needed,
                         const std::vector<Channel*>& channels, Instant until) {
  actors::WaitRequest request;
  request.slots = slots.data();
  request.slot_count = slots.size();
  request.needed = needed;
  request.channels = channels.data();
  request.channel_count = channels.size();
  request.deadline = until;
  NoHost host;
  return CallReactor::Current().Wait(request, host);
}

/// From which size on values go to shared memory, as of a call from Python (frame_call.cc).
std::size_t LargeFrom(Channel::Place place) {
  if (place == Channel::Place::kHere) return actors::kLargeBytes;
  if (place == Channel::Place::kRemote) return actors::BulkSession::kFromBytes;
  return actors::RoomBeside(0);
}

Status AppendArgument(const Value& value, std::size_t large_from, ByteBuffer& frame,
                      actors::Handles* held) {
  TROUPE_ASSIGN(const std::string encoded, EncodeValue(value));
  if (encoded.size() < std::min(large_from, actors::RoomBeside(frame.size()))) {
    frame.Append(encoded.data(), encoded.size());
    return {};
  }
  TROUPE_ASSIGN(const store::Writing writing, WriteLarge(encoded));
  const store::ObjectId id =
      actors::ObjectStore::Current()->Put(writing, CallReactor::Current().NextLocalId(), {});
  held->Add(id);
  AppendObjectName(frame, id);
  return {};
}

StatusOr<actors::AnswerRef> Queue(Channel& channel, ByteBuffer& frame, std::uint16_t flags) {
  while (true) {
    Channel::Call call = channel.Issue(frame, flags);
    switch (call.issued) {
      case Channel::Issued::kOkDrain:
        CallReactor::Current().Drain(channel);
        [[fallthrough]];
      case Channel::Issued::kOk:
        return std::move(call.answer);
      case Channel::Issued::kFull:
        if (const actors::AnswerRef room = channel.WhenRoom())
          Await({room.get()}, 1, {&channel}, Instant::max());
        break;
      case Channel::Issued::kTooMany:
      case Channel::Issued::kEnded:
        return MakeError(ErrorCode::kInternal, "the channel takes no call");
    }
  }
}

}  // namespace

Instant DeadlineOf(const Timeout& timeout) {
  if (!timeout) return Instant::max();
  const Instant now = actors::Now();
  return *timeout > Instant::max() - now ? Instant::max() : now + Duration(*timeout);
}

StatusOr<std::shared_ptr<RefState>> IssueCall(ActorLink& link, const std::string& method,
                                              const Value::List& arguments,
                                              std::shared_ptr<void> keeps) {
  TROUPE_ASSIGN(std::shared_ptr<Channel> channel, link.Open());
  const actors::CallLimits limits;
  if (arguments.size() > limits.args_max || method.empty() ||
      method.size() > limits.name_bytes_max) {
    return MakeError(ErrorCode::kInvalid, "a call has a name of 1 to 1,024 bytes and at most " +
                                              std::to_string(limits.args_max) + " arguments");
  }
  const Channel::Place place = channel->place();
  ByteBuffer frame;
  frame.Extend(actors::kFrameHeadBytes);
  actors::CallHead head;
  head.arg_count = static_cast<std::uint16_t>(arguments.size());
  frame.AppendValue(head);
  frame.AppendValue(static_cast<std::uint16_t>(method.size()));
  frame.Append(method.data(), method.size());
  actors::Handles held;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Status added = AppendArgument(arguments[i], LargeFrom(place), frame, &held);
    if (!added.ok()) {
      return MakeError(ErrorCodeOf(added), "argument " + std::to_string(i + 1) + " of " + method +
                                               "(): " + MessageOf(added));
    }
  }
  if (actors::PaddedTo8(frame.size()) > limits.frame_bytes_max)
    return MakeError(ErrorCode::kTooLarge, actors::ArgumentsTooLarge(method, frame.size(), limits));
  std::uint16_t flags = actors::kFlagNamed;
  std::unique_ptr<actors::CallHolds> holds;
  if (!held.empty()) {
    flags |= actors::kFlagObjects;
    holds = std::make_unique<actors::CallHolds>(
        std::move(held), place == Channel::Place::kHere ? nullptr : channel->Bulk());
  }
  TROUPE_ASSIGN(actors::AnswerRef answer, Queue(*channel, frame, flags));
  CallReactor& reactor = CallReactor::Current();
  if (holds != nullptr) static_cast<void>(reactor.OnDone(answer.get(), std::move(holds)));
  if (keeps != nullptr)
    static_cast<void>(reactor.OnDone(answer.get(), std::make_unique<KeptAlive>(std::move(keeps))));
  return std::make_shared<RefState>(std::move(answer), std::move(channel), method);
}

namespace {

[[noreturn]] void ThrowTimeout(const RefState& state, const Timeout& timeout, std::time_t began) {
  char when[32];
  std::tm utc;
  ::gmtime_r(&began, &utc);
  std::strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
  throw TimeoutError(
      absl::StrFormat("no answer within %g s of %s: %s\n  it may still come: get it again, or with "
                      "a longer timeout",
                      std::chrono::duration<double>(*timeout).count(), when, state.Name()));
}

/// The body of kFlagTaskError: the exception (a pickle), its type, its text, where it was raised.
[[noreturn]] void ThrowTaskError(const RefState& state, std::string_view body) {
  actors::form::Tag tag;
  std::string_view content;
  std::size_t total = 0;
  std::string parts[3];
  if (actors::form::Split(body, &tag, &content, &total)) body.remove_prefix(total);
  for (std::string& part : parts) {
    if (!actors::form::Split(body, &tag, &content, &total)) break;
    if (tag == actors::form::kStr) part = content;
    body.remove_prefix(total);
  }
  std::string text =
      state.Name() + " raised " + (parts[0].empty() ? "an exception" : parts[0]) + ": " + parts[1];
  if (!parts[2].empty()) text += "\n" + parts[2];
  throw TaskError(text, parts[0], parts[2]);
}

Value ValueOf(const RefState& state) {
  const actors::Answer& answer = state.answer();
  std::string_view body = answer.bytes();
  if ((answer.flags() & actors::kFlagTaskError) != 0) ThrowTaskError(state, body);
  if ((answer.flags() & actors::kFlagRuntimeError) != 0) {
    const actors::RuntimeErrorView error = actors::ReadRuntimeError(body);
    ThrowError(error.code, std::string(error.text));
  }
  StatusOr<Value> value = [&]() -> StatusOr<Value> {
    if ((answer.flags() & actors::kFlagObjects) == 0) return DecodeValue(&body);
    const std::optional<store::ObjectId> id = actors::ReadObjectId(body);
    if (!id) return MakeError(ErrorCode::kInternal, "a result that names no object");
    return ValueOfObject(*id);
  }();
  if (value.ok()) return *std::move(value);
  ThrowError(ErrorCodeOf(value.status()),
             "the result of " + state.Name() + ": " + MessageOf(value.status()));
}

const RefState& Held(const std::shared_ptr<RefState>& state) {
  if (state == nullptr) throw InvalidError("this Ref is of no call");
  return *state;
}

}  // namespace
}  // namespace api

Value AnyRef::GetValue(Timeout timeout) const {
  const RefState& state = api::Held(state_);
  actors::Answer& answer = state.answer();
  if (!answer.done()) {
    const std::time_t began = std::time(nullptr);
    answer.Ask();
    if (api::Await({&answer}, 1, {&state.channel()}, api::DeadlineOf(timeout)) !=
            actors::WaitResult::kDone &&
        !answer.done())
      api::ThrowTimeout(state, timeout, began);
  }
  return api::ValueOf(state);
}

bool AnyRef::done() const { return api::Held(state_).answer().done(); }

TimeLeft::TimeLeft(Timeout timeout)
    : until_(timeout ? api::DeadlineOf(timeout).time_since_epoch() : std::chrono::nanoseconds(0)),
      ends_(timeout.has_value()) {}

Timeout TimeLeft::left() const {
  if (!ends_) return std::nullopt;
  return std::max(std::chrono::nanoseconds(0),
                  std::chrono::nanoseconds(until_ - actors::Now().time_since_epoch()));
}

std::vector<bool> WaitFor(const std::vector<std::shared_ptr<RefState>>& states, std::size_t count,
                          Timeout timeout) {
  if (count < 1 || count > states.size()) {
    throw InvalidError("Wait() for " + std::to_string(count) + " of " +
                       std::to_string(states.size()) + " refs: it is from 1 to their number");
  }
  constexpr std::size_t kChannelsPolled = 8;
  std::vector<actors::Answer*> slots;
  std::vector<actors::Channel*> channels;
  std::set<actors::Answer*> listed;
  for (const std::shared_ptr<RefState>& state : states) {
    actors::Answer* const slot = &api::Held(state).answer();
    if (!listed.insert(slot).second)
      throw InvalidError("Wait() was given the same ref twice: " + state->Name());
    slots.push_back(slot);
    slot->Ask();
    actors::Channel* const channel = &state->channel();
    if (channels.size() < kChannelsPolled &&
        std::find(channels.begin(), channels.end(), channel) == channels.end())
      channels.push_back(channel);
  }
  api::Await(slots, count, channels, api::DeadlineOf(timeout));
  std::vector<bool> done;
  for (actors::Answer* slot : slots) done.push_back(slot->done());
  return done;
}

}  // namespace troupe
