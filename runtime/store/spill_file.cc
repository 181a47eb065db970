#include "runtime/store/spill_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace troupe::store {
namespace {

constexpr std::uint64_t kShareKeptFree = 20;  // share of the disk that is kept free

Status Unusable(const std::string& folder, const std::string& why) {
  return MakeError(ErrorCode::kInvalid, "objects cannot go to disk in " + folder + ": " + why);
}

/// Returns true if files there take memory.
bool IsInMemory(const struct statfs& system) {
  return system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
}

/// A new file of this user's that has no name (any more).
UniqueFd OpenNameless(const std::string& folder) {
  UniqueFd fd(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd.valid() || (errno != EOPNOTSUPP && errno != EISDIR)) return fd;
  std::string name = folder + "/troupe-objects-XXXXXX";  // this file system has none without a name
  UniqueFd named(mkostemp(name.data(), O_CLOEXEC));
  if (named.valid() && unlink(name.c_str()) != 0) return UniqueFd();
  return named;
}

}  // namespace

std::string DefaultSpillFolder() {
  for (const char* folder : {"/var/tmp", "/tmp"}) {
    struct statfs system{};
    if (statfs(folder, &system) == 0 && !IsInMemory(system) && access(folder, W_OK | X_OK) == 0)
      return folder;
  }
  return "";
}

StatusOr<UniqueFd> MakeSpillFile(const std::string& folder, std::uint64_t bytes) {
  if (folder.empty()) {
    return MakeError(
        ErrorCode::kInvalid,
        "and there is no folder on a disk where it could go (object_spilling_directory)");
  }
  UniqueFd fd = OpenNameless(folder);
  if (!fd.valid()) return Unusable(folder, std::strerror(errno));
  struct statfs system{};
  if (fstatfs(fd.get(), &system) != 0) return Unusable(folder, std::strerror(errno));
  if (IsInMemory(system)) return Unusable(folder, "what lies there is kept in memory (tmpfs)");
  const auto block = static_cast<std::uint64_t>(system.f_bsize);
  const std::uint64_t free = system.f_bavail * block;
  const std::uint64_t kept = system.f_blocks * block / kShareKeptFree;
  if (free < kept || free - kept < bytes) {
    return MakeError(ErrorCode::kTooLarge, "the disk of " + folder + " has " +
                                               std::to_string(free >> 20) + " MiB free, of which " +
                                               std::to_string(kept >> 20) + " MiB (5 %) stay so");
  }
  while (fallocate(fd.get(), 0, 0, static_cast<off_t>(bytes)) != 0) {
    if (errno == EINTR) continue;
    if (errno == EOPNOTSUPP)
      return Unusable(folder, "its file system cannot reserve room for a file");
    return MakeError(ErrorCode::kTooLarge, "reserving " + std::to_string(bytes >> 20) + " MiB in " +
                                               folder + ": " + std::strerror(errno));
  }
  return fd;
}

StatusOr<UniqueFd> ReadingOf(const UniqueFd& file) {
  UniqueFd fd(open(("/proc/self/fd/" + std::to_string(file.get())).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid())
    return MakeError(ErrorCode::kInternal, std::string("/proc/self/fd: ") + std::strerror(errno));
  return fd;
}

bool IsSpillFile(int fd) {
  struct stat found{};
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) == O_RDONLY && fstat(fd, &found) == 0 &&
         S_ISREG(found.st_mode) && found.st_nlink == 0 && found.st_uid == geteuid();
}

}  // namespace troupe::store
