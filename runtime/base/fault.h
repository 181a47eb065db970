// Faults by name: places in the code where a test may lose a message, fail a write or kill the
// process.
//
// The variable TROUPE_FAULTS says which, at which passage:
//   TROUPE_FAULTS="head.answer=drop@3"              the third answer of the head is lost
//   TROUPE_FAULTS="journal.write=full@10-20"        writes 10 to 20 find the disk full
//   TROUPE_FAULTS="*=kill@137"                      SIGKILL at the 137th passage of any place
// Actions: kill, stop (SIGSTOP), drop (the place loses what it carries), full (ENOSPC), fail (EIO),
// stall (the thread waits until somebody writes to the FIFO that TROUPE_STALL names, if it is
// there).
// Several faults are separated by commas; the first that is due is what the place gets. Compiled in
// by TROUPE_WITH_FAULTS, which builds for tests have; elsewhere FaultAt is kNone for the compiler,
// and no name is in the binary. Thread-safe. A variable that cannot be read ends the process with a
// sentence: a test that runs without its fault would prove nothing.
#pragma once

#include <string_view>

namespace troupe {

enum class Fault { kNone, kDrop, kFull, kFail };

#ifdef TROUPE_WITH_FAULTS
/// Passes the place `name`; does not return from kill.
Fault FaultAt(std::string_view name);
#else
constexpr Fault FaultAt(std::string_view) { return Fault::kNone; }
#endif

}  // namespace troupe
