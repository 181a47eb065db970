#include "worker/log_keeper.h"

#include <boost/asio/post.hpp>
#include <set>
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
    std::vector<Pack> packs = FindPacks(folder);
    async::asio::post(executor, [this, folders = std::move(folders),
                                 packs = std::move(packs)]() mutable {
      Found(std::move(folders), std::move(packs));
    });
  });
}

void LogKeeper::Found(std::vector<LogFolder> folders, std::vector<Pack> packs) {
  for (Pack& pack : packs) {
    for (const PackedFolder& each : pack.folders)
      retention_.Put(each.name, {each.ended_us, each.bytes(), 0});
    logs_.packs().Add(std::move(pack));
  }
  for (const LogFolder& each : folders) {
    if (!retention_.keeps(each.name) || logs_.packs().Has(each.name))
      retention_.Put(each.name, {each.changed_us, each.bytes, each.files});
  }
  packs_known_ = true;
  PackIfDue();
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
  const LogFolder measured = MeasureLogFolder(logs_.Path(folder));
  retention_.Put(folder, {clock_.WallTimeUs(), measured.bytes, measured.files});
  PackIfDue();
  Tidy();
}

void LogKeeper::PackIfDue() {
  if (!packs_known_) return;  // the numbers are not known yet
  auto folders = retention_.BeginPacking();
  if (folders.empty()) return;
  async::asio::post(helper_, [this, executor = executor_, logs = logs_.folder(),
                              number = logs_.packs().next_number(),
                              folders = std::move(folders)] {
    StatusOr<Pack> pack = WritePack(logs, number, folders);
    async::asio::post(executor,
                      [this, pack = std::move(pack)]() mutable { OnPacked(std::move(pack)); });
  });
}

void LogKeeper::OnPacked(StatusOr<Pack> pack) {
  const std::vector<std::string> moved = retention_.EndPacking(pack.ok());
  if (!pack.ok()) {
    Log(LogLevel::kWarning, "old logs could not be packed", {{"why", MessageOf(pack.status())}});
    return;  // tried again with the next end
  }
  // Folders that have a new writer since are packed again, whole, when it has ended.
  const std::set<std::string> kept(moved.begin(), moved.end());
  std::erase_if(pack->folders,
                [&](const PackedFolder& each) { return kept.count(each.name) == 0; });
  logs_.packs().Add(*std::move(pack));
  for (const std::string& folder : moved) RemoveFiles(folder);
}

void LogKeeper::Tidy() {
  for (const std::string& folder : retention_.Overdue(clock_.WallTimeUs())) {
    logs_.packs().Remove(folder);
    RemoveFiles(folder);
  }
}

void LogKeeper::RemoveFiles(const std::string& folder) {
  const StatusOr<std::string> gone = logs_.Detach(folder);
  if (gone.ok()) {
    async::asio::post(helper_, [path = *gone] { os::RemoveTree(path); });
  } else if (ErrorCodeOf(gone.status()) != ErrorCode::kNotFound) {  // in a pack, or removed already
    Log(LogLevel::kWarning, "old logs could not be removed",
        {{"reason", MessageOf(gone.status())}});
  }
}

}  // namespace troupe::worker
