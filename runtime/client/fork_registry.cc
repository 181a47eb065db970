#include "runtime/client/fork_registry.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <set>

#include "runtime/base/mutex.h"

namespace troupe::client {
namespace {

std::atomic<std::uint32_t> generation{0};

struct Registry {
  Mutex mutex;
  std::set<int> fds ABSL_GUARDED_BY(mutex);
};
Registry& TheRegistry() {
  static Registry* registry = new Registry;  // never destroyed: threads may outlive static objects
  return *registry;
}

// Locked across so that the child finds the set whole: locked in one function, let go of in
// two others.
void BeforeFork() ABSL_NO_THREAD_SAFETY_ANALYSIS { TheRegistry().mutex.Lock(); }
void InParent() ABSL_NO_THREAD_SAFETY_ANALYSIS { TheRegistry().mutex.Unlock(); }
void InChild() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Registry& registry = TheRegistry();
  for (const int fd : registry.fds) close(fd);
  registry.fds.clear();
  ++generation;
  registry.mutex.Unlock();
}

}  // namespace

std::uint32_t ForkRegistry::Generation() { return generation.load(std::memory_order_relaxed); }

void ForkRegistry::Add(int fd) {
  static const int installed = pthread_atfork(BeforeFork, InParent, InChild);
  (void)installed;
  if (fd < 0) return;
  Registry& registry = TheRegistry();
  const MutexLock lock(registry.mutex);
  registry.fds.insert(fd);
}

void ForkRegistry::Remove(int fd) {
  Registry& registry = TheRegistry();
  const MutexLock lock(registry.mutex);
  registry.fds.erase(fd);
}

}  // namespace troupe::client
