// Views of a node: what is free there, whether it is well, and what is wrong with it.
//
// Pure; nothing here changes a node.
#pragma once

#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// ": its worker (process 7) waits for a disk", of a silent node of this host or one that says so;
/// else empty.
std::string WhatItsWorkerDoes(const Node& node);
/// Why a node is dead, or takes nothing new: in a clause, without its state. Empty: nothing is
/// wrong with it.
std::string WhatIsWrong(const Turn& turn, const Node& node);
/// Returns true if a run may count the node: it is alive, connected and takes new work.
bool IsThere(const Node& node);
/// Returns what is free on a node by the head's account: the node alone decides.
Resources FreeOf(const Node& node);
wire::NodeState StateOf(const Node& node);
wire::NodeInfo InfoOf(const Turn& turn, const Node& node);

}  // namespace troupe::head
