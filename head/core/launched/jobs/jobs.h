// Jobs: launches that start after others, and whose token ends with them.
//
//   JB-1  A launch that is to start after others holds nothing, and is tried for no place, before
//         all of these have succeeded.
//   JB-2  When one of these ends otherwise, the launch fails at once, and so do those after it.
//   JB-3  From its marker on, a job's token lets nobody in, and the sessions that came by it are
//         closed, so all that its processes made ends, detached things excepted.
//
// Pure; view: cluster.
#pragma once

#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// Why a launch with these terms cannot be accepted; empty when it can.
std::string ObjectionToJob(const Turn& turn, const Request& request, const wire::LaunchSpec& spec);
/// Follows up the marker of a launch (JB-2, JB-3).
void OnJobMarker(Turn& turn, const Launch& ended);
/// After replay: applies JB-2 to what ended when the head was killed.
void ResumeJobs(Turn& turn);

}  // namespace troupe::head
