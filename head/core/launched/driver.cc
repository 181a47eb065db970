#include "head/core/launched/driver.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "head/core/launched/ending.h"
#include "head/core/launched/launch_views.h"
#include "head/core/launched/launches.h"
#include "head/core/launched/markers.h"
#include "head/core/launched/rank_ends.h"
#include "head/core/machine/verdict.h"

namespace troupe::head {
namespace {

constexpr std::uint64_t kWaitMostMs = 365ull * 24 * 3600 * 1000;  // a WaitMarker waits no longer

// The marker of a tombstone: the outcome is all that is left.
bool AnswerFromTombstone(Turn& turn, const Request& request, const LaunchId& id) {
  const auto stone = turn.state.tombstones.find(id);
  if (stone == turn.state.tombstones.end()) return false;
  wire::MarkerReply reply;
  reply.marker.launch = id;
  reply.marker.outcome = stone->second.outcome;
  reply.marker.exit_code = stone->second.exit_code;
  reply.marker.cause = "its particulars are no longer kept";
  reply.marker.head_incarnation = turn.state.incarnation;
  turn.Reply(request, std::move(reply));
  return true;
}

// Once outcomes have been forgotten, an unknown launch may be one of those.
std::string PerhapsForgotten(const Turn& turn) {
  if (turn.state.tombstone_order.size() < kTombstonesMax) return {};
  return ", or it ended so long ago that its outcome is no longer kept (that of the latest " +
         std::to_string(kTombstonesMax) + " is)";
}

// Answers for launches that are unknown, gone or terminal; null when it did.
Launch* OpenLaunch(Turn& turn, const Request& request, const LaunchId& id) {
  Launch* launch = turn.FindLaunch(id);
  if (launch == nullptr) {
    if (!AnswerFromTombstone(turn, request, id)) {
      turn.Refuse(request, ErrorCode::kUnknownOutcome,
                  "this cluster has no launch " + id.Hex() + ": neither success nor failure" +
                      PerhapsForgotten(turn));
    }
    return nullptr;
  }
  if (launch->marker) {
    turn.Reply(request, wire::MarkerReply{*launch->marker});
    return nullptr;
  }
  return launch;
}

void Fenced(Turn& turn, const Request& request, const Launch& launch, std::uint64_t epoch) {
  const std::string which = "epoch " + std::to_string(epoch) + " of launch " + launch.id.Short();
  turn.Refuse(request, ErrorCode::kFenced,
              launch.on_nodes() && epoch == launch.epoch
                  ? which + " is being ended: one of its ranks failed"
                  : which + " is over; the current one is " + std::to_string(launch.epoch));
}

void ArmDriver(Turn& turn, Launch& launch) {
  launch.driver_due = turn.now + turn.options.driver_lease;
  turn.Arm(launch.driver_due, TimerKind::kDriver, launch.id);
}

// The driver says that it failed; or it ended after it was told to stop, whatever it says. Its word
// is journaled as its rank's end, and is answered with the marker.
void DriverFailed(Turn& turn, const Request& request, Launch& launch, const wire::Complete& message,
                  const std::string& value) {
  HoldComplete(launch, request);
  // a repeat
  if (launch.ranks.empty() || launch.ranks[0].done.outcome != wire::Outcome::kNone) return;
  launch.ending.complete = message.request;
  wire::Failure failure =
      FailureOn(turn, launch, 0, wire::FailureKind::kStopped, message.failure.cause);
  const std::string host = failure.host;
  const NodeId node = failure.node;
  const std::string name = failure.node_name;
  const bool stopped = launch.stop_asked || message.outcome == wire::Outcome::kCancelled;
  if (!stopped) failure = message.failure;
  failure.rank = 0;
  failure.node = node;
  failure.node_name = name;
  if (failure.host.empty()) failure.host = host;
  if (stopped || failure.exit_code == 0) failure.exit_code = std::max(message.exit_code, 1);
  wire::RankDone done;
  done.outcome = stopped ? wire::Outcome::kCancelled : wire::Outcome::kFailed;
  done.drivers_word = !stopped;
  done.size_bytes = value.size();
  FinishRank(turn, launch, 0, std::move(done), std::move(failure), value);
  OnRankEnded(turn, launch);
}

// Arms a single timer for all that wait; nothing is left of those that were answered.
void ArmWaits(Turn& turn) {
  Waits& waits = turn.state.waits;
  const std::optional<Instant> next = waits.NextDue();
  if (!next || (waits.armed != Instant{} && waits.armed <= *next)) return;
  turn.state.timers.Disarm(waits.armed, TimerKind::kWait, Id128{});
  waits.armed = *next;
  turn.Arm(*next, TimerKind::kWait, Id128{});
}

}  // namespace

void OnAcquireDriver(Turn& turn, const Request& request, const wire::AcquireDriver& message) {
  Launch* launch = OpenLaunch(turn, request, message.launch);
  if (launch == nullptr) return;
  if (!launch->on_nodes() || message.epoch != launch->epoch) {
    Fenced(turn, request, *launch, message.epoch);
    return;
  }
  if (request.rank > 0 || message.nonce.IsNil()) {
    turn.Refuse(request, ErrorCode::kInvalid,
                "only rank 0 acquires the driver's lease, with a nonce");
    return;
  }
  if (!launch->driver.IsNil() && launch->driver != message.nonce) {
    turn.Refuse(request, ErrorCode::kAlreadyExists,
                "launch " + launch->id.Short() + " already has a driver in epoch " +
                    std::to_string(launch->epoch));
    return;
  }
  if (launch->driver.IsNil()) {
    wire::DriverAcquired acquired;
    acquired.launch = launch->id;
    acquired.epoch = launch->epoch;
    acquired.nonce = message.nonce;
    turn.Append(acquired);
  }
  launch->driver_route = request.route;
  wire::DriverGranted granted;
  granted.epoch = launch->epoch;
  granted.ttl_ms = static_cast<std::uint32_t>(Millis(turn.options.driver_lease));
  granted.info = InfoOf(turn, *launch);
  turn.Reply(request, std::move(granted));
}

void OnRenewDriver(Turn& turn, const Request& request, const wire::RenewDriver& message) {
  Launch* launch = OpenLaunch(turn, request, message.launch);
  if (launch == nullptr) return;
  if (!launch->on_nodes() || message.epoch != launch->epoch || launch->driver.IsNil()) {
    Fenced(turn, request, *launch, message.epoch);
    return;
  }
  launch->driver_renews = true;
  launch->driver_route = request.route;
  ArmDriver(turn, *launch);
  turn.Reply(request, wire::Ok());
}

void OnComplete(Turn& turn, const Request& request, const wire::Complete& message,
                const std::string& value) {
  Launch* launch = OpenLaunch(turn, request, message.launch);
  if (launch == nullptr) return;
  const bool leased = launch->on_nodes() && !launch->driver.IsNil();
  if (!leased || message.epoch != launch->epoch) {
    Fenced(turn, request, *launch, message.epoch);
    return;
  }
  const bool stopping = launch->stop_asked || launch->ending.step == Ending::Step::kStopping;
  const bool stopped = stopping && message.outcome == wire::Outcome::kCancelled;
  if (message.outcome != wire::Outcome::kSucceeded && message.outcome != wire::Outcome::kFailed &&
      !stopped) {
    turn.Refuse(request, ErrorCode::kInvalid, "a driver completes with succeeded or failed");
    return;
  }
  // the record of a run has none: there is nothing to wait for
  const bool of_ranks = !launch->ranks.empty();
  if (of_ranks && (message.outcome == wire::Outcome::kFailed || stopped || launch->stop_asked)) {
    return DriverFailed(turn, request, *launch, message, value);
  }
  if (launch->ending.step != Ending::Step::kNo || Failing(*launch)) {  // E1
    Fenced(turn, request, *launch, message.epoch);
    return;
  }
  Verdict verdict;
  verdict.outcome = message.outcome;
  verdict.exit_code = message.exit_code;
  if (message.outcome == wire::Outcome::kFailed) {
    verdict.exit_code = message.exit_code == 0 ? 1 : message.exit_code;  // FAILED never exits 0
    verdict.failure = message.failure;
    verdict.failure.rank = 0;
  }
  verdict.request = message.request;
  verdict.manifest = message.manifest_sha256;
  verdict.value = value;
  WriteMarker(turn, *launch, std::move(verdict));
  turn.Reply(request, wire::MarkerReply{*launch->marker});
}

void OnWaitMarker(Turn& turn, const Request& request, const wire::WaitMarker& message) {
  Launch* launch = OpenLaunch(turn, request, message.launch);
  if (launch == nullptr) return;
  Waiter waiter{request.route, request.id, launch->id, Instant{}};
  if (message.timeout_ms != 0) {
    const std::uint64_t wait_ms = std::min(message.timeout_ms, kWaitMostMs);
    waiter.due = turn.now + std::chrono::milliseconds(wait_ms);
  }
  if (!turn.state.waits.Add(waiter)) {
    turn.Refuse(
        request, ErrorCode::kTooLarge,
        "it waits for " + std::to_string(Waits::kWaitsMax) + " markers already (kWaitsMax)");
    return;
  }
  ArmWaits(turn);
  Adopt(turn, *launch, request);
}

void OnWaitTimer(Turn& turn) {
  turn.state.waits.armed = Instant{};
  for (const Waiter& waiter : turn.state.waits.TakeDue(turn.now)) {
    const Launch* launch = turn.FindLaunch(waiter.launch);
    wire::ErrorReply late;
    late.code = static_cast<std::uint16_t>(ErrorCode::kTimeout);
    late.text = "launch " + waiter.launch.Short() + " is " +
                (launch == nullptr ? "gone" : std::string("still ") + NameOf(launch->phase));
    turn.SendTo(waiter.route, std::move(late), {}, waiter.request);
  }
  ArmWaits(turn);
}

void OnDriverTimer(Turn& turn, const LaunchId& id) {
  Launch* launch = turn.FindLaunch(id);
  if (launch == nullptr || !launch->on_nodes() || !launch->driver_renews) return;
  if (launch->driver_due > turn.now) {
    turn.Arm(launch->driver_due, TimerKind::kDriver, id);
    return;
  }
  const auto lease = std::to_string(Millis(turn.options.driver_lease) / 1000);
  if (!launch->ranks.empty() && launch->ranks[0].done.outcome != wire::Outcome::kNone) return;
  FailRank(turn, *launch,
           FailureOn(turn, *launch, 0, wire::FailureKind::kDriverSilent,
                     "the driver (rank 0) did not renew its lease for " + lease + " s"));
  OnRankEnded(turn, *launch);
}

}  // namespace troupe::head
