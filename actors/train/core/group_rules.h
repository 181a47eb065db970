// The life of one training group in one epoch, as one rank sees it: decided from events and the
// time, carried out by others. Pure.
//
//   FORMING --formed--> READY --stop--> STOPPING --quiet--> STOPPED --aborted--> RELEASED
//      |                  |                 \___________aborted (no revoke)________/
//      |                  +--release: finalized, destroyed------------------------> RELEASED
//      +--failed, late--> FAILED        +--stop--> STOPPING (abort at once)
//
//   GR1  After a stop of any kind only Abort: never Finalize, never Destroy.
//   GR2  What is READY is revoked where the library can, so that nothing a peer's kernel reads is
//        freed; what is forming, connecting or finalizing, or cannot be revoked, is aborted at
//        once.
//   GR3  A revoked group is aborted once all survivors have stopped, or `survivors_max` after its
//        own stop.
//   GR4  A call of the library that is over its time ends the process, which is one more death and
//        never a hang; a revoke that is over it is followed by an abort first.
//   GR5  The first reason of a stop stays.
//   GR6  Waiters are woken at the stop, before any call of the library, and once.
//   GR7  Forming and releasing have deadlines that name their start and length. Who fails to form
//        is told so at once and aborted.
//   GR8  Late events change nothing: a result of forming after the stop, a second stop, a stop of
//        what is released.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/time.h"

namespace troupe::train {

enum class GroupState { kForming, kReady, kStopping, kStopped, kReleased, kFailed };
const char* NameOf(GroupState state);

/// How long a group may take; measured from the event that begins it.
struct GroupTimes {
  Duration form_max = std::chrono::seconds(180);
  Duration release_max = std::chrono::seconds(60);
  Duration survivors_max = std::chrono::seconds(1);
  Duration call_max = std::chrono::seconds(1);  // a revoke, an abort, a destroy
};

/// The acts to do, in order.
enum class GroupAct {
  kInit,         // begin to form
  kWake,  // threads that wait for an operation get the reason
  kRevoke,       // stop what runs, free nothing
  kAbort,        // stop what runs and free
  kFinalize,     // flush, with all ranks
  kDestroy,      // free what is finalized
  kTellReady,    // operations may be started
  kTellFailed,  // the group will not form
  kTellStopped,  // nothing of it runs here any more
  kTellReleased,
  kEndProcess,  // the library is stuck
};

struct GroupEffects {
  std::vector<GroupAct> acts;
  std::string text;  // text of kWake, kTellFailed and kEndProcess

  bool Has(GroupAct act) const;
};

class GroupRules {
 public:
  /// `can_revoke`: the library has ncclCommRevoke. `name` stands before the sentence of a process's
  /// end: "group dp, epoch 3, rank 2 of 8".
  GroupRules(std::string name, GroupTimes times, bool can_revoke);

  GroupEffects OnBegin(Instant now);
  GroupEffects OnFormed(Instant now);
  GroupEffects OnFormFailed(Instant now, const std::string& why);
  /// A verdict, an asynchronous error of the library, a hang, a person.
  GroupEffects OnStop(Instant now, const std::string& reason);
  /// All ranks that live have said that they stopped.
  GroupEffects OnSurvivorsStopped(Instant now);
  GroupEffects OnRevoked(Instant now, bool quiet);
  GroupEffects OnAborted(Instant now);
  /// The orderly end.
  GroupEffects OnRelease(Instant now);
  GroupEffects OnFinalized(Instant now, bool quiet, const std::string& why = {});
  GroupEffects OnDestroyed(Instant now);
  GroupEffects OnTick(Instant now);

  GroupState state() const { return state_; }
  /// Why it was stopped, or failed; empty while neither.
  const std::string& reason() const { return reason_; }
  /// When OnTick has something to decide; nothing where it never has.
  std::optional<Instant> deadline() const;

 private:
  enum class Call { kNone, kInit, kRevoke, kAbort, kFinalize, kDestroy };

  GroupEffects Do(Call call, Instant now, GroupEffects effects);
  GroupEffects Fail(Instant now, const std::string& why);

  const std::string name_;
  const GroupTimes times_;
  const bool can_revoke_;
  GroupState state_ = GroupState::kForming;
  std::string reason_;
  Call call_ = Call::kNone;  // last call into the library without an answer
  Instant called_{};
  std::optional<Instant> abort_at_;  // once it is revoked
  bool survivors_stopped_ = false, released_ = false;
};

}  // namespace troupe::train
