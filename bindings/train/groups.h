// The groups over memory of this process: one supervisor for all, made with the first one.
//
// Not destroyed: threads of a group may run until the process ends. A forked child has none, and
// makes its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/train/local/local_communicator.h"
#include "bindings/python/troupe/_process/torch_backend/group_api.h"

namespace troupe::bindings {

/// Begins to form a group; returns at once.
std::shared_ptr<train::LocalCommunicator> FormGroup(train::LocalSpec spec, train::Door door);
/// Ends what runs in all groups of this process, with the reason; returns at once. How many there
/// are. Any thread.
int StopGroups(const std::string& reason);
/// Lets go of a group that was stopped or is left: waits for its threads, on a thread of its own.
void LeaveGroup(std::shared_ptr<train::LocalCommunicator> group);

/// A group as the functions of GroupApi know it, with one user.
TroupeGroup* NewGroupHandle(std::shared_ptr<train::LocalCommunicator> group);
const TroupeGroupApi* GroupApi();

}  // namespace troupe::bindings
