// Which of an epoch's failures is the cause, and which follow from it.
//
// Pure. Where one rank ends, the others' collectives fail after it: what they raise is a symptom.
// No clock of a rank is compared: of failures of one grade the first in the head's log counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "head/core/state.h"

namespace troupe::head {

/// The lower, the more likely the cause.
enum class Grade : std::uint8_t {
  kNodeLost,
  kKilled,   // a signal, a crash, want of memory
  kNoValue,  // it exited without a value, or could not be started
  kException,
  kEarlyReturn,  // it returned while others still needed it
  kSymptom,      // a collective lost its connection, or its patience
  kStopped,      // it was told to
};

/// `served`: it only serves the driver, so that any end before the marker is a failure.
Grade GradeOf(const wire::RankDone& done, bool served);

/// Whether this rank died and its launch may go on without it (R1, gang/regroup.h): it was killed,
/// lost with its node or ended without a value, of a launch that was submitted so. Never one whose
/// code raised, or that was told to stop.
bool Died(const Launch& launch, std::size_t rank);

/// Processes in a rank's place that may follow each other, and of these in a row before one was in
/// a group (RP3, gang/replace.h).
inline constexpr std::uint32_t kReplacementsMax = 16;
inline constexpr std::uint32_t kUnbornMax = 3;

/// How many processes in a row died in this rank's place before one was in a group, should the one
/// that it has now die.
std::uint32_t UnbornOf(const Launch& launch, const Rank& rank);

/// Whether another process has taken the place of this one since a group was formed last: what it
/// died of is then in `done`, with outcome kNone.
bool Replaced(const Rank& rank);

/// So many ranks have not died, of which there must be `ranks_min`.
std::size_t LeftOf(const Launch& launch);

/// Whether this rank's end makes its epoch fail, unless it died and enough are left.
bool EndedBadly(const Launch& launch, std::size_t rank);

/// Whether a rank of the current epoch has failed, or too many have died: it cannot succeed any
/// more.
bool Failing(const Launch& launch);

/// Whether no rank has code that still runs (of a driver launch: the driver).
bool AllEnded(const Launch& launch);

struct Cause {
  Grade grade = Grade::kStopped;
  wire::Failure failure;
  bool drivers_word = false;  // the driver said it itself
};

/// The cause as far as it is known; the launch must be Failing. A death that the ranks' group has
/// been formed without since is none.
Cause CauseOf(const Launch& launch);

/// What one rank says of where it was is cut to this.
inline constexpr std::size_t kWhereBytesMax = 4096;

/// Where the ranks of a launch that timed out were, those that were at the same place together; 16
/// places at most. A rank that runs and said nothing has a line that says so.
std::string WhereRanksWere(const Launch& launch);

}  // namespace troupe::head
