#include "head/core/head_core.h"

#include <utility>

#include "head/core/dispatch.h"
#include "head/core/follow_ups.h"
#include "head/core/launched/archive/archive.h"
#include "head/core/launched/ending.h"
#include "head/core/launched/gang/regroup.h"
#include "head/core/launched/jobs/jobs.h"
#include "head/core/launched/launches.h"
#include "head/core/machine/apply.h"
#include "head/core/machine/lived_time.h"
#include "head/core/nodes/owners.h"
#include "head/core/nodes/roster.h"
#include "head/core/nodes/tokens.h"
#include "head/core/placed/actor_losses.h"
#include "head/core/placed/people/usage.h"
#include "head/core/placed/schedule.h"

namespace troupe::head {
namespace {

class Inputs {
 public:
  explicit Inputs(Turn& turn) : t_(turn) {}
  void operator()(const SessionOpened& i) { OpenSession(t_, i); }
  void operator()(const SessionClosed& i) { CloseSession(t_, i.session); }
  void operator()(const MessageFrom& i) {
    if (!HoldForRecall(t_, i)) OnMessage(t_, i);
  }
  void operator()(const Tick&) { OnTick(t_); }
  void operator()(const Appended&) {}
  void operator()(const ProbeDone& i) { OnProbe(t_, i); }
  void operator()(const WorkerSeen& i) { OnWorkerSeen(t_, i); }
  void operator()(const DiskFull& i) { t_.state.read_only = i.full; }
  void operator()(const TokenUsed& i) { NoteTokenUsed(t_, i.id); }
  void operator()(const PlanNow&) { Schedule(t_); }
  void operator()(const Archived& i) { OnArchived(t_, i); }
  void operator()(const Recalled& i) { OnRecalled(t_, i, OnMessage); }

 private:
  Turn& t_;
};

}  // namespace

void HeadCore::Replay(const Row& row) {
  Apply(state_, row.event);
  durable_ = last_sequence_ = row.sequence;
}

void HeadCore::NoteIncarnation(std::uint64_t seen) {
  state_.incarnation = std::max(state_.incarnation, seen);
}

Effects HeadCore::Start(Instant now, std::uint64_t wall_us) {
  Turn turn(state_, options_, seams_, now, wall_us, FollowUpFact);
  state_.replaying = false;
  state_.started = now;
  BeginLivedTime(turn);
  wire::HeadStarted started;
  started.incarnation = state_.incarnation + 1;
  started.wall_us = wall_us;
  started.version = options_.version;
  turn.Append(std::move(started));
  for (wire::TokenWritten token : options_.tokens) {
    token.created_lived_us = LivedMark(turn);
    if (state_.tokens.count(token.id) == 0) turn.Append(std::move(token));
  }
  RememberMoved(turn);
  CountAccounts(turn);
  AwaitNodes(turn);
  AwaitOwners(turn);
  ResumeLaunchTimers(turn);
  ResumeEndings(turn);
  ResumeJobs(turn);
  ResumeRegroups(turn);
  ResumeActorTimers(turn);
  state_.dirty = true;
  return Finish(turn);
}

Effects HeadCore::Handle(const Input& input, Instant now, std::uint64_t wall_us) {
  Turn turn(state_, options_, seams_, now, wall_us, FollowUpFact);
  if (const auto* appended = std::get_if<Appended>(&input)) {
    durable_ = std::max(durable_, appended->sequence);
  }
  if (std::holds_alternative<Tick>(input)) {
    // A head that was held up itself cannot tell who was silent.
    if (wake_at_ && now - *wake_at_ > options_.lag_max) ExtendLeases(turn, now - *wake_at_);
    wake_at_.reset();
  }
  ForgiveWait(turn);
  NoteLivedTime(turn);
  NoteUsage(turn);
  if (std::holds_alternative<PlanNow>(input)) plan_asked_ = false;
  std::visit(Inputs(turn), input);
  return Finish(turn);
}

// Forgives the silence of peers that wait for this head's messages, which wait for its disk: a node
// that registers, a client that comes back.
void HeadCore::ForgiveWait(Turn& turn) {
  if (held_.empty()) return;
  const Duration waited = turn.now - std::max(held_.front().since, forgiven_);
  if (waited <= options_.lag_max) return;
  ExtendLeases(turn, waited);
  forgiven_ = turn.now;
}

Effects HeadCore::Finish(Turn& turn) {
  SettleUsage(turn);
  Effects out;
  out.plan_soon = state_.dirty && !plan_asked_;
  plan_asked_ = plan_asked_ || out.plan_soon;
  for (wire::Event& event : turn.events) {
    out.append.push_back({++last_sequence_, std::move(event)});
  }
  for (Send& send : turn.sends) held_.push_back({last_sequence_, turn.now, std::move(send)});
  for (Close& close : turn.closes) held_.push_back({last_sequence_, turn.now, std::move(close)});
  out.probes = std::move(turn.probes);
  out.looks = std::move(turn.looks);
  out.certificates = std::move(turn.certificates);
  out.archive = std::move(turn.archive);
  out.recalls = std::move(turn.recalls);
  out.kept_logs = std::move(turn.kept_logs);
  out.kept_log_reads = std::move(turn.kept_log_reads);
  out.archived_until_us = turn.archived_until_us;
  while (!held_.empty() && held_.front().after <= durable_) {
    if (auto* send = std::get_if<Send>(&held_.front().effect)) {
      out.sends.push_back(std::move(*send));
    } else {
      out.closes.push_back(std::move(std::get<Close>(held_.front().effect)));
    }
    held_.pop_front();
  }
  stopping_ = stopping_ || turn.stop();
  out.stop = stopping_ && held_.empty();
  const std::optional<Instant> next = state_.timers.Next();
  if (next && (!wake_at_ || *next != *wake_at_)) {
    wake_at_ = *next;
    out.wake_at = *next;
  }
  return out;
}

}  // namespace troupe::head
