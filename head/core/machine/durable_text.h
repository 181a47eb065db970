// The durable state as text, line by line: what a replay is compared by with the original.
#pragma once

#include <string>

#include "head/core/machine/state.h"

namespace troupe::head {

/// Equal for two states whose durable members are equal in what is listed; for tests and the
/// simulator.
std::string DurableText(const State& state);

}  // namespace troupe::head
