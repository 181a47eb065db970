// Reconciliation: a node reports what it holds, the head says what of it still has an owner.
//
// The guarantee behind every message that may be lost (placement-groups: P4). What the node holds and
// nobody owns is released or ended; what was asked of it and not answered is asked again; what the
// head thinks runs there and the node does not report is lost, after a short grace in which an
// outcome that the worker kept may still arrive.
#pragma once

#include "head/core/turn.h"

namespace troupe::head {

void Reconcile(Turn& turn, Node& node, const wire::RegisterNode& report);
/// The grace is over.
void OnReportTimer(Turn& turn, const NodeId& id);

}  // namespace troupe::head
