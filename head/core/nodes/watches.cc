#include "head/core/nodes/watches.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "head/core/nodes/task_lists.h"

namespace troupe::head {
namespace {

template <class Watched>
void DropWatchers(Watched& watched, const SessionId& session, const ProcessId* process) {
  for (auto it = watched.begin(); it != watched.end();) {
    const bool gone = it->session == session && (process == nullptr || it->process == *process);
    it = gone ? watched.erase(it) : std::next(it);
  }
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

}  // namespace

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

bool Watches(const std::set<Route>& watchers, const SessionId& session) {
  const auto first = watchers.lower_bound({session, ProcessId()});
  return first != watchers.end() && first->session == session;
}

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
  // processes ask again by themselves: their requests are repeated
  if (!before.IsNil()) turn.state.waits.Drop(before, nullptr);
  for (auto& [id, route] : turn.state.output_routes) {
    if (!before.IsNil() && route.session == before) route.session = session;
  }
  MoveTaskOwners(turn.state, before, session);
  for (auto& [id, launch] : turn.state.launches) {
    Move(launch.watchers, before, session);
    if (!before.IsNil() && launch.driver_route.session == before)
      launch.driver_route.session = session;
  }
  for (auto& [id, group] : turn.state.groups) {
    Move(group.watchers, before, session);
    const auto maker = MakerThere(turn, group.spec.launch, group.spec.owner, node.id);
    if (maker) group.watchers.insert({session, *maker});
  }
  for (auto& [id, actor] : turn.state.actors) {
    Move(actor.watchers, before, session);
    const auto maker = MakerThere(turn, actor.launch, actor.owner, node.id);
    if (maker) actor.watchers.insert({session, *maker});
  }
  turn.Happened(fact::WatchersBack{session});
}

}  // namespace troupe::head
