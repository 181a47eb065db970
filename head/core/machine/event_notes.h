// Notes for the history of events (event_history.h): what each event of the journal means to a
// person, if anything.
//
// Ends that are asked for (kill, the last handle, the owner's end) and exits without an error are
// not noted: a sweep of ten thousand actors would leave nothing else.
//   CH-2  An end is noted once, with its cause, and whether a restart follows.
//
// Pure; view: the cluster.
#pragma once

#include <cstdint>

#include "head/core/machine/state.h"

namespace troupe::head {

/// Two clocks that part by so much are told of (LT-4, lived_time.h).
inline constexpr std::uint64_t kJumpUs = 3600ull * 1'000'000;

/// Writes down in `state.history` what `event`, which is not applied yet, means to a person, if
/// anything.
void NoteEvent(State& state, const wire::EventBody& event, std::uint64_t wall_us);

}  // namespace troupe::head
