// The driver of a launch, which holds a lease and completes it, and those who wait for its marker
// (markers.h).
#pragma once

#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

void OnAcquireDriver(Turn& turn, const Request& request, const wire::AcquireDriver& message);
void OnRenewDriver(Turn& turn, const Request& request, const wire::RenewDriver& message);
void OnComplete(Turn& turn, const Request& request, const wire::Complete& message,
                const std::string& value);
void OnWaitMarker(Turn& turn, const Request& request, const wire::WaitMarker& message);
void OnWaitTimer(Turn& turn);
void OnDriverTimer(Turn& turn, const LaunchId& id);

}  // namespace troupe::head
