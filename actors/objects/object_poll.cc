#include "actors/objects/object_poll.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace troupe::actors {

ObjectPoll::ObjectPoll()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (valid()) static_cast<void>(Watch(wake_.get(), kWakeId));
}

bool ObjectPoll::Watch(int fd, std::uint64_t id) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void ObjectPoll::WatchWrites(int fd, std::uint64_t id, bool writes) {
  epoll_event event{};
  event.events = EPOLLIN | (writes ? static_cast<unsigned>(EPOLLOUT) : 0u);
  event.data.u64 = id;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void ObjectPoll::Wake() {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

void ObjectPoll::Woken() {
  std::uint64_t ignored;
  (void)!::read(wake_.get(), &ignored, sizeof ignored);
}

int ObjectPoll::Wait(epoll_event* events, int most, int timeout_ms) {
  return ::epoll_wait(epoll_.get(), events, most, timeout_ms);
}

}  // namespace troupe::actors
