// The import path of this node's own Python processes: zygotes, fresh interpreters, tools.
//
// PYTHONPATH names folders that programs import from. A zygote imports libraries before any program
// has asked for anything: a file of a program's folder that has a library's name would be run by
// it, in every node, for every program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troupe::worker {

struct PythonPath {
  /// PYTHONPATH of the node's own processes: folders into which packages were installed (named
  /// site-packages or dist-packages, or with a *.dist-info in them), and those of Troupe itself.
  std::string own;
  /// The other folders, absolute: processes that run a program have them too.
  std::vector<std::string> programs;
};

/// Splits a PYTHONPATH; entries that are empty or relative are looked at from `directory`, the
/// current one. Reads folders, so it may block on a slow file system.
PythonPath SplitPythonPath(std::string_view text, const std::string& directory);

}  // namespace troupe::worker
