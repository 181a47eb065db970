// Folders that belong to one user, and files opened strictly beneath one.
//
// Blocking (disk). Errors name the path and the system's reason.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace troupe::os {

/// Treatment of an existing folder that others may enter.
enum class IfOpen {
  kClose,  // closed to others, but refused where they may write to it and it has something in it
  kLeave,  // as kClose, but one that they only may read, with something in it, stays as it is
  // closed to others: it lies in a private folder, so that nobody else can have written to it
  kCloseAny,
};

/// Makes `path` and its missing parents with mode 0700, whatever the umask. The last folder must be
/// this user's. On the way to it symbolic links must be this user's or root's, and folders that
/// everybody may write to need the sticky bit: else others could put one of theirs in its place
/// (`troupe/_cluster/folders.py` is the same for Python). Errors say what is wrong with which
/// folder, and what to do.
Status MakePrivateDirectory(const std::string& path, IfOpen if_open = IfOpen::kClose);
/// Makes the folder of Unix sockets by MakePrivateDirectory; errors also name the variable that
/// chooses it.
Status MakeSocketDirectory(const std::string& path);
/// Makes `path` and its missing parents with mode 0700; looks at nothing that is there.
Status MakeDirectories(const std::string& path);

/// Opens a folder to open files beneath.
StatusOr<UniqueFd> OpenDirectory(const std::string& path);
/// Opens `relative` beneath `directory`: no "..", no symbolic link, no way out (openat2), regular
/// files only. kNotFound when there is none.
StatusOr<UniqueFd> OpenBeneath(const UniqueFd& directory, const std::string& relative, int flags,
                               int mode = 0);
/// Removes a folder with all that is in it; symbolic links are removed, not followed.
void RemoveTree(const std::string& path);

}  // namespace troupe::os
