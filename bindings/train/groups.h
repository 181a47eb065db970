// Groups over memory as a library that was built against torch uses them (group_api.h).
#pragma once

#include <memory>

#include "actors/train/process_groups.h"
#include "bindings/python/troupe/_process/torch_backend/group_api.h"

namespace troupe::bindings {

/// A group as the functions of GroupApi know it, with one user.
TroupeGroup* NewGroupHandle(std::shared_ptr<train::LocalCommunicator> group);
const TroupeGroupApi* GroupApi();

}  // namespace troupe::bindings
