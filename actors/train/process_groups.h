// The groups over memory of this process: one supervisor for all, made with the first one.
//
// Not destroyed: threads of a group may run until the process ends. A forked child has none, and
// makes its own.
#pragma once

#include <memory>
#include <string>

#include "actors/train/local/local_communicator.h"

namespace troupe::train {

/// Begins to form a group; returns at once.
std::shared_ptr<LocalCommunicator> FormInProcess(LocalSpec spec, Door door);
/// Ends what runs in all groups of this process, with the reason; returns at once. How many there
/// are. Any thread.
int StopAllInProcess(const std::string& reason);
/// Lets go of a group that was stopped or is left: waits for its threads, on a thread of its own.
void LeaveInProcess(std::shared_ptr<LocalCommunicator> group);

}  // namespace troupe::train
