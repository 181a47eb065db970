#include "runtime/base/log_file.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/base/log.h"
#include "runtime/base/unique_fd.h"

namespace troupe {
namespace {

constexpr std::uint64_t kBlock = 4096;

}  // namespace

std::uint64_t HalveLogFile(int fd, std::uint64_t bytes_max) {
  struct stat info{};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  const auto size = static_cast<std::uint64_t>(info.st_size);
  const std::uint64_t most = std::max(bytes_max, kLogBytesLeast);
  if (size <= most) return 0;
  const std::uint64_t cut = (size - most / 2) / kBlock * kBlock;
  if (fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, static_cast<off_t>(cut)) == 0) return cut;
  return ftruncate(fd, 0) == 0 ? size : 0;
}

void HalveLogFile(const std::string& path, std::uint64_t bytes_max) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) return;  // not made yet
  const std::uint64_t dropped = HalveLogFile(file.get(), bytes_max);
  if (dropped > 0) {
    Log(LogLevel::kWarning, "a log over its size lost its older half",
        {{"file", path}, {"bytes", dropped}});
  }
}

}  // namespace troupe
