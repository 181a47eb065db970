// Folders that belong to one user, and files opened strictly beneath one.
//
// Blocking (disk). Errors name the path and the system's reason.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace troupe::os {

/// Makes `path` and its missing parents with mode 0700. An existing last folder must be this user's
/// own; one that others may enter is narrowed to 0700.
Status MakePrivateDirectory(const std::string& path);
/// The same without touching the mode of an existing one.
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
