// Launches that others are to start after (JB-1, jobs/jobs.h): how they ended, and who waits for
// them.
//
// Pure; view: cluster.
#pragma once

#include <optional>
#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// Null: not in memory.
const Launch* SeeLaunch(const Turn& turn, const LaunchId& id);
/// How a launch ended; nullopt: it is open. One that was forgotten has succeeded, for all that a
/// launch in the queue can know: its failure would have been followed up at once.
std::optional<wire::Outcome> OutcomeOf(const Turn& turn, const LaunchId& id);
/// "launch 1a2b3c4d (train)".
std::string NameOfLaunch(const Turn& turn, const LaunchId& id);
/// Returns true if the gang waits for other launches (JB-1).
bool WaitsForLaunches(const Turn& turn, const Group& group);
/// For people: the launches that it waits for, and what they are doing.
std::string LaunchesWaitedFor(const Turn& turn, const Group& group);

}  // namespace troupe::head
