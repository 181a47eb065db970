#include "worker/log_keeper.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/os/directory.h"

namespace troupe::worker {
namespace {

// "<launch>/epoch-1" is a part of "<launch>", which is kept or removed as a whole.
std::string TopOf(const std::string& folder) { return folder.substr(0, folder.find('/')); }

}  // namespace

LogKeeper::LogKeeper(async::Executor executor, async::Executor helper, const Clock& clock,
                     LogFiles& logs, RetentionLimits limits)
    : executor_(executor), helper_(helper), clock_(clock), logs_(logs), retention_(limits) {}

void LogKeeper::Start() {
  async::asio::post(helper_, [this, executor = executor_, folder = logs_.folder()] {
    std::vector<LogFolder> folders = ListLogFolders(folder);
    async::asio::post(
        executor, [this, folders = std::move(folders)]() mutable { Found(std::move(folders)); });
  });
}

void LogKeeper::Found(std::vector<LogFolder> folders) {
  for (const LogFolder& each : folders) {
    if (!retention_.keeps(each.name)) retention_.Put(each.name, each.changed_us, each.bytes);
  }
  Tidy();
}

void LogKeeper::Began(ProcessId process, const LogPlace& place) {
  const std::string folder = TopOf(place.folder);
  if (folder.empty() || !writing_.emplace(process, folder).second) return;
  retention_.Take(folder);
}

void LogKeeper::Ended(ProcessId process) {
  const auto found = writing_.find(process);
  if (found == writing_.end()) return;
  const std::string folder = std::move(found->second);
  writing_.erase(found);
  if (!retention_.Release(folder)) return;
  retention_.Put(folder, clock_.WallTimeUs(), BytesOfLogFolder(logs_.Path(folder)));
  Tidy();
}

void LogKeeper::Tidy() {
  for (const std::string& folder : retention_.Overdue(clock_.WallTimeUs())) {
    const StatusOr<std::string> gone = logs_.Detach(folder);
    if (!gone.ok()) {
      // removed while Start looked
      if (ErrorCodeOf(gone.status()) == ErrorCode::kNotFound) continue;
      Log(LogLevel::kWarning, "old logs could not be removed",
          {{"reason", MessageOf(gone.status())}});
      continue;
    }
    async::asio::post(helper_, [path = *gone] { os::RemoveTree(path); });
  }
}

}  // namespace troupe::worker
