// How long heads of this state have run: what ages by it is not destroyed by a wall clock that is
// set ahead.
//
//   LT-1  Lived time is counted by the monotonic clock, is journaled at a start, and with the first
//         input after each kNoteEvery. A head that ends in between loses no more than what the wall
//         clock says has passed since, kNoteEvery at the most: so neither does a head that restarts
//         every minute keep what is old for ever.
//   LT-2  Records of launches that are over are kept for the retention of lived time.
//   LT-3  A token is good for its life by the longer of two clocks: until its wall time has come
//         and its lived time is over. A revoked one is remembered for as long as a certificate of
//         it may be valid, by both.
//   LT-4  Where the two clocks part by kJumpUs (event_notes.h) or more, that is said (`troupe list
//         events`): the head was away, or the clock was set.
//
// Pure; view: the head.
#pragma once

#include "head/core/machine/turn.h"

namespace troupe::head {

inline constexpr Duration kNoteEvery = std::chrono::hours(1);

std::uint64_t LivedUs(const State& state, Instant now);
/// At a start, once.
void BeginLivedTime(Turn& turn);
/// With every input.
void NoteLivedTime(Turn& turn);

/// For TokenWritten::created_lived_us: one more, since 0 means that it was not noted.
std::uint64_t LivedMark(const Turn& turn);
/// When a token ends, as this host's wall clock will say if it runs on as it does (LT-3).
std::uint64_t ExpiresUs(const State& state, const wire::TokenWritten& token, Instant now,
                        std::uint64_t wall_us);

}  // namespace troupe::head
