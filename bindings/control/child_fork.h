// Forks children of this process's own parent: what the zygote forks is the worker's to reap, and
// lives on without the zygote.
#pragma once

#include "bindings/support/nanobind.h"

namespace troupe::bindings {

/// fork_child(socket): as os.fork(), but the child's parent is the nearest subreaper above this
/// process. Before it is, `socket` (SEQPACKET, blocking) has been sent ForkReply with the child's
/// pid, no process id, and a pidfd of it. Main thread of a process with one thread only. Raises
/// OSError; there is no child then.
void bind_fork(nanobind::module_& m);

}  // namespace troupe::bindings
