// Reading small files of /proc and /sys, and errors from errno.
//
// Blocking, for microseconds. Errors carry the system's reason.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/status.h"

namespace troupe::os {

/// "<what>: <errno's text>", as kInternal.
Status SystemError(const std::string& what);
/// A whole small file (at most 1 MiB); nullopt when it cannot be read.
std::optional<std::string> ReadText(const std::string& path);

}  // namespace troupe::os
