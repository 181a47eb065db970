// The last output of a process, for readers of its end. Pure.
//
// Pure. When Python's fault handler has written its stacks last, of every thread, what counts is
// what stood before them (an exception of C++ that nobody caught, a failed assertion) and the
// thread that crashed.
#pragma once

#include <string>
#include <string_view>

namespace troupe::worker {

/// How much of the end of a log LastLines() wants: the fault handler's stacks of a hundred threads.
inline constexpr std::size_t kLogTailBytes = 128u << 10;

/// The last 20 lines, 4 KiB at most, of the end of a log, which begins at a whole line only if
/// `whole`. Of a fault handler's: those before `Fatal Python error`, it, and the crashed thread.
std::string LastLines(std::string_view text, bool whole);

}  // namespace troupe::worker
