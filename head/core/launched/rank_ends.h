// Ends of ranks that no rank or worker has told, as they are journaled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// The only generation of an epoch's group so far.
inline constexpr std::uint64_t kGeneration = 1;

/// RankDone::order of the next of its ranks to end.
std::uint64_t NextInLog(const Launch& launch);
/// Rank `r`'s node, names and host in a Failure.
wire::Failure FailureOn(Turn& turn, const Launch& launch, std::int32_t rank, wire::FailureKind kind,
                        const std::string& cause);
/// A rank's end by the head's own knowledge, or by the driver's word: journaled, and no more.
/// OnRankEnded follows.
void FinishRank(Turn& turn, Launch& launch, std::size_t rank, wire::RankDone done,
                wire::Failure failure, const std::string& value);
/// An end by the head's own knowledge, of the rank that `failure` names, as a failed one.
void FailRank(Turn& turn, Launch& launch, wire::Failure failure);

}  // namespace troupe::head
