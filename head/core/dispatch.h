// Routing of a message to its reducer, and the check of its sender.
#pragma once

#include "head/core/machine/turn.h"

namespace troupe::head {

void OnMessage(Turn& turn, const MessageFrom& input);
/// Everything due by now.
void OnTick(Turn& turn);

}  // namespace troupe::head
