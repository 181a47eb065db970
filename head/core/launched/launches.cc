#include "head/core/launched/launches.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "head/core/launched/archive/archive.h"
#include "head/core/launched/ending.h"
#include "head/core/launched/jobs/jobs.h"
#include "head/core/launched/launch_views.h"
#include "head/core/launched/runs.h"
#include "head/core/machine/wire_convert.h"
#include "head/core/placed/gang_shape.h"
#include "head/core/placed/people/quotas.h"
#include "head/core/placed/schedule.h"
#include "head/core/placed/views.h"
#include "head/core/placed/waiting.h"
#include "placement/explain.h"
#include "placement/packer.h"

namespace troupe::head {
namespace {

// Why this can never run; empty when it can.
std::string Objection(const Turn& turn, const Request& request, const wire::LaunchSpec& spec) {
  if (spec.ranks == 0) return "a launch needs at least one rank";
  if (spec.ranks > turn.options.ranks_max) {
    return "a launch of " + std::to_string(spec.ranks) + " ranks is over the limit of " +
           std::to_string(turn.options.ranks_max);
  }
  const bool command = spec.mode == wire::LaunchMode::kCommand;
  if (command && spec.attempts_max != 1) return "a run has one attempt";
  if (command && !spec.per_rank.empty()) return "a run reserves nothing: what it drives does";
  if (spec.attempts_max == 0) return "max_attempts must be at least 1";
  if (spec.hang_ms != 0 && spec.mode != wire::LaunchMode::kDistributed)
    return "hang_timeout is for launches whose function every rank runs";
  if (spec.on_rank_death != wire::RankDeath::kFail) {
    if (spec.mode != wire::LaunchMode::kDistributed)
      return "on_rank_death is for launches whose function every rank runs: the end of a driver's "
             "ranks is the driver's failure";
    if (spec.ranks_min > spec.ranks) {
      return "min_processes=" + std::to_string(spec.ranks_min) + " of a launch of " +
             std::to_string(spec.ranks) + " ranks";
    }
    if (spec.reform_ms == 0) return "reform_timeout must be more than 0 seconds";
  }
  if (spec.nodes > spec.ranks) {
    return "a launch over " + std::to_string(spec.nodes) + " nodes has " +
           std::to_string(spec.ranks) + " ranks: some nodes would have none";
  }
  if (spec.nodes == 0 && spec.ranks_per_node != 0 && spec.ranks % spec.ranks_per_node != 0) {
    return std::to_string(spec.ranks) + " ranks are not " + std::to_string(spec.ranks_per_node) +
           " on each of some nodes";
  }
  if (!request.launch.IsNil()) {
    return "a launch cannot be submitted from inside a launch: use the ranks you have, "
           "troupe.launch.current()";
  }
  if (turn.state.read_only) {
    return "the head's disk is full: running launches finish, new ones are refused until there is "
           "room in its state directory";
  }
  const std::string to_job = ObjectionToJob(turn, request, spec);
  return to_job.empty() ? ObjectionTo(spec.where, {}) : to_job;
}

void Accept(Turn& turn, const Request& request, const Launch& launch) {
  wire::LaunchAccepted accepted;
  accepted.launch = launch.id;
  const Group* gang = turn.FindGroup(launch.group);
  if (gang != nullptr && gang->waiting()) {
    accepted.queue_place = QueuePlace(turn, *gang) + 1;
    accepted.waiting_for = WaitingFor(turn, *gang);
  }
  turn.Reply(request, std::move(accepted));
}

Launch* Find(Turn& turn, const Request& request, const LaunchId& id) {
  Launch* launch = turn.FindLaunch(id);
  if (launch != nullptr) return launch;
  const auto stone = turn.state.tombstones.find(id);
  turn.Refuse(request, ErrorCode::kNotFound,
              stone == turn.state.tombstones.end()
                  ? "no launch " + id.Hex()
                  : "launch " + id.Short() + " " + NameOf(stone->second.outcome) +
                        "; its particulars are no longer kept");
  return nullptr;
}

void ArmTimeout(Turn& turn, Launch& launch) {
  if (launch.spec.timeout_ms == 0 || !launch.open()) return;
  const std::uint64_t due_us = launch.submitted_us + launch.spec.timeout_ms * 1000;
  // A clock that was set back while the head was away must not lengthen it.
  const std::uint64_t left_us =
      std::min(due_us > turn.wall_us ? due_us - turn.wall_us : 0, launch.spec.timeout_ms * 1000);
  launch.timeout_due = turn.now + std::chrono::microseconds(left_us);
  turn.Arm(launch.timeout_due, TimerKind::kLaunch, launch.id);
}

}  // namespace

void OnSubmitLaunch(Turn& turn, const Request& request, const wire::SubmitLaunch& message,
                    const std::string& payload) {
  const auto known = turn.state.requests.find(message.request);
  if (known != turn.state.requests.end()) {  // a repeat after a lost answer
    Launch& launch = *turn.FindLaunch(known->second);
    launch.watchers.insert(request.route);
    Adopt(turn, launch, request);
    Accept(turn, request, launch);
    return;
  }
  const wire::LaunchSpec& spec = message.spec;
  const std::string objection = Objection(turn, request, spec);
  if (!objection.empty()) {
    turn.Refuse(request, ErrorCode::kInvalid, objection);
    return;
  }
  if (spec.mode == wire::LaunchMode::kCommand) {
    Accept(turn, request, BeginRun(turn, request, message));
    return;
  }
  placement::ClusterIndex& cluster = ClusterOf(turn);
  const placement::Request wanted = RequestOf(spec);
  if (!MayWaitForNodes(turn, request, spec.infeasible_waits) &&
      !placement::EverFits(cluster, wanted)) {
    turn.Refuse(request, ErrorCode::kInfeasible, placement::Explain(cluster, wanted).text);
    return;
  }
  const Resources whole = FromWire(spec.per_rank).Times(spec.ranks);
  const std::string over = OverQuota(turn, request.user, whole);
  if (!over.empty()) {
    turn.Refuse(request, ErrorCode::kInfeasible, over);
    return;
  }
  const bool nested = !spec.detached && turn.state.job_tokens.count(request.token) > 0;
  const std::string full = nested ? "" : QueueFull(turn, request.user);
  if (!full.empty()) {
    turn.Refuse(request, ErrorCode::kTooLarge, full);
    return;
  }
  wire::LaunchSubmitted submitted;
  submitted.launch = LaunchId::Random(turn.random);
  submitted.group = GroupId::Random(turn.random);
  submitted.spec = spec;
  submitted.request = message.request;
  submitted.owner = spec.detached ? OwnerId() : request.owner;
  submitted.line = request.line;
  submitted.token = request.token;
  submitted.user = request.user;
  submitted.nested = nested;
  submitted.submitted_us = turn.wall_us;
  wire::GroupSubmitted gang;
  gang.user = request.user;
  gang.group = submitted.group;
  gang.launch = submitted.launch;
  gang.gang = true;
  gang.strategy = GangStrategyOf(spec);
  gang.gpu_type = spec.gpu_type;
  gang.where = spec.where;
  gang.priority = spec.priority;
  const GangShape shape = GangShapeOf(spec);
  gang.count = shape.count;
  gang.ranks_each = shape.ranks_each;
  gang.submitted_us = turn.wall_us;
  gang.bundles.emplace_back().resources = ToWire(wanted.bundles.front());
  const LaunchId id = submitted.launch;
  turn.Append(std::move(submitted), payload);
  turn.Append(std::move(gang));
  Launch& launch = *turn.FindLaunch(id);
  launch.watchers.insert(request.route);
  ArmTimeout(turn, launch);
  turn.state.dirty = true;
  Schedule(turn);
  Accept(turn, request, launch);
}

void Adopt(Turn& turn, Launch& launch, const Request& request) {
  if (!launch.open() || launch.spec.detached || request.owner.IsNil()) return;
  if (launch.owner == request.owner || request.role != wire::Role::kClient) return;
  const auto owner = turn.state.owners.find(launch.owner);
  if (owner == turn.state.owners.end() || !owner->second.session.IsNil()) return;
  wire::LaunchDisowned event;
  event.launch = launch.id;
  event.owner = request.owner;
  event.token = request.token;
  turn.Append(event);
}

void OnWatchLaunch(Turn& turn, const Request& request, const wire::WatchLaunch& message) {
  Launch* launch = Find(turn, request, message.launch);
  if (launch == nullptr) return;
  if (launch->open()) launch->watchers.insert(request.route);
  Adopt(turn, *launch, request);
  turn.Reply(request, wire::LaunchUpdate{InfoOf(turn, *launch)});
}

void OnGetLaunch(Turn& turn, const Request& request, const wire::GetLaunch& message) {
  const Launch* launch = Find(turn, request, message.launch);
  if (launch != nullptr) turn.Reply(request, wire::LaunchUpdate{InfoOf(turn, *launch)});
}

void OnGetResult(Turn& turn, const Request& request, const wire::GetResult& message) {
  const Launch* launch = Find(turn, request, message.launch);
  if (launch == nullptr) return;
  if (launch->open()) {
    turn.Refuse(
        request, ErrorCode::kInvalid,
        "launch " + launch->id.Short() + " has no result yet: it is " + NameOf(launch->phase));
    return;
  }
  if (message.rank >= std::max<std::size_t>(launch->ranks.size(), 1)) {
    turn.Refuse(request, ErrorCode::kNotFound,
                "the launch has no rank " + std::to_string(message.rank));
    return;
  }
  wire::ResultValue result;
  result.launch = launch->id;
  result.rank = message.rank;
  result.outcome = launch->marker->outcome;
  std::string value;
  if (message.rank < launch->ranks.size()) {
    const Rank& rank = launch->ranks[message.rank];
    if (rank.done.outcome != wire::Outcome::kNone) result.outcome = rank.done.outcome;
    result.sha256 = rank.done.sha256;
    result.size_bytes = rank.done.size_bytes;
    if (rank.done.kept_by_worker) result.kept_by = rank.node;
    value = rank.value;
  }
  if (message.rank == 0 && !launch->value.empty()) {
    value = launch->value;
    result.outcome = launch->marker->outcome;
    result.kept_by = NodeId();
    result.size_bytes = value.size();
  }
  turn.Reply(request, std::move(result), std::move(value));
}

void OnCancelLaunch(Turn& turn, const Request& request, const wire::CancelLaunch& message) {
  Launch* launch = Find(turn, request, message.launch);
  if (launch == nullptr) return;
  const std::string reason = message.reason.empty() ? "cancelled" : message.reason;
  const bool driven = launch->phase == wire::LaunchState::kRunning && !launch->driver.IsNil();
  if (launch->open() && (message.hard || !driven)) {
    StopOrder order;
    order.cause = reason;
    order.signal = message.signal;
    order.grace =
        message.grace_ms < 0 ? StopGrace(*launch) : std::chrono::milliseconds(message.grace_ms);
    StopLaunch(turn, *launch, order);
  } else if (launch->open() && !launch->cancel_requested) {
    wire::CancelRequested cancel;
    cancel.launch = launch->id;
    cancel.reason = reason;
    turn.Append(std::move(cancel));
    turn.Arm(turn.now + turn.options.cancel_grace, TimerKind::kCancel, launch->id);
    turn.SendTo(launch->driver_route, wire::LaunchUpdate{InfoOf(turn, *launch)});
    PushLaunch(turn, *launch);
  }
  turn.Reply(request, wire::LaunchUpdate{InfoOf(turn, *launch)});
}

void OnLaunchTimer(Turn& turn, const LaunchId& id) {
  Launch* launch = turn.FindLaunch(id);
  if (launch == nullptr || !launch->open()) return;
  char text[200];
  std::snprintf(text, sizeof text, "timed out after %.1f s, counted from its submission; it was %s",
                static_cast<double>(launch->spec.timeout_ms) / 1000, NameOf(launch->phase));
  StopOrder order;
  order.cause = text;
  order.grace = StopGrace(*launch);
  order.timed_out = true;
  if (launch->phase == wire::LaunchState::kRunning) {
    std::snprintf(text, sizeof text, ", and had %.1f s more to stop",
                  static_cast<double>(Millis(order.grace)) / 1000);
    order.cause += text;
  }
  StopLaunch(turn, *launch, order);
}

void OnCancelTimer(Turn& turn, const LaunchId& id) {
  Launch* launch = turn.FindLaunch(id);
  if (launch == nullptr || !launch->open() || !launch->cancel_requested) return;
  StopOrder order;
  order.cause = launch->cancel_reason;
  order.grace = StopGrace(*launch);
  StopLaunch(turn, *launch, order);
}

void ResumeLaunchTimers(Turn& turn) {
  for (auto& [id, launch] : turn.state.launches) {
    launch.started = turn.now;
    ArmTimeout(turn, launch);
    if (launch.open() && launch.cancel_requested) {
      turn.Arm(turn.now + turn.options.cancel_grace, TimerKind::kCancel, id);
    }
  }
  ArchiveEnded(turn);
}

}  // namespace troupe::head
