// The tasks of the cluster, for who asks: the head asks the processes that have some, and passes on
// what they say.
//
// Pure; view: cluster. Tasks are known to the process that started them, and the head is told of
// none: so it does not grow with them, and what it keeps of a question is who has not answered yet.
// Who has tasks says so once, and with each process that it asks for to run them.
#pragma once

#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

// then the oldest is given up: its asker waits no more
inline constexpr std::size_t kTaskListingsMax = 64;
inline constexpr std::uint32_t kTasksListedMax = 10'000;

void OnListTasks(Turn& turn, const Request& request, const wire::ListTasks& message);
void OnTasksTold(Turn& turn, const Request& request, const wire::TasksTold& message,
                 const std::string& attachment);
/// This process has tasks, and is reached here.
void NoteTaskOwner(Turn& turn, const Route& route);
/// Processes are gone, `process` null: all of the session. Who waits for their answers gets empty
/// ones.
void DropTaskOwners(Turn& turn, const SessionId& session, const ProcessId* process);
/// A node's processes are reached by another session.
void MoveTaskOwners(State& state, const SessionId& from, const SessionId& to);

}  // namespace troupe::head
