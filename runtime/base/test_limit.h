// Limits of time that a test may shorten, where waiting them out would take minutes.
//
// In builds for tests (TROUPE_WITH_FAULTS) the variable
// TROUPE_TEST_LIMITS="fence_after=3,recreate_after=6" has some of them, in seconds; in others this
// is the usual value, and the variable is nothing.
#pragma once

#include <string_view>

#include "runtime/base/time.h"

namespace troupe {

#ifdef TROUPE_WITH_FAULTS
/// A variable that cannot be read ends the process with a sentence.
Duration TestLimit(std::string_view name, Duration usual);
#else
constexpr Duration TestLimit(std::string_view, Duration usual) { return usual; }
#endif

}  // namespace troupe
