// Launches as their callers see them: submission, the queue, watching, cancelling, results.
#pragma once

#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

void OnSubmitLaunch(Turn& turn, const Request& request, const wire::SubmitLaunch& message,
                    const std::string& payload);
void OnWatchLaunch(Turn& turn, const Request& request, const wire::WatchLaunch& message);
void OnGetLaunch(Turn& turn, const Request& request, const wire::GetLaunch& message);
void OnGetResult(Turn& turn, const Request& request, const wire::GetResult& message);
void OnCancelLaunch(Turn& turn, const Request& request, const wire::CancelLaunch& message);
/// A launch whose owner is away becomes the watcher's.
void Adopt(Turn& turn, Launch& launch, const Request& request);
void OnLaunchTimer(Turn& turn, const LaunchId& id);
void OnCancelTimer(Turn& turn, const LaunchId& id);
/// After replay: deadlines count on from submission.
void ResumeLaunchTimers(Turn& turn);

}  // namespace troupe::head
