#include "runtime/async/fd_watch.h"

#include <boost/asio/posix/descriptor_base.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <utility>

namespace troupe::async {

struct FdWatch::State : std::enable_shared_from_this<State> {
  State(const Executor& executor, int fd, std::function<void()> on_readable)
      : descriptor(executor, fd), readable(std::move(on_readable)) {}

  void ArmRead() {
    descriptor.async_wait(asio::posix::descriptor_base::wait_read,
                          [self = shared_from_this()](boost::system::error_code error) {
                            if (error || self->ended) return;
                            self->readable();
                            if (!self->ended) self->ArmRead();
                          });
  }

  asio::posix::stream_descriptor descriptor;
  std::function<void()> readable;
  bool ended = false;
};

FdWatch::FdWatch(const Executor& executor, int fd, std::function<void()> on_readable)
    : state_(std::make_shared<State>(executor, fd, std::move(on_readable))) {
  state_->ArmRead();
}

FdWatch::~FdWatch() {
  state_->ended = true;
  state_->descriptor.release();  // ends the waits; the owner closes the descriptor
}

void FdWatch::WhenWritable(std::function<void()> on_writable) {
  state_->descriptor.async_wait(
      asio::posix::descriptor_base::wait_write,
      [state = state_, callback = std::move(on_writable)](boost::system::error_code error) {
        if (!error && !state->ended) callback();
      });
}

}  // namespace troupe::async
