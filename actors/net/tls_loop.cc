#include "actors/net/tls_loop.h"

#include <sys/socket.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <utility>

#include "runtime/async/deadline.h"
#include "runtime/async/real_clock.h"

namespace troupe::actors {
namespace {

std::atomic<TlsLoop*> the_loop{nullptr};

}  // namespace

TlsLoop::TlsLoop()
    : generation_(ForkGuard::generation()),
      thread_("troupe-dial"),
      scope_(thread_.executor(), "calls between hosts") {}

TlsLoop& TlsLoop::Current() {
  ForkGuard::Install();
  TlsLoop* seen = the_loop.load(std::memory_order_acquire);
  if (seen != nullptr && seen->generation_ == ForkGuard::generation()) return *seen;
  TlsLoop* made = new TlsLoop;
  if (the_loop.compare_exchange_strong(seen, made)) return *made;
  delete made;  // another thread of this process was first
  return *seen;
}

void TlsLoop::StopCurrent() {
  TlsLoop* seen = the_loop.load(std::memory_order_acquire);
  if (seen != nullptr && seen->generation_ == ForkGuard::generation()) seen->thread_.Stop();
}

void TlsLoop::Spawn(const char* name, async::Task<void> task) {
  async::asio::post(thread_.executor(),
                    [this, name, task = std::make_shared<async::Task<void>>(std::move(task))] {
                      scope_.Spawn(name, std::move(*task));
                    });
}

void TlsLoop::Watch(std::shared_ptr<StallWatch> watch) {
  async::asio::post(thread_.executor(), [this, watch = std::move(watch)]() mutable {
    watched_.push_back(std::move(watch));
    if (!std::exchange(ticking_, true)) scope_.Spawn("watch", Tick(this));
  });
}

async::Task<void> TlsLoop::Tick(TlsLoop* loop) {
  const async::RealClock clock;
  while (!loop->watched_.empty()) {
    co_await async::SleepFor(StallWatch::kLookEvery);
    const Instant now = clock.Now();
    std::erase_if(loop->watched_, [now](const auto& watch) { return !watch->Look(now); });
  }
  loop->ticking_ = false;
}

StatusOr<LoopSocket> LoopSocket::Wrap(const async::Executor& executor, GuardedFd fd) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  boost::system::error_code error;
  auto socket = std::make_unique<net::Socket>(executor);
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) {
    return MakeError(ErrorCode::kInvalid, "a descriptor that is no socket");
  }
  socket->assign(async::asio::generic::stream_protocol(own.ss_family, 0), fd.get(), error);
  if (error) return MakeError(ErrorCode::kConnection, "cannot watch a socket: " + error.message());
  LoopSocket made(std::move(fd), std::move(socket));
  made.get().non_blocking(true, error);
  if (error) return MakeError(ErrorCode::kConnection, error.message());
  return made;
}

void LoopSocket::Forget() {
  if (socket_ == nullptr) return;
  boost::system::error_code ignored;
  if (socket_->is_open()) socket_->release(ignored);
  socket_.reset();
}

}  // namespace troupe::actors
