#include "head/core/dispatch.h"

#include <utility>
#include <variant>

#include "head/core/launched/archive/archive.h"
#include "head/core/launched/archive/launch_list.h"
#include "head/core/launched/driver.h"
#include "head/core/launched/ending.h"
#include "head/core/launched/epochs.h"
#include "head/core/launched/gang/hang.h"
#include "head/core/launched/gang/regroup.h"
#include "head/core/launched/gang/returned.h"
#include "head/core/launched/gang/spares.h"
#include "head/core/launched/jobs/kept_logs.h"
#include "head/core/launched/launches.h"
#include "head/core/launched/revocation.h"
#include "head/core/launched/status.h"
#include "head/core/nodes/certificates.h"
#include "head/core/nodes/node_measures.h"
#include "head/core/nodes/owners.h"
#include "head/core/nodes/roles.h"
#include "head/core/nodes/roster.h"
#include "head/core/nodes/task_lists.h"
#include "head/core/nodes/tokens.h"
#include "head/core/placed/actor_losses.h"
#include "head/core/placed/actor_views.h"
#include "head/core/placed/actors.h"
#include "head/core/placed/group_requests.h"
#include "head/core/placed/groups.h"
#include "head/core/placed/names.h"
#include "head/core/placed/people/quotas.h"
#include "head/core/placed/people/usage.h"

namespace troupe::head {
namespace {

// Messages of a registered node. Returns false for a message that is not a node's.
class NodeMessages {
 public:
  NodeMessages(Turn& turn, Node& node, const std::string& attachment)
      : t_(turn), node_(node), attachment_(attachment) {}
  bool operator()(const wire::ReserveReply& m) { return OnReserveReply(t_, node_, m), true; }
  bool operator()(const wire::Released& m) { return OnReleased(t_, node_, m), true; }
  bool operator()(const wire::RanksReady& m) { return OnRanksReady(t_, node_, m), true; }
  bool operator()(const wire::RankDone& m) { return OnRankDone(t_, node_, m, attachment_), true; }
  bool operator()(const wire::RanksSeen& m) { return OnRanksSeen(t_, node_, m), true; }
  bool operator()(const wire::RankWhere& m) { return OnRankWhere(t_, node_, m), true; }
  bool operator()(const wire::GroupJoined& m) { return OnGroupJoined(t_, node_, m), true; }
  bool operator()(const wire::RanksLate& m) { return OnRanksLate(t_, node_, m), true; }
  bool operator()(const wire::RankBegun& m) {
    return OnRankBegun(t_, node_, m), OnReturnedAnswer(t_, node_, m), true;
  }
  bool operator()(const wire::RankAwaits& m) { return OnRankAwaits(t_, node_, m), true; }
  bool operator()(const wire::RankLeft& m) { return OnRankLeft(t_, node_, m), true; }
  bool operator()(const wire::KeepLog& m) { return OnKeepLog(t_, node_, m, attachment_), true; }
  // Released says the same, and more, of the launch's own reservation.
  bool operator()(const wire::EpochEnded& m) { return OnAttemptEndedOn(t_, node_, m), true; }
  bool operator()(const wire::PeerProbed& m) { return OnPeerProbed(t_, node_, m), true; }
  bool operator()(const wire::ActorStarted& m) { return OnActorStarted(t_, node_, m), true; }
  bool operator()(const wire::ActorEnded& m) {
    return OnActorEnded(t_, node_, m, attachment_), true;
  }
  bool operator()(const wire::ActorLends& m) { return OnActorLends(t_, node_, m), true; }
  bool operator()(const wire::DrainNode&) { return OnNodeLeaves(t_, node_), true; }
  bool operator()(const wire::ProcessGone& m) {
    return OnProcessGone(t_, node_.session, m.process), true;
  }
  template <class Other>
  bool operator()(const Other&) {
    return false;
  }

 private:
  Turn& t_;
  Node& node_;
  const std::string& attachment_;
};

// Requests that change nothing: observers may make them too.
class Reads {
 public:
  Reads(Turn& turn, const Request& request) : t_(turn), r_(request) {}
  bool operator()(const wire::WatchLaunch& m) { return OnWatchLaunch(t_, r_, m), true; }
  bool operator()(const wire::GetLaunch& m) { return OnGetLaunch(t_, r_, m), true; }
  bool operator()(const wire::ListLaunches& m) { return OnListLaunches(t_, r_, m), true; }
  bool operator()(const wire::WatchActor& m) { return OnWatchActor(t_, r_, m), true; }
  bool operator()(const wire::GetNamedActor& m) { return OnGetNamedActor(t_, r_, m), true; }
  bool operator()(const wire::ListActors&) { return OnListActors(t_, r_), true; }
  bool operator()(const wire::GetGroup& m) { return OnGetGroup(t_, r_, m), true; }
  bool operator()(const wire::ListGroups&) { return OnListGroups(t_, r_), true; }
  bool operator()(const wire::ListEvents&) { return OnListEvents(t_, r_), true; }
  bool operator()(const wire::ListTasks& m) { return OnListTasks(t_, r_, m), true; }
  bool operator()(const wire::GetUsage& m) { return OnGetUsage(t_, r_, m), true; }
  bool operator()(const wire::ReadLog& m) { return OnReadLog(t_, r_, m), true; }
  bool operator()(const wire::GetStatus&) { return OnGetStatus(t_, r_), true; }
  bool operator()(const wire::WaitMarker& m) { return OnWaitMarker(t_, r_, m), true; }
  template <class Other>
  bool operator()(const Other&) {
    return false;
  }

 private:
  Turn& t_;
  const Request& r_;
};

class Writes {
 public:
  Writes(Turn& turn, const Request& request, const std::string& attachment)
      : t_(turn), r_(request), attachment_(attachment) {}
  bool operator()(const wire::SubmitLaunch& m) {
    return OnSubmitLaunch(t_, r_, m, attachment_), true;
  }
  bool operator()(const wire::CancelLaunch& m) { return OnCancelLaunch(t_, r_, m), true; }
  bool operator()(const wire::GetResult& m) { return OnGetResult(t_, r_, m), true; }
  bool operator()(const wire::AcquireDriver& m) { return OnAcquireDriver(t_, r_, m), true; }
  bool operator()(const wire::RenewDriver& m) { return OnRenewDriver(t_, r_, m), true; }
  bool operator()(const wire::Complete& m) { return OnComplete(t_, r_, m, attachment_), true; }
  bool operator()(const wire::CreateActor& m) {
    return OnCreateActor(t_, r_, m, attachment_), true;
  }
  bool operator()(const wire::KillActor& m) { return OnKillActor(t_, r_, m), true; }
  bool operator()(const wire::CreateGroup& m) { return OnCreateGroup(t_, r_, m), true; }
  bool operator()(const wire::RemoveGroup& m) { return OnRemoveGroup(t_, r_, m), true; }
  bool operator()(const wire::KvPut& m) { return OnKvPut(t_, r_, m, attachment_), true; }
  bool operator()(const wire::KvGet& m) { return OnKvGet(t_, r_, m), true; }
  bool operator()(const wire::KvDelete& m) { return OnKvDelete(t_, r_, m), true; }
  bool operator()(const wire::KvList& m) { return OnKvList(t_, r_, m), true; }
  bool operator()(const wire::CertifyProcess& m) { return OnCertifyProcess(t_, r_, m), true; }
  bool operator()(const wire::TasksTold& m) { return OnTasksTold(t_, r_, m, attachment_), true; }
  bool operator()(const wire::ReportMetrics& m) {
    wire::MetricsTaken taken;
    taken.refused = t_.state.program_metrics.Take(m, t_.now);
    return t_.Reply(r_, std::move(taken)), true;
  }
  bool operator()(const wire::CreateToken& m) { return OnCreateToken(t_, r_, m), true; }
  bool operator()(const wire::ListTokens&) { return OnListTokens(t_, r_), true; }
  bool operator()(const wire::RevokeToken& m) { return OnRevokeToken(t_, r_, m), true; }
  bool operator()(const wire::SetQuota& m) { return OnSetQuota(t_, r_, m), true; }
  bool operator()(const wire::DrainNode& m) { return OnDrainNode(t_, r_, m), true; }
  bool operator()(const wire::StopCluster& m) {
    wire::EndNode end;
    end.reason = m.reason.empty() ? "the cluster was stopped" : m.reason;
    for (const auto& [id, node] : t_.state.nodes) t_.ToNode(id, end);
    t_.Reply(r_, wire::Ok());
    // Clients are told, or they would wait for this head to come back.
    wire::Goodbye goodbye;
    goodbye.reason = end.reason;
    for (const auto& [id, session] : t_.state.sessions) {
      if (session.role != wire::Role::kWorker) t_.SendTo({id, ProcessId()}, goodbye);
    }
    t_.Stop();
    return true;
  }
  template <class Other>
  bool operator()(const Other&) {
    return false;
  }

 private:
  Turn& t_;
  const Request& r_;
  const std::string& attachment_;
};

// Returns true for requests that would fill a disk that is full already; requests that end things
// are still taken.
bool IsNew(const wire::Body& body) {
  return wire::Holds<wire::CreateActor>(body) || wire::Holds<wire::CreateGroup>(body) ||
         wire::Holds<wire::KvPut>(body) || wire::Holds<wire::CreateToken>(body) ||
         wire::Holds<wire::SetQuota>(body);
}

void OnWorkerMessage(Turn& turn, const Request& request, const Session& session,
                     const wire::Message& message) {
  if (const auto* registration = wire::GetIf<wire::RegisterNode>(&message.body)) {
    OnRegisterNode(turn, request, *registration);
    return;
  }
  if (const auto* held_up = wire::GetIf<wire::WorkerHeldUp>(&message.body)) {
    // This kind of a session registers no node
    OnWorkerHeldUp(turn, NodeId(session.subject), *held_up);
    return;
  }
  // Words of a session whose node registered elsewhere, or was declared dead, count no more.
  const NodeId id = session.node;
  const auto known = turn.state.nodes.find(id);
  if (known == turn.state.nodes.end()) {
    turn.Refuse(request, ErrorCode::kInvalid,
                "no node has joined by this session, or it has joined anew since");
    return;
  }
  if (const auto* heartbeat = wire::GetIf<wire::Heartbeat>(&message.body)) {
    OnHeartbeat(turn, known->second, *heartbeat);  // nothing of the node changes for placement
  } else if (const auto* measures = wire::GetIf<wire::NodeMeasures>(&message.body)) {
    OnNodeMeasures(turn, known->second, *measures);
  } else {
    wire::Visit(NodeMessages(turn, *turn.FindNode(id), message.attachment), message.body);
  }
}

}  // namespace

void OnMessage(Turn& turn, const MessageFrom& input) {
  const auto found = turn.state.sessions.find(input.session);
  if (found == turn.state.sessions.end()) return;
  Session& session = found->second;
  const wire::Message& message = input.message;
  const auto node = turn.state.nodes.find(session.node);
  if (node != turn.state.nodes.end()) {
    Heard(turn, node->second);
  } else if (input.relay && session.role == wire::Role::kWorker) {
    // The node registered elsewhere, or was declared dead: the client asks again when it has
    // registered anew
    return;
  }
  Request request;
  std::optional<Refusal> refusal = Identify(turn, input, session, &request);
  const Speaker speaker = SpeakerOf(session.role, input.relay.has_value());
  if (!refusal) refusal = ObjectionTo(turn, speaker, request, message.body);
  if (refusal) {
    turn.Refuse(request, refusal->code, std::move(refusal->text));
    return;
  }
  if (wire::Holds<wire::Goodbye>(message.body)) {
    session.left = true;
    turn.Close(input.session, "goodbye");
    return;
  }
  if (speaker == Speaker::kWorker) {
    OnWorkerMessage(turn, request, session, message);
    return;
  }
  if (wire::Visit(Reads(turn, request), message.body)) return;
  if (turn.state.read_only && IsNew(message.body)) {
    turn.Refuse(request, ErrorCode::kTooLarge,
                "the head's disk is full: what runs may end, nothing new is taken until there is "
                "room in its "
                "state directory");
    return;
  }
  if (wire::Visit(Writes(turn, request, message.attachment), message.body)) return;
  turn.Refuse(request, ErrorCode::kInvalid,
              std::string(wire::NameOf(message.body)) + " is not a request to the head");
}

void OnTick(Turn& turn) {
  while (const auto entry = turn.state.timers.Pop(turn.now)) {
    const Id128& id = std::get<2>(*entry);
    switch (std::get<1>(*entry)) {
      case TimerKind::kNode:
        OnNodeTimer(turn, NodeId(id));
        break;
      case TimerKind::kOwner:
        OnOwnerTimer(turn, OwnerId(id));
        break;
      case TimerKind::kGroupRetry:
        turn.state.dirty = true;
        break;
      case TimerKind::kLaunch:
        OnLaunchTimer(turn, LaunchId(id));
        break;
      case TimerKind::kCancel:
        OnCancelTimer(turn, LaunchId(id));
        break;
      case TimerKind::kDriver:
        OnDriverTimer(turn, LaunchId(id));
        break;
      case TimerKind::kWait:
        OnWaitTimer(turn);
        break;
      case TimerKind::kActorRecreate:
        OnRecreateTimer(turn, ActorId(id));
        break;
      case TimerKind::kRetention:
        OnRetentionTimer(turn);
        break;
      case TimerKind::kArchive:
        OnArchiveTimer(turn);
        break;
      case TimerKind::kMoved:
        OnMovedTimer(turn);
        break;
      case TimerKind::kEnding:
        OnEndingTimer(turn, LaunchId(id));
        break;
      case TimerKind::kReform:
        OnReformTimer(turn, LaunchId(id));
        break;
      case TimerKind::kHang:
        OnHangTimer(turn, LaunchId(id));
        break;
      case TimerKind::kTellReturned:
        OnTellReturnedTimer(turn, LaunchId(id));
        break;
      case TimerKind::kAwaited:
        OnAwaitedTimer(turn, LaunchId(id));
        break;
    }
  }
}

}  // namespace troupe::head
