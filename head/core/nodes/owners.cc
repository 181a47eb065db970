#include "head/core/nodes/owners.h"

#include <set>
#include <utility>
#include <vector>

#include "head/core/nodes/output_routes.h"
#include "head/core/nodes/roles.h"
#include "head/core/nodes/roster.h"
#include "head/core/nodes/task_lists.h"
#include "head/core/nodes/watches.h"

namespace troupe::head {
namespace {

// Keys of those that were given a certificate and have not become nodes, since a token may be shown
// as often as one likes.
bool ForgetIdleKeys(Turn& turn) {
  std::set<NodeId> here;
  for (const auto& [id, session] : turn.state.sessions) here.insert(NodeId(session.subject));
  std::vector<NodeId> idle;
  for (const auto& [id, hash] : turn.state.node_keys) {
    if (turn.state.nodes.count(id) == 0 && here.count(id) == 0) idle.push_back(id);
  }
  for (const NodeId& id : idle) ForgetNode(turn, id);
  return !idle.empty();
}

// By its newest key alone a node may come back on a certificate that is out of date (decision 18).
void NoteNodeKey(Turn& turn, const SessionOpened& input) {
  if (input.role != wire::Role::kWorker || input.issued_key_hash.empty()) return;
  // A key may not come back once its certificate is out of date
  if (turn.state.node_keys.size() >= kNodeKeysMax && !ForgetIdleKeys(turn)) return;
  wire::NodeKeyed keyed;
  keyed.node = NodeId(input.subject);
  keyed.key_hash = input.issued_key_hash;
  turn.Append(std::move(keyed));
}

}  // namespace

void OpenSession(Turn& turn, const SessionOpened& input) {
  Session& session = turn.state.sessions[input.session];
  session.role = input.role;
  session.subject = input.subject;
  session.host = input.host;
  session.local = input.local;
  NoteNodeKey(turn, input);
  session.token = input.token;
  session.user = turn.state.UserOfToken(input.token);
  // nobody else owns by a session
  if (input.role != wire::Role::kClient || Id128(input.subject) == Id128()) return;
  const auto [owner, fresh] = turn.state.owners.try_emplace(OwnerId(input.subject));
  owner->second.session = input.session;
  if (!fresh) ReachRootAt(turn, owner->first, {input.session, ProcessId()});
}

void CloseSession(Turn& turn, const SessionId& id) {
  const auto found = turn.state.sessions.find(id);
  if (found == turn.state.sessions.end()) return;
  const Session session = found->second;
  turn.state.sessions.erase(found);
  turn.state.recalls.Drop(id);
  if (session.role == wire::Role::kWorker) {
    // The node's processes live on and watch on: see ResumeWatches.
    OnWorkerGone(turn, session, id);
    return;
  }
  DropRoutes(turn.state, id, nullptr);
  DropTaskOwners(turn, id, nullptr);
  turn.Happened(fact::SessionEnded{});
  const OwnerId owner(session.subject);
  const auto entry = turn.state.owners.find(owner);
  if (entry == turn.state.owners.end() || entry->second.session != id) return;
  entry->second.session = SessionId();
  if (session.left || session.local) {
    EndOwner(turn, owner, session.left ? "its caller left" : "its caller's process ended");
    return;
  }
  entry->second.expires = turn.now + turn.options.client_grace;
  turn.Arm(entry->second.expires, TimerKind::kOwner, owner);
}

void OnProcessGone(Turn& turn, const SessionId& session, const ProcessId& process) {
  DropRoutes(turn.state, session, &process);
  DropTaskOwners(turn, session, &process);
  const auto worker = turn.state.sessions.find(session);
  if (worker == turn.state.sessions.end() || !WasOn(turn, worker->second.node, process)) return;
  turn.state.rank_processes.erase(process);
  EndOwner(turn, process, "the process that made it ended");
}

void OnOwnerTimer(Turn& turn, const OwnerId& id) {
  const auto owner = turn.state.owners.find(id);
  if (owner == turn.state.owners.end() || !owner->second.session.IsNil()) return;
  if (owner->second.expires > turn.now) {
    turn.Arm(owner->second.expires, TimerKind::kOwner, id);
    return;
  }
  EndOwner(turn, id, "its caller is gone");
}

void EndOwner(Turn& turn, const OwnerId& owner, const std::string& why) {
  turn.state.owners.erase(owner);
  if (owner.IsNil()) return;
  turn.Happened(fact::OwnerGone{owner, why});
}

void AwaitOwners(Turn& turn) {
  std::set<OwnerId> owners;
  for (const auto& [id, launch] : turn.state.launches) {
    if (launch.open() && !launch.spec.detached) owners.insert(launch.owner);
  }
  for (const auto& [id, actor] : turn.state.actors) {
    if (actor.live() && !actor.spec.detached && actor.launch.IsNil()) owners.insert(actor.owner);
  }
  for (const auto& [id, group] : turn.state.groups) {
    if (group.live() && !group.spec.detached && group.spec.launch.IsNil()) {
      owners.insert(group.spec.owner);
    }
  }
  for (const OwnerId& id : owners) {
    // An actor's end is known from the directory, not from a session.
    if (id.IsNil() || turn.FindActor(ActorId(id.hi, id.lo)) != nullptr) continue;
    turn.state.owners[id].expires = turn.now + turn.options.restart_grace;
    turn.Arm(turn.state.owners[id].expires, TimerKind::kOwner, id);
  }
}

}  // namespace troupe::head
