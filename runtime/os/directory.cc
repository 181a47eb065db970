#include "runtime/os/directory.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "runtime/os/text.h"

namespace troupe::os {

Status MakeDirectories(const std::string& path) {
  for (std::size_t slash = 1; slash != std::string::npos; ++slash) {
    slash = path.find('/', slash);
    const std::string part = path.substr(0, slash);
    if (!part.empty() && mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      return SystemError("make the folder " + part);
    }
    if (slash == std::string::npos) break;
  }
  return absl::OkStatus();
}

Status MakePrivateDirectory(const std::string& path) {
  TROUPE_TRY(MakeDirectories(path));
  struct stat info{};
  if (lstat(path.c_str(), &info) != 0) return SystemError(path);
  if (!S_ISDIR(info.st_mode)) return MakeError(ErrorCode::kInvalid, path + " is not a folder");
  if (info.st_uid != geteuid()) {
    return MakeError(ErrorCode::kInvalid, path + " belongs to another user (uid " +
                                              std::to_string(info.st_uid) + "): name another folder");
  }
  if ((info.st_mode & 077) != 0 && chmod(path.c_str(), 0700) != 0) return SystemError(path);
  return absl::OkStatus();
}

StatusOr<UniqueFd> OpenDirectory(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return SystemError("open the folder " + path);
  return fd;
}

StatusOr<UniqueFd> OpenBeneath(const UniqueFd& directory, const std::string& relative, int flags,
                               int mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC | O_NONBLOCK;
  how.mode = static_cast<std::uint64_t>(mode);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  UniqueFd fd(static_cast<int>(
      syscall(SYS_openat2, directory.get(), relative.c_str(), &how, sizeof how)));
  if (!fd.valid()) {
    if (errno == ENOENT) return MakeError(ErrorCode::kNotFound, "no such file: " + relative);
    return SystemError("open " + relative);
  }
  struct stat info{};
  if (fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return MakeError(ErrorCode::kInvalid, relative + " is not a regular file");
  }
  return fd;
}

void RemoveTree(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace troupe::os
