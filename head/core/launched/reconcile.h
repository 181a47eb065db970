// Reconciliation: a node reports what it holds, the head says what of it still has an owner.
//
// The guarantee behind every message that may be lost (placement-groups: P4). What the node holds
// and nobody owns is released or ended; what was asked of it and not answered is asked again; what
// the head thinks runs there and the node does not report is lost, once the outcomes that the
// worker kept have had their turn: it sends them when it is told that it is registered, and a
// heartbeat after them. No time stands for that: a head whose disk is slow tells it late.
#pragma once

#include "head/core/machine/turn.h"

namespace troupe::head {

void Reconcile(Turn& turn, Node& node, const wire::RegisterNode& report);

}  // namespace troupe::head
