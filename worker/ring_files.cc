#include "worker/ring_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

#include "runtime/base/unique_fd.h"
#include "runtime/obs/trace.h"

namespace troupe::worker {
namespace {

constexpr std::uint64_t kBlockBytes = 512;  // unit of st_blocks

}  // namespace

void RingFiles::Ended(const ProcessId& process, Instant now) {
  std::string path = folder_ + "/" + process.Hex();
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status;
  if (!file.valid() || fstat(file.get(), &status) != 0) return;
  const std::int64_t ended_ns = now.time_since_epoch().count();
  static_cast<void>(!pwrite(file.get(), &ended_ns, sizeof ended_ns,
                            offsetof(obs::TraceHeader, ended_ns)));
  ended_.push_back({std::move(path), static_cast<std::uint64_t>(status.st_blocks) * kBlockBytes});
  ended_bytes_ += ended_.back().bytes;
  while (ended_.size() > kEndedMax || ended_bytes_ > kEndedBytesMax) {
    unlink(ended_.front().path.c_str());
    ended_bytes_ -= ended_.front().bytes;
    ended_.pop_front();
  }
}

}  // namespace troupe::worker
