// Reasons why requests wait in the queue, for people.
#pragma once

#include <cstdint>
#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// Why a waiting group waits, in one line; empty when it does not.
std::string WaitingFor(Turn& turn, const Group& group);
/// Why a waiting group waits, in full: a line per group of equal nodes, who is before it, what its
/// last attempt met; empty when it does not wait.
std::string WhyWaiting(Turn& turn, const Group& group);
/// How many top-level requests are before it in the queue.
std::uint32_t QueuePlace(const Turn& turn, const Group& group);

}  // namespace troupe::head
