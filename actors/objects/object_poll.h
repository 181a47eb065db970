// The poll on which the object store's thread blocks: readiness of its links, and being woken.
//
// Any thread may call anything here without a lock: the descriptors never change, and the kernel
// orders what is done with them.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

#include "actors/net/fork_guard.h"

namespace troupe::actors {

class ObjectPoll {
 public:
  static constexpr std::uint64_t kListenerId = 1;
  static constexpr std::uint64_t kWakeId = 2;
  static constexpr std::uint64_t kFirstLinkId = 16;

  ObjectPoll();
  /// False: no descriptor was left for it.
  bool valid() const { return epoll_.get() >= 0 && wake_.get() >= 0; }

  /// Events of `fd` carry `id`, until it is closed. False: the kernel has no room for it.
  bool Watch(int fd, std::uint64_t id);
  /// Sets whether room for writing is an event too.
  void WatchWrites(int fd, std::uint64_t id, bool writes);
  /// Makes Wait return, now or the next time.
  void Wake();
  /// An event with kWakeId came.
  void Woken();
  /// Blocks for `timeout_ms` at most, -1: for ever. As epoll_wait.
  int Wait(epoll_event* events, int most, int timeout_ms);

 private:
  const GuardedFd epoll_;
  const GuardedFd wake_;
};

}  // namespace troupe::actors
