// The end of an epoch on its nodes: they are told, and what its driver made ends.
#pragma once

#include <cstdint>
#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// The current epoch is over, and another one follows.
void EndEpoch(Turn& turn, Launch& launch, wire::Failure failure);
/// For the sake of others: another epoch follows in any case, and is not counted as an attempt.
void PreemptEpoch(Turn& turn, Launch& launch, const std::string& why);
/// To a node that reports ranks of an epoch that is over.
void TellEpochEnded(Turn& turn, const NodeId& node, const LaunchId& launch, std::uint64_t epoch);
/// The marker stands: every node of the epoch is told, and what its driver made ends.
void EndForMarker(Turn& turn, Launch& launch);

}  // namespace troupe::head
