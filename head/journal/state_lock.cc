#include "head/journal/state_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace troupe::head {
namespace {

bool IsNetworkFileSystem(const std::string& folder) {
  struct statfs info{};
  if (statfs(folder.c_str(), &info) != 0) return false;
  switch (static_cast<unsigned long>(info.f_type)) {
    case 0x6969:      // NFS
    case 0xFF534D42:  // CIFS
    case 0xFE534D42:  // SMB2
    case 0x0BD00BD0:  // Lustre
    case 0x00C36400:  // Ceph
    case 0x01021997:  // 9p
      return true;
    default:
      return false;
  }
}

}  // namespace

StatusOr<StateLock> StateLock::Take(const std::string& folder) {
  if (IsNetworkFileSystem(folder)) {
    return MakeError(ErrorCode::kInvalid,
                     folder +
                         " is on a network file system, whose locks cannot be trusted\n  set "
                         "TROUPE_HOME to a folder on this machine");
  }
  const std::string path = folder + "/lock";
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return MakeError(ErrorCode::kInternal, path + ": " + std::strerror(errno));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    char owner[32] = {};
    const ssize_t size = pread(fd.get(), owner, sizeof owner - 1, 0);
    return MakeError(ErrorCode::kAlreadyExists,
                     "another head" + (size > 0 ? " (pid " + std::string(owner) + ")" : "") +
                         " runs on " + folder);
  }
  const std::string pid = std::to_string(getpid());
  if (ftruncate(fd.get(), 0) != 0 ||
      pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return MakeError(ErrorCode::kInternal, path + ": " + std::strerror(errno));
  }
  return StateLock(std::move(fd));
}

}  // namespace troupe::head
