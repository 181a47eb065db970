#include "worker/core/worker_core.h"

#include <algorithm>
#include <utility>

namespace troupe::worker {
namespace {

// Heartbeats that may wait for their acknowledgement; a session lives a lease at most without one.
constexpr std::size_t kBeatsMax = 64;
// Peers dialled for the head at a time; one more is not answered for, and the head waits no longer
// for that.
constexpr std::size_t kProbesMax = 64;

}  // namespace

WorkerCore::WorkerCore(NodeFacts facts, const CoreLimits& limits, const RememberedState& remembered,
                       Random& random)
    : context_(std::move(facts), limits, random),
      launches_(context_),
      actors_(context_),
      relays_(limits.relayed_bytes_max),
      incarnation_(remembered.incarnation),
      head_incarnation_(remembered.head_incarnation) {}

// ---- the session with the head ----

Effects WorkerCore::OnHeadUp(const HeadSession& session, Instant now) {
  Effects out;
  if (session.head_incarnation < head_incarnation_) {
    out.push_back(DropHead{"a head of incarnation " + std::to_string(session.head_incarnation) +
                           " answered, but one of incarnation " +
                           std::to_string(head_incarnation_) + " was seen: it is stale"});
    return Done(std::move(out), now);
  }
  head_incarnation_ = session.head_incarnation;
  context_.cluster = session.cluster;
  context_.node = session.node;
  heard_ = now;
  registering_ = now;
  Register(&out);
  return Done(std::move(out), now);
}

void WorkerCore::Register(Effects* out) {
  const NodeFacts& facts = context_.facts;
  wire::RegisterNode node;
  node.node = context_.node;
  node.name = facts.name;
  node.host = facts.host;
  node.boot_id = facts.boot_id;
  node.listen_host = facts.listen_host;
  node.listen_port = facts.listen_port;
  node.unix_path = facts.unix_path;
  node.resources = AmountsToWire(facts.capacity);
  node.labels = facts.labels;
  node.devices = facts.devices;
  node.python_version = facts.python_version;
  node.pid = facts.pid;
  node.incarnation = incarnation_;
  node.holdings = context_.leases.Holdings();
  node.ranks = launches_.Held();
  node.actors = actors_.Held();
  node.free = AmountsToWire(context_.leases.Free());
  node.free_version = context_.leases.version();
  wire::Message message;
  message.id = 1;
  message.body = std::move(node);
  out->push_back(ToHead{std::move(message)});
}

void WorkerCore::OnNodeRegistered(const wire::NodeRegistered& message, Instant now, Effects* out) {
  incarnation_ = message.incarnation;
  context_.facts.name = message.name;
  if (!message.node.IsNil()) context_.node = message.node;
  if (message.heartbeat_ms > 0)
    periods_.heartbeat = std::chrono::milliseconds(message.heartbeat_ms);
  periods_.measures.reset();
  if (message.measures_ms > 0) periods_.measures = std::chrono::milliseconds(message.measures_ms);
  if (message.lease_ms > 0) periods_.lease = std::chrono::milliseconds(message.lease_ms);
  renewed_ = registering_;  // time of its sending: the answer may be older than it looks
  actors_.Renew(renewed_, out);
  beats_sent_.clear();
  out->push_back(SaveState{context_.node, message.name, incarnation_, head_incarnation_});
  out->push_back(Joined{context_.node, message.name});
  context_.outbox.OnRegistered(out);
  if (leaving_) SayLeaving(out);
  launches_.OnRegistered(now, out);
  actors_.OnRegistered(out);
  wire::Welcome head;
  head.head_incarnation = head_incarnation_;
  relays_.OnRegistered(context_.outbox, head, context_.processes, out);
  beat_due_ = now + periods_.heartbeat;
}

Effects WorkerCore::OnHeadDown(Instant now) {
  Effects out;
  context_.outbox.OnDisconnected();
  relays_.OnDisconnected(&out);
  beat_due_.reset();
  beats_sent_.clear();
  return Done(std::move(out), now);
}

void WorkerCore::Beat(Instant now, Effects* out) {
  if (!beat_due_ || *beat_due_ > now) return;
  if (now - heard_ > periods_.lease) {
    beat_due_.reset();
    out->push_back(
        DropHead{"the head has not answered for " + std::to_string(Millis(now - heard_)) + " ms"});
    return;
  }
  wire::Heartbeat beat;
  beat.sequence = context_.outbox.NextHeartbeat();
  beat.free_version = context_.leases.version();
  beat.zygote_ready = zygote_ready_;
  beat.preimports = preimports_;
  beats_sent_[beat.sequence] = now;
  if (beats_sent_.size() > kBeatsMax) beats_sent_.erase(beats_sent_.begin());
  wire::Message message;
  message.body = beat;
  context_.outbox.SendNow(std::move(message), out);
  beat_due_ = now + periods_.heartbeat;
}

Effects WorkerCore::OnHeadMessage(wire::Message message, Instant now) {
  Effects out;
  heard_ = now;
  if (const auto* registered = wire::GetIf<wire::NodeRegistered>(&message.body)) {
    OnNodeRegistered(*registered, now, &out);
    return Done(std::move(out), now);
  }
  if (const auto* error = wire::GetIf<wire::ErrorReply>(&message.body)) {
    if (message.reply_to == 1)
      out.push_back(DropHead{"the head refused this node: " + error->text});
    return Done(std::move(out), now);
  }
  if (!context_.outbox.registered()) return Done(std::move(out), now);
  DispatchToParts(message, now, &out);
  return Done(std::move(out), now);
}

void WorkerCore::DispatchToParts(wire::Message& message, Instant now, Effects* out) {
  wire::Body& body = message.body;
  if (const auto* ack = wire::GetIf<wire::HeartbeatAck>(&body)) {
    context_.outbox.OnHeartbeatAck(ack->sequence);
    const auto sent = beats_sent_.find(ack->sequence);
    if (sent == beats_sent_.end()) return;
    renewed_ = std::max(renewed_, sent->second);
    actors_.Renew(renewed_, out);
    beats_sent_.erase(beats_sent_.begin(), std::next(sent));
  } else if (const auto* reserve = wire::GetIf<wire::Reserve>(&body)) {
    OnReserve(message.id, *reserve, now, out);
  } else if (const auto* release = wire::GetIf<wire::Release>(&body)) {
    OnRelease(message.id, *release, now, out);
  } else if (const auto* start = wire::GetIf<wire::StartRanks>(&body)) {
    if (!leaving_) launches_.Start(*start, message.attachment, now, out);
  } else if (const auto* roster = wire::GetIf<wire::PublishRoster>(&body)) {
    launches_.Publish(*roster, now, out);
  } else if (const auto* done = wire::GetIf<wire::RankDoneAck>(&body)) {
    launches_.Acknowledge(*done, now, out);
  } else if (const auto* stop = wire::GetIf<wire::StopRanks>(&body)) {
    launches_.Stop(*stop, now, out);
  } else if (const auto* ask = wire::GetIf<wire::AskRanks>(&body)) {
    launches_.Ask(*ask, out);
  } else if (const auto* lost = wire::GetIf<wire::PeersLost>(&body)) {
    launches_.LosePeers(*lost, now, out);
  } else if (const auto* group = wire::GetIf<wire::FormGroup>(&body)) {
    launches_.FormGroup(*group, out);
  } else if (const auto* ask = wire::GetIf<wire::AskBegun>(&body)) {
    launches_.AskHowFar(*ask, now, out);
  } else if (const auto* returned = wire::GetIf<wire::PeersReturned>(&body)) {
    launches_.TellReturned(*returned, out);
  } else if (const auto* replace = wire::GetIf<wire::ReplaceRanks>(&body)) {
    if (!leaving_) launches_.Replace(*replace, message.attachment, now, out);
  } else if (const auto* end = wire::GetIf<wire::EndEpoch>(&body)) {
    launches_.End(*end, now, out);
  } else if (const auto* actor = wire::GetIf<wire::StartActor>(&body)) {
    std::string refused;
    if (leaving_) {
      refused = "node " + context_.facts.name + " is leaving";
    } else if (!actor->launch.IsNil() && launches_.Ended(actor->launch, actor->epoch)) {
      refused = "the launch that created it is over";
    }
    actors_.Start(*actor, message.attachment, refused, now, out);
  } else if (const auto* end_actor = wire::GetIf<wire::EndActor>(&body)) {
    actors_.End(*end_actor, now, out);
  } else if (const auto* down = wire::GetIf<wire::RelayDown>(&body)) {
    if (context_.processes.Find(down->process) != nullptr) {
      relays_.Down(down->process, message.attachment, out);
    }
  } else if (auto* revoked = wire::GetIf<wire::Revoked>(&body)) {
    OnRevoked(std::move(*revoked), out);
  } else if (const auto* probe = wire::GetIf<wire::ProbePeer>(&body)) {
    if (leaving_ || probes_ >= kProbesMax) return;
    ++probes_;
    out->push_back(DialPeer{*probe});
  } else if (const auto* leave = wire::GetIf<wire::EndNode>(&body)) {
    Effects more = Leave(leave->reason, now);
    out->insert(out->end(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
  }
}

Effects WorkerCore::OnPeerProbed(std::uint64_t question, const NodeId& node, bool reached,
                                 Instant now) {
  Effects out;
  --probes_;
  wire::PeerProbed probed;
  probed.question = question;
  probed.node = node;
  probed.reached = reached;
  wire::Message message;
  message.body = probed;
  context_.outbox.SendNow(std::move(message), &out);
  return Done(std::move(out), now);
}

// ---- reservations ----

void WorkerCore::OnReserve(std::uint64_t id, const wire::Reserve& reserve, Instant now,
                           Effects* out) {
  ReserveAnswer answer;
  if (leaving_) {
    answer.reason = "node " + context_.facts.name + " is leaving";
  } else {
    answer = context_.leases.Reserve(reserve);
  }
  for (const ReservationKey& key : answer.superseded) EndLease(key, now, out);
  wire::ReserveReply reply;
  reply.group = reserve.group;
  reply.attempt = reserve.attempt;
  reply.granted = answer.granted;
  reply.grants = std::move(answer.grants);
  reply.reason = std::move(answer.reason);
  reply.free = AmountsToWire(context_.leases.Free());
  reply.free_version = context_.leases.version();
  wire::Message message;
  message.reply_to = id;
  message.body = std::move(reply);
  context_.outbox.SendNow(std::move(message), out);
  PostFreed(out);
}

void WorkerCore::OnRelease(std::uint64_t id, const wire::Release& release, Instant now,
                           Effects* out) {
  const ReservationKey key{release.group, release.attempt};
  const bool held = context_.leases.Held(key);
  for (const ReservationKey& each : context_.leases.Release(key)) EndLease(each, now, out);
  PostFreed(out);
  if (held) return;  // Released follows, or has just been posted
  wire::Released released;
  released.group = release.group;
  released.attempt = release.attempt;
  released.free = AmountsToWire(context_.leases.Free());
  released.free_version = context_.leases.version();
  wire::Message message;
  message.body = std::move(released);
  context_.outbox.Post(std::move(message), out);
}

void WorkerCore::EndLease(const ReservationKey& key, Instant now, Effects* out) {
  wire::ProcessEnd end;
  end.outcome = wire::Outcome::kCancelled;
  end.exit_code = 1;
  end.reason = "its reservation was released";
  for (const ProcessId id : context_.leases.ProcessesOf(key)) {
    Process* process = context_.processes.Find(id);
    if (process == nullptr) continue;
    // A last word, or the process's own end as a program, has a clock of its own; its holdings are
    // free when it is gone.
    const bool clocked = process->ending == Process::Ending::kStopping ||
                         process->ending == Process::Ending::kLeaving;
    if (clocked) continue;
    process->taken_along = process->ending == Process::Ending::kNo;
    if (process->taken_along) process->end_kind = wire::FailureKind::kReservationLost;
    context_.processes.End(*process, end, now, out);
  }
}

void WorkerCore::PostFreed(Effects* out) {
  for (const ReservationKey& key : context_.leases.TakeFreed()) {
    wire::Released released;
    released.group = key.group;
    released.attempt = key.attempt;
    released.free = AmountsToWire(context_.leases.Free());
    released.free_version = context_.leases.version();
    wire::Message message;
    message.body = std::move(released);
    context_.outbox.Post(std::move(message), out);
  }
}

// ---- time and leaving ----

Effects WorkerCore::OnTimer(Instant now) {
  Effects out;
  context_.processes.OnTimer(now, &out);
  Beat(now, &out);
  if (context_.outbox.registered()) launches_.OnTimer(now, &out);
  if (actors_.AnyRecreatable() && now - renewed_ >= context_.limits.fence_after) {
    actors_.Fence(now, &out);
  }
  if (now - renewed_ >= context_.limits.fence_after) launches_.LeaveWithoutHead(now, &out);  // W7
  return Done(std::move(out), now);
}

Effects WorkerCore::Leave(const std::string& reason, Instant now) {
  Effects out;
  if (!leaving_) {
    leaving_ = true;
    leave_reason_ = reason;
    SayLeaving(&out);  // before the ends of what runs here: it is to be started again elsewhere
    wire::ProcessEnd end;
    end.outcome = wire::Outcome::kCancelled;
    end.exit_code = 1;
    end.reason = "its node leaves: " + reason;
    for (const auto& [id, process] : context_.processes.all()) {
      Process& each = *context_.processes.Find(id);
      if (each.ending == Process::Ending::kStopping) continue;  // already sends its last word
      each.taken_along = each.ending == Process::Ending::kNo;
      if (each.taken_along) each.end_kind = wire::FailureKind::kNodeLeaves;
      if (each.taken_along && launches_.Drain(each, end.reason, now, &out)) continue;
      context_.processes.End(each, end, now, &out);
    }
  } else {
    for (const auto& [id, process] : context_.processes.all())
      context_.processes.Kill(*context_.processes.Find(id), now, &out);
  }
  return Done(std::move(out), now);
}

void WorkerCore::SayLeaving(Effects* out) const {
  wire::Message message;
  message.body = wire::DrainNode{{}, leave_reason_};
  context_.outbox.SendNow(std::move(message), out);
}

Effects WorkerCore::Done(Effects effects, Instant now) {
  if (leaving_ && !left_ && context_.processes.empty()) {
    left_ = true;
    effects.push_back(LeaveNode{leave_reason_});
    return effects;
  }
  std::optional<Instant> due;
  const auto consider = [&due](std::optional<Instant> when) {
    if (when) due = due ? std::min(*due, *when) : *when;
  };
  consider(context_.processes.NextDue());
  consider(beat_due_);
  consider(launches_.NextDue());
  if (actors_.AnyRecreatable() || launches_.AnyWaits()) {
    const Instant fence = renewed_ + context_.limits.fence_after;
    if (fence > now) consider(fence);
  }
  if (due) effects.push_back(WakeAt{*due});
  return effects;
}

}  // namespace troupe::worker
