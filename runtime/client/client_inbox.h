// The inbox on which threads of a process wait for input of its control channel: the answers to
// their requests, and pushes of the peer.
//
// View: one client; its own lock guards all of it. Thread-safe. Request and NextPush block the
// calling thread; the client's loop, which alone has the connection, takes what is to be sent
// from here and delivers what came. Which answer belongs to what, and what a lost connection
// does, is decided by RequestTable and PushQueue, which take no lock. In a forked child nothing
// of it may be called.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/client/polled_wait.h"
#include "runtime/client/push_queue.h"
#include "runtime/client/request_table.h"

namespace troupe::client {

class ClientInbox {
 public:
  /// `to_send`: there is something for TakeUnsent. Called with the lock held: it posts to the
  /// loop, and nothing else.
  explicit ClientInbox(std::function<void()> to_send) : to_send_(std::move(to_send)) {}
  ClientInbox(const ClientInbox&) = delete;
  ClientInbox& operator=(const ClientInbox&) = delete;

  // -- any thread: as in ControlClient --
  /// `peer` is what an error calls who did not answer.
  StatusOr<wire::Message> Request(wire::Message message, std::optional<Duration> limit,
                                  const PollHook& poll, const std::string& peer);
  StatusOr<bool> Ask(wire::Message message);
  StatusOr<std::optional<Push>> NextPush(std::optional<Duration> limit, const PollHook& poll);
  /// Ok, or why it ended.
  Status status() const;

  // -- the client's loop --
  std::vector<RequestTable::Outgoing> TakeUnsent();
  void Answer(RequestTable::Id id, StatusOr<wire::Message> answer);
  /// False: more wait than may (PQ-2).
  bool AddPush(wire::Message message);
  /// The first connection.
  void Connected();
  /// The client is back: who waits for pushes is told, with the Welcome.
  void Back(wire::Body welcome);
  /// The connection is gone, perhaps for a while: who waits for pushes is told why.
  void Lost(const Status& why, const std::string& peer);
  /// For good: every wait ends with `why`, the first that was given.
  void End(const Status& why);

 private:
  void AddedLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void QueueLocked(wire::Body body, std::shared_ptr<const wire::Message> asked = nullptr)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RefuseLocked(RequestTable::Refusal refusal) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeLocked(RequestTable::Id id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeAllLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<void()> to_send_;
  mutable Mutex mutex_;
  RequestTable requests_ ABSL_GUARDED_BY(mutex_);
  std::map<RequestTable::Id, CondVar> waits_ ABSL_GUARDED_BY(mutex_);  // each of one thread
  PushQueue pushes_ ABSL_GUARDED_BY(mutex_);
  CondVar pushed_;
};

}  // namespace troupe::client
