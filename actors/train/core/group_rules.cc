#include "actors/train/core/group_rules.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace troupe::train {
namespace {

std::string SecondsText(Duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", Seconds(duration));
  return text;
}

std::string After(const std::string& what, Duration most) {
  return what + " after " + SecondsText(most);
}

}  // namespace

const char* NameOf(GroupState state) {
  constexpr const char* names[] = {"FORMING", "READY", "STOPPING", "STOPPED", "RELEASED", "FAILED"};
  return names[static_cast<int>(state)];
}

bool GroupEffects::Has(GroupAct act) const {
  return std::find(acts.begin(), acts.end(), act) != acts.end();
}

GroupRules::GroupRules(std::string name, GroupTimes times, bool can_revoke)
    : name_(std::move(name)), times_(times), can_revoke_(can_revoke) {}

/// Remembers what the library is asked for, and since when.
GroupEffects GroupRules::Do(Call call, Instant now, GroupEffects effects) {
  constexpr GroupAct acts[] = {GroupAct::kInit,  GroupAct::kInit,     GroupAct::kRevoke,
                               GroupAct::kAbort, GroupAct::kFinalize, GroupAct::kDestroy};
  call_ = call;
  called_ = now;
  effects.acts.push_back(acts[static_cast<int>(call)]);
  return effects;
}

GroupEffects GroupRules::OnBegin(Instant now) { return Do(Call::kInit, now, {}); }

GroupEffects GroupRules::OnFormed(Instant now) {
  if (state_ != GroupState::kForming) return {};  // GR8
  state_ = GroupState::kReady;
  call_ = Call::kNone;
  return {{GroupAct::kTellReady}, {}};
}

GroupEffects GroupRules::Fail(Instant now, const std::string& why) {
  state_ = GroupState::kFailed;
  reason_ = why;
  return Do(Call::kAbort, now, {{GroupAct::kWake, GroupAct::kTellFailed}, why});
}

GroupEffects GroupRules::OnFormFailed(Instant now, const std::string& why) {
  if (state_ != GroupState::kForming) return {};
  return Fail(now, "not formed: " + why);
}

GroupEffects GroupRules::OnStop(Instant now, const std::string& reason) {
  if (state_ != GroupState::kForming && state_ != GroupState::kReady) return {};  // GR5, GR8
  const bool quiet = state_ == GroupState::kReady && call_ == Call::kNone;
  if (call_ == Call::kDestroy) return {};  // local by then, and waits for nobody
  state_ = GroupState::kStopping;
  reason_ = reason;
  return Do(quiet && can_revoke_ ? Call::kRevoke : Call::kAbort, now,
            {{GroupAct::kWake}, reason});  // GR2, GR6
}

GroupEffects GroupRules::OnRevoked(Instant now, bool quiet) {
  if (state_ != GroupState::kStopping || call_ != Call::kRevoke) return {};
  if (!quiet) return Do(Call::kAbort, now, {});
  state_ = GroupState::kStopped;
  call_ = Call::kNone;
  GroupEffects effects{{GroupAct::kTellStopped}, {}};
  if (survivors_stopped_) return Do(Call::kAbort, now, std::move(effects));
  abort_at_ = now + times_.survivors_max;
  return effects;
}

GroupEffects GroupRules::OnSurvivorsStopped(Instant now) {
  survivors_stopped_ = true;
  if (state_ != GroupState::kStopped || call_ != Call::kNone) return {};
  abort_at_.reset();
  return Do(Call::kAbort, now, {});
}

GroupEffects GroupRules::OnAborted(Instant now) {
  if (call_ != Call::kAbort) return {};
  call_ = Call::kNone;
  GroupEffects effects;
  if (state_ == GroupState::kStopping) effects.acts.push_back(GroupAct::kTellStopped);
  effects.acts.push_back(GroupAct::kTellReleased);
  if (state_ != GroupState::kFailed) state_ = GroupState::kReleased;
  return effects;
}

GroupEffects GroupRules::OnRelease(Instant now) {
  if (state_ != GroupState::kReady || released_) return {};  // GR1
  released_ = true;
  return Do(Call::kFinalize, now, {});
}

GroupEffects GroupRules::OnFinalized(Instant now, bool quiet, const std::string& why) {
  if (state_ != GroupState::kReady || call_ != Call::kFinalize) return {};
  if (quiet) return Do(Call::kDestroy, now, {});
  return OnStop(now, "a rank did not come to the release: " + why);
}

GroupEffects GroupRules::OnDestroyed(Instant now) {
  if (call_ != Call::kDestroy) return {};
  call_ = Call::kNone;
  state_ = GroupState::kReleased;
  return {{GroupAct::kTellReleased}, {}};
}

std::optional<Instant> GroupRules::deadline() const {
  switch (call_) {
    case Call::kNone:
      return abort_at_;
    case Call::kInit:
      return called_ + times_.form_max;
    case Call::kFinalize:
      return called_ + times_.release_max;
    default:
      return called_ + times_.call_max;
  }
}

GroupEffects GroupRules::OnTick(Instant now) {
  const auto due = deadline();
  if (!due || now < *due) return {};
  switch (call_) {
    case Call::kNone:  // GR3
      abort_at_.reset();
      return Do(Call::kAbort, now, {});
    case Call::kInit:  // GR7
      return Fail(now, After("not formed, counted from its beginning,", times_.form_max) +
                           ": a rank never came, or the network between the ranks is cut");
    case Call::kFinalize:
      return OnStop(now, After("not every rank came to the release, counted from this one's,",
                               times_.release_max));
    case Call::kRevoke:
      return Do(Call::kAbort, now, {});  // GR4
    case Call::kAbort:
    case Call::kDestroy:
      break;
  }
  GroupEffects effects{{GroupAct::kEndProcess}, {}};
  effects.text = name_ + ": " +
                 After(call_ == Call::kAbort ? "ncclCommAbort has not returned"
                                             : "ncclCommDestroy has not returned",
                       times_.call_max) +
                 ": the library is stuck, and this process ends";
  call_ = Call::kNone;  // once
  return effects;
}

}  // namespace troupe::train
