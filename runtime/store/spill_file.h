// Files for values that memory has no room for: without a name, so that nothing is left of them
// whatever way their process ends.
//
// Whose view: the maker's. Blocking, for as long as the file system takes to reserve the room.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace troupe::store {

/// The folder that holds them where nothing else is said: the first of /var/tmp and /tmp that lies
/// on a disk; empty: none does.
std::string DefaultSpillFolder();
/// Makes a file with room for so many bytes, reserved: writing there does not fail for want of it.
/// kTooLarge: a twentieth of the disk would not stay free, or it, or a limit of this user or
/// process, has no room; kInvalid: the folder is of no use.
StatusOr<UniqueFd> MakeSpillFile(const std::string& folder, std::uint64_t bytes);
/// Opens a spill file once more, for reading only. kInternal: there is no /proc.
StatusOr<UniqueFd> ReadingOf(const UniqueFd& file);
/// Returns true if `fd` is a spill file of this user's, opened for reading only by ReadingOf.
bool IsSpillFile(int fd);

}  // namespace troupe::store
