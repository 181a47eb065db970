// This process's session with a cluster: requests to the head, word from it.
//
// Two kinds, as in Python (troupe/_cluster/session.py): a driver's own connection, and the control
// channel of an actor's process, whose worker relays. View: one process; thread-safe. Request
// blocks. A thread of its own reads what the head pushes and tells links, groups and launches; a
// second one runs what may block (Later). A driver's session outlives its head: what is followed is
// asked for anew once it is back.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "actors/api/actor_link.h"
#include "runtime/base/mutex.h"
#include "runtime/client/control_client.h"
#include "runtime/client/process_identity.h"

namespace troupe::api {

inline constexpr std::chrono::seconds kRequestLimit{30};

/// The launch or program that this process is a part of, and where it makes and looks up names.
struct SessionPlace {
  std::string address;  // for people
  std::string namespace_;
  std::string job;
  LaunchId launch;
  bool in_process = false;  // a process of the runtime
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<client::ControlClient> control, SessionPlace place);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  /// Starts its threads. `taken` is asked first whether a push is its own, `lost` is run when the
  /// connection has ended from the other side; both may be empty.
  using Taken = std::function<bool(const wire::Message&)>;
  void Start(Taken taken = {}, std::function<void()> lost = {});
  /// Ends it: what waits for word of the cluster ends with kConnection. Idempotent.
  void Close();

  /// The process's session; kConnection tells how to get one.
  static StatusOr<std::shared_ptr<Session>> Current();
  /// Replaces it; returns the one before.
  static std::shared_ptr<Session> SetCurrent(std::shared_ptr<Session> session);

  const SessionPlace& place() const { return place_; }
  client::ControlClient& control() { return *control_; }
  actors::IdentitySource identity() const;
  bool all_on_this_host() const { return all_on_this_host_; }

  /// Errors: what an ErrorReply says; kTimeout, kConnection.
  StatusOr<wire::Message> Request(wire::Body body, std::string attachment = {});
  /// Asks the cluster about itself; called first, for facts that a session knows from the start.
  Status LookAround();

  /// The link to an actor; `*fresh`: nobody of this process knew it.
  std::shared_ptr<ActorLink> LinkTo(const ActorId& actor, const std::string& class_name,
                                    bool* fresh) ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(const ActorId& actor) ABSL_LOCKS_EXCLUDED(mutex_);

  /// The latest word of a group, and of a launch; waits for one that satisfies `wanted`, until
  /// `until` of the call path's clock. Errors: kTimeout (without a text that says how long),
  /// kConnection.
  StatusOr<wire::GroupInfo> AwaitGroup(const GroupId& id,
                                       const std::function<bool(const wire::GroupInfo&)>& wanted,
                                       Instant until) ABSL_LOCKS_EXCLUDED(mutex_);
  StatusOr<wire::LaunchInfo> AwaitLaunch(const LaunchId& id,
                                         const std::function<bool(const wire::LaunchInfo&)>& wanted,
                                         Instant until) ABSL_LOCKS_EXCLUDED(mutex_);
  void Post(const wire::GroupInfo& info) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Posts an answer's state, which a later push may have overtaken.
  void PostReply(const wire::GroupInfo& info) ABSL_LOCKS_EXCLUDED(mutex_);
  void PostReply(const wire::LaunchInfo& info) ABSL_LOCKS_EXCLUDED(mutex_);
  void Post(const wire::LaunchInfo& info) ABSL_LOCKS_EXCLUDED(mutex_);
  /// From now on there is word of it: asks the head, unless it tells already. Errors: Request's.
  Status Follow(const GroupId& id) ABSL_LOCKS_EXCLUDED(mutex_);
  Status Follow(const LaunchId& id) ABSL_LOCKS_EXCLUDED(mutex_);
  void ForgetGroup(const GroupId& id) ABSL_LOCKS_EXCLUDED(mutex_);
  void ForgetLaunch(const LaunchId& id) ABSL_LOCKS_EXCLUDED(mutex_);

  /// Runs `action` soon, on a thread that may block; drops it once the session is over. Asked once
  /// per actor that nobody holds any more, and per return of the head: so many wait at most.
  void Later(std::function<void()> action) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Read();
  void Take(const wire::Message& message);
  void Resume();
  void RunLater();
  void End(const std::string& why) ABSL_LOCKS_EXCLUDED(mutex_);
  template <class Info, class Id>
  StatusOr<Info> Await(std::map<Id, Info>& known, const Id& id,
                       const std::function<bool(const Info&)>& wanted, Instant until)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<client::ControlClient> control_;
  const SessionPlace place_;
  const std::shared_ptr<client::ProcessIdentity> identity_;
  bool all_on_this_host_ = true;  // from LookAround on
  Taken taken_;
  std::function<void()> lost_;
  std::thread reader_;
  std::thread runner_;

  Mutex mutex_;
  CondVar changed_;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::string why_over_ ABSL_GUARDED_BY(mutex_);
  std::map<ActorId, std::shared_ptr<ActorLink>> links_ ABSL_GUARDED_BY(mutex_);
  std::map<GroupId, wire::GroupInfo> groups_ ABSL_GUARDED_BY(mutex_);
  std::map<LaunchId, wire::LaunchInfo> launches_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::function<void()>> later_ ABSL_GUARDED_BY(mutex_);
};

/// Throws the exception of include/troupe/error.h that the code stands for.
[[noreturn]] void ThrowError(ErrorCode code, const std::string& text);
[[noreturn]] void ThrowStatus(const Status& status);
/// The session, or throws.
std::shared_ptr<Session> NeedSession();

}  // namespace troupe::api
