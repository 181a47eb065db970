#include "runtime/client/fork_registry.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>

namespace troupe::client {
namespace {

std::atomic<std::uint32_t> generation{0};

struct Registry {
  std::mutex mutex;
  std::set<int> fds;
};
Registry& TheRegistry() {
  static Registry* registry = new Registry;  // never destroyed: threads may outlive static objects
  return *registry;
}

// Held across fork(), so that the child finds the set whole.
void BeforeFork() { TheRegistry().mutex.lock(); }
void InParent() { TheRegistry().mutex.unlock(); }
void InChild() {
  Registry& registry = TheRegistry();
  for (const int fd : registry.fds) close(fd);
  registry.fds.clear();
  ++generation;
  registry.mutex.unlock();
}

}  // namespace

std::uint32_t ForkRegistry::Generation() { return generation.load(std::memory_order_relaxed); }

void ForkRegistry::Add(int fd) {
  static const int installed = pthread_atfork(BeforeFork, InParent, InChild);
  (void)installed;
  if (fd < 0) return;
  const std::lock_guard lock(TheRegistry().mutex);
  TheRegistry().fds.insert(fd);
}

void ForkRegistry::Remove(int fd) {
  const std::lock_guard lock(TheRegistry().mutex);
  TheRegistry().fds.erase(fd);
}

}  // namespace troupe::client
