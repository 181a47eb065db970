#include "head/core/nodes/task_lists.h"

#include <algorithm>
#include <set>
#include <utility>

namespace troupe::head {
namespace {

bool Of(const Route& route, const SessionId& session, const ProcessId* process) {
  return route.session == session && (process == nullptr || route.process == *process);
}

/// Passes on the answer of an owner, or its failure to answer.
void PassOn(Turn& turn, TaskListing& listing, const Route& owner, const std::string& attachment) {
  if (listing.waits_for.erase(owner) == 0) return;
  wire::TasksTold told;
  told.ask = listing.ask;
  turn.SendTo(listing.asker, std::move(told), attachment);
}

void DropAnswered(State& state) {
  std::erase_if(state.task_listings,
                [](const TaskListing& each) { return each.waits_for.empty(); });
}

}  // namespace

void OnListTasks(Turn& turn, const Request& request, const wire::ListTasks& message) {
  // a repeat
  std::erase_if(turn.state.task_listings,
                [&](const TaskListing& each) { return each.ask == message.ask; });
  wire::TellTasks tell;
  tell.ask = message.ask;
  tell.limit = std::min(message.limit, kTasksListedMax);
  tell.ended = message.ended;
  TaskListing listing{message.ask, request.route, turn.state.task_owners};
  listing.waits_for.erase(request.route);
  for (const Route& owner : listing.waits_for) turn.SendTo(owner, tell);
  tell.owners = static_cast<std::uint32_t>(listing.waits_for.size());
  if (tell.owners != 0) turn.state.task_listings.push_back(std::move(listing));
  if (turn.state.task_listings.size() > kTaskListingsMax) turn.state.task_listings.pop_front();
  turn.Reply(request, std::move(tell));
}

void OnTasksTold(Turn& turn, const Request& request, const wire::TasksTold& message,
                 const std::string& attachment) {
  turn.Reply(request, wire::Ok());
  if (message.ask.IsNil()) return NoteTaskOwner(turn, request.route);
  for (TaskListing& each : turn.state.task_listings) {
    if (each.ask == message.ask) PassOn(turn, each, request.route, attachment);
  }
  DropAnswered(turn.state);
}

void NoteTaskOwner(Turn& turn, const Route& route) { turn.state.task_owners.insert(route); }

void DropTaskOwners(Turn& turn, const SessionId& session, const ProcessId* process) {
  State& state = turn.state;
  std::erase_if(state.task_owners, [&](const Route& each) { return Of(each, session, process); });
  std::erase_if(state.task_listings,
                [&](const TaskListing& each) { return Of(each.asker, session, process); });
  for (TaskListing& each : state.task_listings) {
    const std::set<Route> waits_for = each.waits_for;
    for (const Route& owner : waits_for) {
      if (Of(owner, session, process)) PassOn(turn, each, owner, {});
    }
  }
  DropAnswered(state);
}

void MoveTaskOwners(State& state, const SessionId& from, const SessionId& to) {
  if (from.IsNil() || from == to) return;
  std::set<Route> owners;
  for (const Route& each : state.task_owners)
    owners.insert(each.session == from ? Route{to, each.process} : each);
  state.task_owners = std::move(owners);
}

}  // namespace troupe::head
