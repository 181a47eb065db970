#include "runtime/base/log_file.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/log.h"
#include "runtime/base/unique_fd.h"

namespace troupe {
namespace {

constexpr std::uint64_t kBlock = 4096;
// How often what others have appended meanwhile is read before the file is emptied.
constexpr int kReadsMax = 4;

std::uint64_t SizeOf(int fd) {
  struct stat info{};
  return fstat(fd, &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

// Appends to `text` what the file has from `begin` to `end`; less where it cannot be read.
void ReadRange(int fd, std::uint64_t begin, std::uint64_t end, std::string& text) {
  const std::size_t before = text.size();
  text.resize(before + (end - begin));
  std::size_t have = 0;
  while (begin + have < end) {
    const ssize_t got = pread(fd, text.data() + before + have, end - begin - have,
                              static_cast<off_t>(begin + have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(before + have);
}

// Empties the file and appends what it had from `cut` on. Returns how many bytes are gone: more
// than `cut` where the disk is full, or where others appended in the last moment.
std::uint64_t CutByCopying(int fd, std::uint64_t cut) {
  const UniqueFd file(open(("/proc/self/fd/" + std::to_string(fd)).c_str(),
                           O_RDWR | O_APPEND | O_CLOEXEC));  // `fd` may be for writing alone
  if (!file.valid()) return 0;
  std::string kept;
  for (int i = 0; i < kReadsMax; ++i) {
    const std::uint64_t size = SizeOf(file.get());
    if (size <= cut + kept.size()) break;
    ReadRange(file.get(), cut + kept.size(), size, kept);
  }
  const std::uint64_t size = SizeOf(file.get());
  if (ftruncate(file.get(), 0) != 0) return 0;
  std::size_t written = 0;
  while (written < kept.size()) {
    const ssize_t put = write(file.get(), kept.data() + written, kept.size() - written);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) break;
    written += static_cast<std::size_t>(put);
  }
  return std::max<std::uint64_t>(size, cut) - written;
}

}  // namespace

std::uint64_t HalveLogFile(int fd, std::uint64_t bytes_max) {
  struct stat info{};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  const auto size = static_cast<std::uint64_t>(info.st_size);
  const std::uint64_t most = std::max(bytes_max, kLogBytesLeast);
  if (size <= most) return 0;
  const std::uint64_t cut = (size - most / 2) / kBlock * kBlock;
  if (fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, static_cast<off_t>(cut)) == 0) return cut;
  return CutByCopying(fd, cut);
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
