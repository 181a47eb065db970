#include "runtime/net/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "runtime/base/unique_fd.h"

namespace troupe::net {
namespace {

Status SystemError(const std::string& what, const std::string& path) {
  const int error = errno;
  const ErrorCode code = error == ENOENT   ? ErrorCode::kNotFound
                         : error == EEXIST ? ErrorCode::kAlreadyExists
                                           : ErrorCode::kInvalid;
  return MakeError(code, "cannot " + what + " " + path + ": " + std::strerror(error));
}

Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("write", path);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return fsync(fd) == 0 ? Status() : SystemError("sync", path);
}

Status SyncFolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || fsync(fd.get()) != 0) return SystemError("sync the folder", folder);
  return {};
}

}  // namespace

StatusOr<std::string> ReadSmallFile(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return SystemError("open", path);
  std::string bytes;
  char block[4096];
  for (;;) {
    const ssize_t n = read(fd.get(), block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("read", path);
    if (n == 0) return bytes;
    bytes.append(block, static_cast<std::size_t>(n));
    if (bytes.size() > kSmallFileBytesMax) {
      return MakeError(ErrorCode::kTooLarge,
                       path + " is larger than 64 KiB: it is not what is expected here");
    }
  }
}

StatusOr<Secret> ReadSecretFile(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return SystemError("open", path);
  if (S_ISREG(info.st_mode) && (info.st_mode & 077) != 0) {
    return MakeError(
        ErrorCode::kInvalid,
        path + " holds a secret, but others than its owner can read it\n  chmod 600 " + path);
  }
  TROUPE_ASSIGN(std::string bytes, ReadSmallFile(path));
  return Secret(std::move(bytes));
}

Status CreateSecretFile(const std::string& path, const Secret& bytes) {
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return SystemError("make", path);
  TROUPE_TRY(WriteAll(fd.get(), bytes.Reveal(), path));
  return SyncFolderOf(path);
}

Status ReplaceFile(const std::string& path, std::string_view bytes, int mode) {
  const std::string fresh = path + ".new";
  unlink(fresh.c_str());  // left by a crash, if at all
  {
    const UniqueFd fd(open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!fd.valid()) return SystemError("make", fresh);
    TROUPE_TRY(WriteAll(fd.get(), bytes, fresh));
  }
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return SystemError("rename onto", path);
  return SyncFolderOf(path);
}

}  // namespace troupe::net
