// A log file within a size: over it, the file loses its older half.
//
// Blocking for one system call where the filesystem can cut at the front (ext4, XFS); what other
// processes append meanwhile is kept. Elsewhere (tmpfs, Btrfs, NFS) the newer half is read and
// written again: what is appended between the last read and the cut is lost.
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// The least size a log file is held to: halves are cut by whole blocks of the filesystem.
inline constexpr std::uint64_t kLogBytesLeast = 16u << 10;

/// Halves the regular file `fd`, open for writing, when it is over `bytes_max` (at least
/// kLogBytesLeast). Returns how many bytes went; 0 also when the system refused.
std::uint64_t HalveLogFile(int fd, std::uint64_t bytes_max);
/// Halves the file at `path`, to which others append, when it is over `bytes_max`, and says so in
/// this process's own log. Does nothing where there is none.
void HalveLogFile(const std::string& path, std::uint64_t bytes_max);

}  // namespace troupe
