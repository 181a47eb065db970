// Placement groups as those who make them see them; groups.h has what becomes of them.
#pragma once

#include "head/core/machine/turn.h"

namespace troupe::head {

void OnCreateGroup(Turn& turn, const Request& request, const wire::CreateGroup& message);
void OnGetGroup(Turn& turn, const Request& request, const wire::GetGroup& message);
void OnRemoveGroup(Turn& turn, const Request& request, const wire::RemoveGroup& message);

}  // namespace troupe::head
