// Which reducer a message belongs to, and who may send it.
#pragma once

#include "head/core/turn.h"

namespace troupe::head {

void OnMessage(Turn& turn, const MessageFrom& input);
/// Everything due by now.
void OnTick(Turn& turn);

}  // namespace troupe::head
