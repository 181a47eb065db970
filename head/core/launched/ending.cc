#include "head/core/launched/ending.h"

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "head/core/launched/epoch_ends.h"
#include "head/core/launched/launch_views.h"
#include "head/core/launched/markers.h"
#include "head/core/launched/rank_ends.h"
#include "head/core/machine/verdict.h"
#include "head/core/machine/wire_convert.h"
#include "head/core/nodes/roster.h"

namespace troupe::head {
namespace {

// for ranks of a launch that timed out to say where they were
constexpr Duration kWhereWait = std::chrono::seconds(2);
// From the end of the grace, when the worker kills, until the marker is written without its word.
constexpr Duration kKillMargin = std::chrono::seconds(5);

bool AttemptsLeft(const Launch& launch) {
  return launch.epoch - launch.preemptions < launch.spec.attempts_max;
}

// A failure that is no symptom, so that a cancel comes after it.
bool CauseIsKnown(const Launch& launch) {
  if (!launch.on_nodes()) return false;
  if (launch.ending.closed) return true;
  return !launch.stop_asked && Failing(launch) && CauseOf(launch).grade < Grade::kEarlyReturn;
}

void SendStop(Turn& turn, const Launch& launch, const NodeId& node) {
  wire::StopRanks order = launch.ending.order;
  const Duration left = launch.ending.due - kKillMargin - turn.now;
  order.grace_ms = static_cast<std::uint32_t>(std::max<std::int64_t>(0, Millis(left)));
  turn.ToNode(node, std::move(order));
}

void SendQuestion(Turn& turn, const Launch& launch, const NodeId& node) {
  wire::AskRanks ask;
  ask.launch = launch.id;
  ask.epoch = launch.epoch;
  ask.question = launch.ending.question;
  turn.ToNode(node, ask);
}

// The marker CANCELLED, as it was asked for.
Verdict CancelledVerdict(const Launch& launch) {
  Verdict verdict;
  verdict.outcome = wire::Outcome::kCancelled;
  verdict.exit_code = 130;
  if (!launch.stop_asked) return verdict;
  verdict.cause = launch.stop_asked->reason;
  if (!launch.stop_asked->timed_out) return verdict;
  verdict.failure.cause = verdict.cause;
  verdict.failure.kind = wire::FailureKind::kTimedOut;
  verdict.failure.traceback = WhereRanksWere(launch);
  return verdict;
}

// The marker, or the end of this epoch alone.
void Finish(Turn& turn, Launch& launch) {
  const std::vector<Waiter> completes = std::move(launch.ending.completes);
  if (launch.stop_asked) {
    WriteMarker(turn, launch, CancelledVerdict(launch));
  } else {
    Cause cause;
    if (launch.ending.closed) {
      cause.failure = launch.ending.verdict;
      cause.drivers_word = launch.ending.drivers_word;
    } else {
      cause = CauseOf(launch);
    }
    if (cause.drivers_word || !AttemptsLeft(launch)) {
      Verdict verdict;
      verdict.outcome = wire::Outcome::kFailed;
      verdict.exit_code = ExitCodeOf(cause.failure);
      if (verdict.exit_code == 0) verdict.exit_code = 1;  // FAILED never exits 0
      verdict.failure = std::move(cause.failure);
      if (cause.drivers_word) verdict.request = launch.ending.complete;
      WriteMarker(turn, launch, std::move(verdict));
    } else {
      EndEpoch(turn, launch, std::move(cause.failure));
    }
  }
  for (const Waiter& waiter : completes) {
    if (launch.marker) {
      turn.SendTo(waiter.route, wire::MarkerReply{*launch.marker}, {}, waiter.request);
      continue;
    }
    wire::ErrorReply fenced;
    fenced.code = static_cast<std::uint16_t>(ErrorCode::kFenced);
    fenced.text = "this epoch of launch " + launch.id.Short() + " is over; another one follows";
    turn.SendTo(waiter.route, std::move(fenced), {}, waiter.request);
  }
}

// E3: nothing more is waited for.
bool MayFinish(const Turn& turn, const Launch& launch) {
  const Ending& ending = launch.ending;
  if (!AllEnded(launch)) return ending.due <= turn.now;
  if (ending.silent_until <= turn.now) return true;
  return std::all_of(ending.silent.begin(), ending.silent.end(), [&launch](std::uint32_t r) {
    return launch.ranks[r].done.outcome != wire::Outcome::kNone;
  });
}

// Ranks that still run are asked once; those of nodes that are lost have no word.
void AwaitWheres(Turn& turn, Launch& launch) {
  launch.ending.silent_until = turn.now + kWhereWait;
  for (std::uint32_t r = 0; r < launch.ranks.size(); ++r) {
    const Node* node = turn.SeeNode(launch.ranks[r].node);
    const bool runs = launch.ranks[r].done.outcome == wire::Outcome::kNone && node != nullptr &&
                      !node->session.IsNil();
    if (runs && launch.ranks[r].where.empty()) launch.ending.silent.insert(r);
  }
  turn.Arm(launch.ending.silent_until, TimerKind::kEnding, launch.id);
}

// From now on the marker waits only for the ranks.
void Stop(Turn& turn, Launch& launch, wire::StopRanks order, Duration grace) {
  Ending& ending = launch.ending;
  ending.step = Ending::Step::kStopping;
  ending.awaited.clear();
  ending.due = turn.now + grace + kKillMargin;
  order.launch = launch.id;
  order.epoch = launch.epoch;
  if (order.signal == 0) order.signal = SIGTERM;
  ending.order = std::move(order);
  ending.silent.clear();
  if (ending.order.where) AwaitWheres(turn, launch);
  if (MayFinish(turn, launch)) return Finish(turn, launch);
  for (const NodeId& node : launch.nodes) SendStop(turn, launch, node);
  turn.Arm(ending.due, TimerKind::kEnding, launch.id);
  PushLaunch(turn, launch);
}

void StopForFailure(Turn& turn, Launch& launch, const wire::Failure& failure) {
  wire::StopRanks order;
  order.outcome = wire::Outcome::kFailed;
  order.exit_code = std::max(ExitCodeOf(failure), 1);
  order.reason = failure.cause;
  Stop(turn, launch, std::move(order), StopGrace(launch));
}

void Close(Turn& turn, Launch& launch, const Cause& cause) {
  // A symptom is the verdict only as long as nothing better is known.
  launch.ending.closed = cause.grade < Grade::kEarlyReturn;
  launch.ending.verdict = cause.failure;
  launch.ending.drivers_word = cause.drivers_word;
  StopForFailure(turn, launch, cause.failure);
}

// The verdict's next step (E2).
void Consider(Turn& turn, Launch& launch) {
  const Cause cause = CauseOf(launch);
  if (cause.grade < Grade::kEarlyReturn) return Close(turn, launch, cause);
  Ending& ending = launch.ending;
  if (ending.step == Ending::Step::kNo) {
    ending.step = Ending::Step::kAsking;
    ending.question = ++turn.state.questions;
    for (const NodeId& node : launch.nodes) {
      const Node* known = turn.SeeNode(node);
      if (known != nullptr && !known->dead) ending.awaited.insert(node);
    }
    for (const NodeId& node : ending.awaited) SendQuestion(turn, launch, node);
  }
  if (ending.awaited.empty()) Close(turn, launch, cause);
}

}  // namespace

Duration StopGrace(const Launch& launch) {
  return std::chrono::milliseconds(launch.spec.stop_grace_ms);
}

void OnRankEnded(Turn& turn, Launch& launch) {
  if (launch.ending.step == Ending::Step::kStopping) {
    if (MayFinish(turn, launch)) Finish(turn, launch);
    return;
  }
  if (Failing(launch)) return Consider(turn, launch);
  turn.Happened(fact::EpochGoesOn{launch});
}

void FailEpoch(Turn& turn, Launch& launch, wire::Failure failure) {
  if (!launch.open() || launch.ending.step != Ending::Step::kNo) return;
  launch.ending.closed = true;
  launch.ending.verdict = std::move(failure);
  StopForFailure(turn, launch, wire::Failure(launch.ending.verdict));
}

void StopLaunch(Turn& turn, Launch& launch, const StopOrder& order) {
  if (!launch.open()) return;
  const bool failed = CauseIsKnown(launch) && !AttemptsLeft(launch);
  if (!launch.stop_asked && !failed) {
    wire::CancelRequested cancel;
    cancel.launch = launch.id;
    cancel.reason = order.cause;
    cancel.hard = true;
    cancel.grace_ms = static_cast<std::uint32_t>(Millis(order.grace));
    cancel.signal = order.signal;
    cancel.timed_out = order.timed_out;
    turn.Append(std::move(cancel));
  }
  if (!launch.on_nodes() || launch.spec.mode == wire::LaunchMode::kCommand) {
    WriteMarker(turn, launch, CancelledVerdict(launch));
    return;
  }
  Duration grace = order.grace;
  if (launch.ending.step == Ending::Step::kStopping) {
    grace = std::min(grace, std::max(Duration::zero(), launch.ending.due - kKillMargin - turn.now));
  }
  if (failed) {  // closed with what is known
    if (!launch.ending.closed) {
      const Cause cause = CauseOf(launch);
      launch.ending.closed = true;
      launch.ending.verdict = cause.failure;
      launch.ending.drivers_word = cause.drivers_word;
    }
  }
  wire::StopRanks stop;
  stop.outcome = wire::Outcome::kCancelled;
  stop.exit_code = 130;
  stop.signal = order.signal;
  stop.reason = order.cause;
  stop.where = order.timed_out && launch.phase == wire::LaunchState::kRunning;
  Stop(turn, launch, std::move(stop), grace);
}

void LoseReservation(Turn& turn, Launch& launch, const Node& node, const std::string& why) {
  for (std::size_t r = 0; r < launch.ranks.size(); ++r) {
    if (launch.ranks[r].node != node.id || launch.ranks[r].done.outcome != wire::Outcome::kNone)
      continue;
    FailRank(turn, launch,
             FailureOn(turn, launch, static_cast<std::int32_t>(r),
                       wire::FailureKind::kReservationLost, why));
  }
  if (!launch.ending.closed && !Failing(launch)) {
    launch.ending.closed = true;
    launch.ending.verdict = FailureOn(turn, launch, -1, wire::FailureKind::kReservationLost, why);
  }
  Finish(turn, launch);
}

void OnRanksSeen(Turn& turn, Node& node, const wire::RanksSeen& message) {
  Launch* launch = turn.FindLaunch(message.launch);
  if (launch == nullptr || !launch->on_nodes() || launch->epoch != message.epoch) return;
  Ending& ending = launch->ending;
  if (ending.step != Ending::Step::kAsking || ending.question != message.question) return;
  ending.awaited.erase(node.id);
  Settle(turn, node);  // missing facts after a new start are known now
  if (ending.step == Ending::Step::kAsking) Consider(turn, *launch);
}

void OnRankWhere(Turn& turn, Node& node, const wire::RankWhere& message) {
  Launch* launch = turn.FindLaunch(message.launch);
  if (launch == nullptr || !launch->on_nodes() || launch->epoch != message.epoch) return;
  if (message.rank >= launch->ranks.size() || launch->ranks[message.rank].node != node.id) return;
  launch->ranks[message.rank].where = message.text.substr(0, kWhereBytesMax);
  if (launch->ending.silent.erase(message.rank) > 0 && MayFinish(turn, *launch))
    Finish(turn, *launch);
}

void ForgetNodeInEndings(Turn& turn, const NodeId& node) {
  std::vector<LaunchId> settled;
  for (auto& [id, launch] : turn.state.launches) {
    if (launch.on_nodes() && launch.ending.awaited.erase(node) > 0) settled.push_back(id);
  }
  for (const LaunchId& id : settled) Consider(turn, *turn.FindLaunch(id));
}

void ResumeEndingOn(Turn& turn, const Launch& launch, const NodeId& node) {
  if (launch.ending.step == Ending::Step::kStopping) SendStop(turn, launch, node);
  if (launch.ending.awaited.count(node) > 0) SendQuestion(turn, launch, node);
}

void OnEndingTimer(Turn& turn, const LaunchId& id) {
  Launch* launch = turn.FindLaunch(id);
  if (launch == nullptr || !launch->on_nodes() || launch->ending.step != Ending::Step::kStopping)
    return;
  if (MayFinish(turn, *launch)) Finish(turn, *launch);
}

void ResumeEndings(Turn& turn) {
  std::vector<LaunchId> open;
  for (const auto& [id, launch] : turn.state.launches) {
    if (launch.on_nodes() && (launch.stop_asked || Failing(launch))) open.push_back(id);
  }
  for (const LaunchId& id : open) {
    Launch& launch = *turn.FindLaunch(id);
    if (launch.stop_asked) {
      const wire::CancelRequested asked = *launch.stop_asked;
      StopLaunch(
          turn, launch,
          {asked.reason, asked.signal, std::chrono::milliseconds(asked.grace_ms), asked.timed_out});
    } else {
      Consider(turn, launch);
    }
  }
}

void HoldComplete(Launch& launch, const Request& request) {
  Waiter waiter;
  waiter.route = request.route;
  waiter.request = request.id;
  // A driver repeats what was not answered: one answer for each connection it has asked by is
  // enough.
  for (Waiter& known : launch.ending.completes) {
    if (known.route == request.route) return static_cast<void>(known = waiter);
  }
  launch.ending.completes.push_back(waiter);
}

}  // namespace troupe::head
