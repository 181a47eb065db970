// The variables that a library reads once, when it is loaded: a process forked from one that has
// loaded it with another value would silently go by that one. The table, by library, is
// `read_at_import.cc`.
#pragma once

#include <string_view>

namespace troupe::worker {

/// Returns true if the value of `name` counts for the modules a zygote has loaded: always for those
/// every zygote loads (the interpreter, numpy, torch), and with `preimports` for every library
/// known, for a named module may load any of them.
bool IsReadAtImport(std::string_view name, bool preimports);

}  // namespace troupe::worker
