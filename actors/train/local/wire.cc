#include "actors/train/local/wire.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "runtime/base/signals_blocked.h"

namespace troupe::train {

Waker::Waker() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Waker::Wake() {
  const std::uint64_t one = 1;
  while (write(fd_.get(), &one, sizeof one) < 0 && errno == EINTR) continue;
}

void Waker::Clear() {
  std::uint64_t count = 0;
  while (read(fd_.get(), &count, sizeof count) < 0 && errno == EINTR) continue;
}

Wire::Wire(std::vector<Stream*> streams, Waker& waker)
    : streams_(std::move(streams)), waker_(waker) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { Run(); });
}

Wire::~Wire() {
  ending_ = true;
  waker_.Wake();
  thread_.join();
}

void Wire::Run() {
  std::vector<pollfd> fds;
  std::vector<Stream*> polled;
  while (!ending_) {
    fds.assign(1, {waker_.fd(), POLLIN, 0});
    polled.clear();
    for (Stream* const each : streams_) {
      const short wants = each->Wants();
      if (wants == 0) continue;
      fds.push_back({each->fd(), wants, 0});
      polled.push_back(each);
    }
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[0].revents != 0) waker_.Clear();
    for (std::size_t i = 0; i < polled.size(); ++i)
      if (fds[i + 1].revents != 0) polled[i]->Move();
  }
}

}  // namespace troupe::train
