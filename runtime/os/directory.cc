#include "runtime/os/directory.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/os/text.h"

namespace troupe::os {

namespace {

constexpr int kLinksMax = 40;  // as the kernel follows

std::string Octal(mode_t mode) {
  char text[16];
  std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode) & 07777u);
  return text;
}

Status Refused(const std::string& why, const std::string& remedy) {
  return MakeError(ErrorCode::kInvalid, why + "\n  " + remedy);
}

// Creates the folder with mode 0700 where nothing is, whatever the umask.
Status MakeOne(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0) {
    return errno == EEXIST ? absl::OkStatus() : Status(SystemError("make the folder " + path));
  }
  return chmod(path.c_str(), 0700) == 0 ? absl::OkStatus()
                                        : Status(SystemError("make the folder " + path));
}

std::vector<std::string> StepsOf(const std::string& path) {
  std::vector<std::string> steps;
  std::istringstream text(path);
  for (std::string step; std::getline(text, step, '/');) {
    if (!step.empty() && step != ".") steps.push_back(step);
  }
  std::reverse(steps.begin(), steps.end());  // the next one is the last
  return steps;
}

bool IsTrusted(uid_t owner) {
  struct stat root{};
  return owner == 0 || owner == geteuid() || (lstat("/", &root) == 0 && owner == root.st_uid);
}

// Goes to `path` step by step, makes what is missing, and returns it without any link in it.
StatusOr<std::string> WalkTo(const std::string& path) {
  std::error_code error;
  const std::string whole =
      path.rfind('/', 0) == 0 ? path : std::filesystem::current_path(error).string() + "/" + path;
  std::vector<std::string> rest = StepsOf(whole);
  std::string here;  // empty: the root
  for (int links = 0; !rest.empty();) {
    const std::string name = std::move(rest.back());
    rest.pop_back();
    if (name == "..") {
      here.resize(here.empty() ? 0 : here.rfind('/'));
      continue;
    }
    struct stat info{};
    const std::string above = here.empty() ? "/" : here;
    if (lstat(above.c_str(), &info) != 0) return SystemError(above);
    if ((info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0) {
      return Refused(
          "everybody may write to " + above + " (mode " + Octal(info.st_mode) +
              ", no sticky bit), so anybody can put a folder of theirs in the place of " + path,
          "chmod +t " + above + " (or chmod o-w), or name another folder");
    }
    const std::string step = here + "/" + name;
    if (lstat(step.c_str(), &info) != 0) {
      if (errno != ENOENT) return SystemError(step);
      TROUPE_TRY(MakeOne(step));
      if (lstat(step.c_str(), &info) != 0) return SystemError(step);
    }
    if (S_ISDIR(info.st_mode)) {
      here = step;
      continue;
    }
    if (!S_ISLNK(info.st_mode)) return MakeError(ErrorCode::kInvalid, step + " is not a folder");
    if (!IsTrusted(info.st_uid)) {
      return Refused(step + " is a symbolic link of another user (uid " +
                         std::to_string(info.st_uid) + ") and is not followed",
                     "name another folder");
    }
    if (++links > kLinksMax)
      return Refused(path + " leads over too many symbolic links", "name another folder");
    const std::string target = std::filesystem::read_symlink(step, error).string();
    if (error) return MakeError(ErrorCode::kInvalid, step + ": " + error.message());
    if (target.rfind('/', 0) == 0) here.clear();
    for (std::string& each : StepsOf(target)) rest.push_back(std::move(each));
  }
  return here.empty() ? "/" : here;
}

}  // namespace

Status MakeDirectories(const std::string& path) {
  for (std::size_t slash = 1; slash != std::string::npos; ++slash) {
    slash = path.find('/', slash);
    const std::string part = path.substr(0, slash);
    if (!part.empty()) TROUPE_TRY(MakeOne(part));
    if (slash == std::string::npos) break;
  }
  return absl::OkStatus();
}

Status MakePrivateDirectory(const std::string& path, IfOpen if_open) {
  TROUPE_ASSIGN(const std::string real, WalkTo(path));
  struct stat info{};
  if (lstat(real.c_str(), &info) != 0) return SystemError(path);
  if (info.st_uid != geteuid()) {
    return Refused(path + " belongs to another user (uid " + std::to_string(info.st_uid) + ")",
                   "name another folder");
  }
  if ((info.st_mode & 077) == 0) return absl::OkStatus();
  std::error_code error;
  const bool filled = !std::filesystem::is_empty(real, error);
  if (filled && (info.st_mode & 022) != 0 && if_open != IfOpen::kCloseAny) {
    return Refused("others may write to " + path + " (mode " + Octal(info.st_mode) +
                       "), so what is in it may not be this user's: nothing in it is used",
                   "look at what is there, then: chmod 700 " + path + "; or name another folder");
  }
  if (filled && if_open == IfOpen::kLeave) return absl::OkStatus();
  if (chmod(real.c_str(), info.st_mode & 0700) != 0) return SystemError(path);
  return absl::OkStatus();
}

Status MakeSocketDirectory(const std::string& path) {
  const Status made = MakePrivateDirectory(path);
  if (made.ok()) return made;
  return MakeError(
      ErrorCodeOf(made),
      MessageOf(made) +
          "\n  sockets are kept there; XDG_RUNTIME_DIR (its folder troupe) names another place");
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
  UniqueFd fd(
      static_cast<int>(syscall(SYS_openat2, directory.get(), relative.c_str(), &how, sizeof how)));
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
