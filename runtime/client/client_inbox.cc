#include "runtime/client/client_inbox.h"

#include <utility>

#include "runtime/async/deadline.h"
#include "runtime/async/os_random.h"
#include "runtime/wire/error_reply.h"
#include "runtime/wire/repeat.h"

namespace troupe::client {
namespace {

/// By its name the head recognises a request that comes twice.
void NameIt(wire::Message& message) {
  async::OsRandom random;
  wire::NameRequest(message.body, random);
}

}  // namespace

// ---- any thread -------------------------------------------------------------------------------

StatusOr<wire::Message> ClientInbox::Request(wire::Message message, std::optional<Duration> limit,
                                             const PollHook& poll, const std::string& peer) {
  const std::string kind(wire::NameOf(message.body));
  NameIt(message);
  MutexLock lock(mutex_);
  if (!requests_.ended().ok()) return requests_.ended();
  const RequestTable::Id id = requests_.Add(std::move(message), limit, WaitClock::now());
  AddedLocked();
  CondVar& answered = waits_[id];
  PolledWait wait(poll);
  Status waited;
  while (waited.ok() && !requests_.Answered(id)) {
    waited = wait.Some(mutex_, answered, requests_.Deadline(id, WaitClock::now()));
  }
  waits_.erase(id);
  std::optional<StatusOr<wire::Message>> answer = requests_.Forget(id);
  if (!waited.ok() && ErrorCodeOf(waited) == ErrorCode::kTimeout && limit) {
    return async::TimeoutError(*limit, "the answer of " + peer + " to " + kind);
  }
  if (!waited.ok()) return waited;
  return *std::move(answer);
}

StatusOr<bool> ClientInbox::Ask(wire::Message message) {
  NameIt(message);
  const MutexLock lock(mutex_);
  if (!requests_.ended().ok()) return requests_.ended();
  if (!requests_.AddUnwaited(std::move(message))) return false;
  AddedLocked();
  return true;
}

/// A burst of calls causes one turn of the loop.
void ClientInbox::AddedLocked() {
  if (requests_.unsent() == 1) to_send_();
}

StatusOr<std::optional<Push>> ClientInbox::NextPush(std::optional<Duration> limit,
                                                    const PollHook& poll) {
  std::optional<WaitClock::time_point> until;
  if (limit) until = WaitClock::now() + *limit;
  MutexLock lock(mutex_);
  PolledWait wait(poll);
  Status waited;
  while (waited.ok() && pushes_.empty() && requests_.ended().ok())
    waited = wait.Some(mutex_, pushed_, until);
  std::optional<Push> next = pushes_.Take();
  if (next) return next;
  if (waited.ok()) return requests_.ended();
  if (ErrorCodeOf(waited) == ErrorCode::kTimeout) return std::optional<Push>();
  return waited;
}

Status ClientInbox::status() const {
  const MutexLock lock(mutex_);
  return requests_.ended();
}

// ---- the client's loop ------------------------------------------------------------------------

std::vector<RequestTable::Outgoing> ClientInbox::TakeUnsent() {
  const MutexLock lock(mutex_);
  return requests_.TakeUnsent();
}

void ClientInbox::Answer(RequestTable::Id id, StatusOr<wire::Message> answer) {
  const MutexLock lock(mutex_);
  std::optional<RequestTable::Refusal> refusal = requests_.Answer(id, std::move(answer));
  if (refusal) return RefuseLocked(*std::move(refusal));
  WakeLocked(id);
}

bool ClientInbox::AddPush(wire::Message message) {
  const MutexLock lock(mutex_);
  const bool within = pushes_.Add(Push{std::move(message), nullptr});
  pushed_.NotifyOne();
  return within;
}

void ClientInbox::Connected() {
  const MutexLock lock(mutex_);
  requests_.Connected(WaitClock::now());
}

void ClientInbox::Back(wire::Body welcome) {
  const MutexLock lock(mutex_);
  requests_.Connected(WaitClock::now());
  WakeAllLocked();  // ends their waits
  QueueLocked(std::move(welcome));
}

void ClientInbox::Lost(const Status& why, const std::string& peer) {
  const MutexLock lock(mutex_);
  QueueLocked(wire::ErrorReplyOf(MakeError(ErrorCode::kConnection, MessageOf(why))));
  std::vector<RequestTable::Id> answered;
  for (RequestTable::Refusal& each : requests_.Lost(peer, WaitClock::now(), answered))
    RefuseLocked(std::move(each));
  for (const RequestTable::Id id : answered) WakeLocked(id);
}

void ClientInbox::End(const Status& why) {
  const MutexLock lock(mutex_);
  requests_.End(why);
  WakeAllLocked();
  pushed_.NotifyAll();
}

void ClientInbox::QueueLocked(wire::Body body, std::shared_ptr<const wire::Message> asked) {
  wire::Message message;
  message.body = std::move(body);
  static_cast<void>(
      pushes_.Add(Push{std::move(message), std::move(asked)}));  // few, and from this side
  pushed_.NotifyOne();
}

void ClientInbox::RefuseLocked(RequestTable::Refusal refusal) {
  QueueLocked(wire::ErrorReplyOf(refusal.why), std::move(refusal.asked));
}

void ClientInbox::WakeLocked(RequestTable::Id id) {
  const auto found = waits_.find(id);
  if (found != waits_.end()) found->second.NotifyAll();
}

void ClientInbox::WakeAllLocked() {
  for (auto& [id, wait] : waits_) wait.NotifyAll();
}

}  // namespace troupe::client
