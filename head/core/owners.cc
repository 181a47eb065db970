#include "head/core/owners.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "head/core/actor_lives.h"
#include "head/core/actor_views.h"
#include "head/core/ending.h"
#include "head/core/groups.h"
#include "head/core/launches.h"
#include "head/core/output_routes.h"
#include "head/core/roles.h"
#include "head/core/roster.h"
#include "head/core/runs.h"
#include "head/core/task_lists.h"

namespace troupe::head {
namespace {

template <class Watched>
void DropWatchers(Watched& watched, const SessionId& session, const ProcessId* process) {
  for (auto it = watched.begin(); it != watched.end();) {
    const bool gone = it->session == session && (process == nullptr || it->process == *process);
    it = gone ? watched.erase(it) : std::next(it);
  }
}

bool Watches(const std::set<Route>& watchers, const SessionId& session) {
  const auto first = watchers.lower_bound({session, ProcessId()});
  return first != watchers.end() && first->session == session;
}

void Move(std::set<Route>& watchers, const SessionId& from, const SessionId& to) {
  if (from.IsNil() || from == to) return;
  std::vector<ProcessId> moved;
  for (auto it = watchers.begin(); it != watchers.end();) {
    const bool there = it->session == from;
    if (there) moved.push_back(it->process);
    it = there ? watchers.erase(it) : std::next(it);
  }
  for (const ProcessId& process : moved) watchers.insert({to, process});
}

// The rank that made something, if its launch is on this node: a worker passes over processes it
// does not have.
std::optional<ProcessId> MakerThere(Turn& turn, const LaunchId& id, const OwnerId& owner,
                                    const NodeId& node) {
  const Launch* launch = turn.FindLaunch(id);
  if (launch == nullptr || !launch->on_nodes() || owner.IsNil()) return std::nullopt;
  if (turn.FindActor(ActorId(owner.hi, owner.lo)) != nullptr) return std::nullopt;
  const bool there =
      std::find(launch->nodes.begin(), launch->nodes.end(), node) != launch->nodes.end();
  return there ? std::optional<ProcessId>(owner) : std::nullopt;
}

// `process` null: the whole session.
void DropRoutes(State& state, const SessionId& session, const ProcessId* process) {
  state.waits.Drop(session, process);
  for (auto& [id, launch] : state.launches) DropWatchers(launch.watchers, session, process);
  for (auto& [id, group] : state.groups) DropWatchers(group.watchers, session, process);
  for (auto& [id, actor] : state.actors) DropWatchers(actor.watchers, session, process);
  std::erase_if(state.output_routes, [&](const auto& each) {
    return each.second.session == session &&
           (process == nullptr || each.second.process == *process);
  });
}

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

void DropWatches(Turn& turn, const Node& node) {
  for (const SessionId& session : {node.session, node.last_session}) {
    if (session.IsNil()) continue;
    DropRoutes(turn.state, session, nullptr);
    DropTaskOwners(turn, session, nullptr);
  }
}

void ResumeWatches(Turn& turn, Node& node, const SessionId& session) {
  const SessionId before = node.last_session;
  node.last_session = session;
  // Clients ask again by themselves: their requests are repeated
  if (!before.IsNil()) turn.state.waits.Drop(before, nullptr);
  for (auto& [id, route] : turn.state.output_routes) {
    if (!before.IsNil() && route.session == before) route.session = session;
  }
  MoveTaskOwners(turn.state, before, session);
  for (auto& [id, launch] : turn.state.launches) {
    Move(launch.watchers, before, session);
    if (!before.IsNil() && launch.driver_route.session == before)
      launch.driver_route.session = session;
    if (Watches(launch.watchers, session)) PushLaunch(turn, launch);
  }
  for (auto& [id, group] : turn.state.groups) {
    Move(group.watchers, before, session);
    const auto maker = MakerThere(turn, group.spec.launch, group.spec.owner, node.id);
    if (maker) group.watchers.insert({session, *maker});
    if (Watches(group.watchers, session)) PushGroup(turn, group);
  }
  for (auto& [id, actor] : turn.state.actors) {
    Move(actor.watchers, before, session);
    const auto maker = MakerThere(turn, actor.launch, actor.owner, node.id);
    if (maker) actor.watchers.insert({session, *maker});
    if (Watches(actor.watchers, session)) PushActor(turn, actor);
  }
}

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
  TellWatchersLeft(turn);
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
  Selection owned;
  owned.launch = [&](const Launch& launch) { return launch.owner == owner; };
  owned.actor = [&](const Actor& actor) { return actor.owner == owner; };
  owned.group = [&](const Group& group) { return group.spec.owner == owner; };
  EndAll(turn, owned, why);
}

void EndAll(Turn& turn, const Selection& which, const std::string& why) {
  std::vector<LaunchId> launches;
  for (const auto& [id, launch] : turn.state.launches) {
    if (launch.open() && !launch.spec.detached && which.launch(launch)) launches.push_back(id);
  }
  for (const LaunchId& id : launches) {
    Launch& launch = *turn.FindLaunch(id);
    StopOrder order;
    order.cause = "cancelled: " + why;
    order.grace = StopGrace(launch);
    StopLaunch(turn, launch, order);
  }
  std::vector<ActorId> actors;
  for (const auto& [id, actor] : turn.state.actors) {
    if (actor.live() && !actor.spec.detached && which.actor(actor)) actors.push_back(id);
  }
  for (const ActorId& id : actors)
    EndActorNow(turn, *turn.FindActor(id), wire::FailureKind::kOwnerEnded, why);
  std::vector<GroupId> groups;
  for (const auto& [id, group] : turn.state.groups) {
    if (group.live() && !group.spec.detached && which.group(group)) groups.push_back(id);
  }
  for (const GroupId& id : groups) EndGroup(turn, id, why);
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
