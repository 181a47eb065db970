// The descendants of a process that outlived it: orphans, which a subreaper inherits.
//
// View: one process, which called BecomeSubreaper(). Blocking, for microseconds per child (/proc is
// read). A pid may be recycled between two calls: signal only through a pidfd opened before a
// check.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace troupe::os {

/// The children of this process, all threads together.
std::vector<pid_t> Children();
/// The session of a process; 0 when it is gone.
pid_t SessionOf(pid_t pid);
/// Returns the state of a process (its first thread), a letter of proc_pid_stat(5): 'R' runs or
/// could, 'D' waits for a disk, 'T' is stopped; 0 when it is gone.
char StateOf(pid_t pid);
/// Returns true if it has begun to exit, or is gone: from here on nothing of it runs but the
/// kernel's closing.
bool IsExiting(pid_t pid);
/// A variable in the environment a process was started with; nullopt when absent or unreadable.
std::optional<std::string> VariableOf(pid_t pid, const std::string& name);

}  // namespace troupe::os
