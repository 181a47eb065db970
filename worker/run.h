// A worker's whole life in a process: checks the options, locks its folders, joins, serves, leaves.
//
// View: one process; call once, from the main thread, before any other thread starts. Blocks until
// the node has left. Errors are for the person who started it: a wrong option, a folder in use, a
// head that cannot be reached or refuses.
#pragma once

#include <functional>
#include <string>

#include "runtime/base/ids.h"
#include "runtime/base/status.h"
#include "worker/options.h"

namespace troupe::worker {

/// `on_joined` is called once, when the head knows the node.
Status RunWorker(const RawOptions& raw,
                 std::function<void(const NodeId&, const std::string& name)> on_joined);

}  // namespace troupe::worker
