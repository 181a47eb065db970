#include "actors/train/process_groups.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "actors/train/reaper.h"
#include "runtime/async/real_clock.h"
#include "runtime/base/mutex.h"

namespace troupe::train {
namespace {

struct Here {
  const pid_t pid = getpid();
  Supervisor supervisor{async::RealClock::Shared(), EndThisProcess};
  Reaper reaper;
  Mutex mutex;
  std::vector<std::weak_ptr<LocalCommunicator>> groups ABSL_GUARDED_BY(mutex);
};

Mutex here_mutex;
Here* here ABSL_GUARDED_BY(here_mutex) = nullptr;

Here& OfThisProcess() {
  MutexLock lock(here_mutex);
  if (here == nullptr || here->pid != getpid()) here = new Here;
  return *here;
}

}  // namespace

std::shared_ptr<LocalCommunicator> FormInProcess(LocalSpec spec, Door door) {
  Here& process = OfThisProcess();
  auto group = LocalCommunicator::Form(process.supervisor, std::move(spec), std::move(door));
  MutexLock lock(process.mutex);
  std::erase_if(process.groups, [](const auto& each) { return each.expired(); });
  process.groups.push_back(group);
  return group;
}

int StopAllInProcess(const std::string& reason) {
  {
    MutexLock lock(here_mutex);
    if (here == nullptr || here->pid != getpid()) return 0;
  }
  Here& process = OfThisProcess();
  std::vector<std::shared_ptr<LocalCommunicator>> groups;
  std::vector<Supervisor::Id> ids;
  {
    MutexLock lock(process.mutex);
    for (const auto& each : process.groups)
      if (auto group = each.lock()) groups.push_back(std::move(group));
  }
  for (const auto& group : groups) ids.push_back(group->id());
  process.supervisor.Stop(ids, reason);
  const int count = static_cast<int>(groups.size());
  for (auto& group : groups) LeaveInProcess(std::move(group));  // may release the last reference
  return count;
}

void LeaveInProcess(std::shared_ptr<LocalCommunicator> group) {
  Here& process = OfThisProcess();
  process.reaper.Start([group = std::move(group)]() mutable {
    group->AwaitReleased();
    group.reset();
  });
}

}  // namespace troupe::train
