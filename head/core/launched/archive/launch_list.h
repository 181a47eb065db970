// The list of launches, in pages: those in memory, and those of the archive that were read for the
// page (archive.h).
#pragma once

#include <cstddef>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// Launches of a page, at most.
inline constexpr std::size_t kLaunchPageMax = 1000;
/// Most bytes of launches in an answer, by BytesOf: a frame has 16 MiB.
inline constexpr std::size_t kListBytesMax = 8u << 20;

void OnListLaunches(Turn& turn, const Request& request, const wire::ListLaunches& message);
/// About how much of an answer it takes.
std::size_t BytesOf(const wire::LaunchInfo& info);

}  // namespace troupe::head
