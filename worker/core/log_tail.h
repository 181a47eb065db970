// What a process said last, for whoever reads of its end.
//
// Pure. When Python's fault handler has written its stacks last, of every thread, what counts is what stood before them (an
// exception of C++ that nobody caught, a failed assertion) and the thread that crashed.
#pragma once

#include <string>
#include <string_view>

namespace troupe::worker {

/// How much of the end of a log LastLines() wants: the fault handler's stacks of a hundred threads.
inline constexpr std::size_t kLogTailBytes = 128u << 10;

/// Of the end of a log, which begins at a whole line only if `whole`: the last 20 lines and 4 KiB at most. Where those are of
/// the fault handler, the lines before `Fatal Python error` first, and then it and the thread that crashed.
std::string LastLines(std::string_view text, bool whole);

}  // namespace troupe::worker
