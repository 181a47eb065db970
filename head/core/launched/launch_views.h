// Views of launches: the answers to whoever asks for one, lists them, or watches one.
//
// Pure; nothing here changes a launch.
#pragma once

#include "head/core/machine/turn.h"

namespace troupe::head {

/// Tells its watchers that it has changed.
void PushLaunch(Turn& turn, const Launch& launch);
wire::LaunchInfo InfoOf(Turn& turn, const Launch& launch);

}  // namespace troupe::head
