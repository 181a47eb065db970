// Choice of the cause among an epoch's failures; the others follow from it. Pure.
//
// Pure. Where one rank ends, the others' collectives fail after it: what they raise is a symptom.
// No clock of a rank is compared: of failures of one grade the first in the head's log counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "head/core/machine/state.h"

namespace troupe::head {

/// The lower, the more likely the cause.
enum class Grade : std::uint8_t {
  kNodeLost,
  kKilled,   // a signal, a crash, want of memory
  kNoValue,  // exited without a value, or could not be started
  kException,
  kEarlyReturn,  // returned while others still needed it
  kSymptom,      // a collective lost its connection, or its patience
  kStopped,  // was told to stop
};

/// `served`: it only serves the driver, so that any end before the marker is a failure.
Grade GradeOf(const wire::RankDone& done, bool served);

/// Returns true if this rank died and its launch may go on without it (R1, gang/regroup.h): it was
/// killed, lost with its node or ended without a value, in a launch that was submitted so. False
/// for a rank whose code raised, or that was told to stop.
bool Died(const Launch& launch, std::size_t rank);

/// Processes in a rank's place that may follow each other, and of these in a row before one was in
/// a group (RP3, gang/replace.h).
inline constexpr std::uint32_t kReplacementsMax = 16;
inline constexpr std::uint32_t kUnbornMax = 3;

/// How many processes in a row died in this rank's place before one was in a group, should the one
/// that it has now die.
std::uint32_t UnbornOf(const Launch& launch, const Rank& rank);

/// Returns true if another process has taken the place of this one since a group was formed last:
/// the cause of its death is then in `done`, with outcome kNone.
bool Replaced(const Rank& rank);

/// The epoch of the ranks' group, from the durable state alone (R2, gang/regroup.h).
std::uint64_t GroupEpochOf(const Launch& launch);

/// So many ranks have not died, of which there must be `ranks_min`.
std::size_t LeftOf(const Launch& launch);

/// Returns true if this rank's end makes its epoch fail, unless it died and enough are left.
bool EndedBadly(const Launch& launch, std::size_t rank);

/// Returns true if a rank of the current epoch has failed, or too many have died: it cannot succeed
/// any more.
bool Failing(const Launch& launch);

/// Returns true if no rank has code that still runs (of a driver launch: the driver).
bool AllEnded(const Launch& launch);

struct Cause {
  Grade grade = Grade::kStopped;
  wire::Failure failure;
  bool drivers_word = false;  // the driver said it itself
};

/// The cause as far as it is known; the launch must be Failing. A death that the ranks' group has
/// been formed without since is none.
Cause CauseOf(const Launch& launch);

/// Longest text of a rank on where it was.
inline constexpr std::size_t kWhereBytesMax = 4096;

/// Returns where the ranks of a launch that timed out were, those that were at the same place
/// together; 16 places at most. A rank that runs and reported nothing has a line that says so.
std::string WhereRanksWere(const Launch& launch);

}  // namespace troupe::head
