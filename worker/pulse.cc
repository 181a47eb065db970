#include "worker/pulse.h"

#include <unistd.h>

#include <boost/asio/post.hpp>
#include <future>
#include <utility>

#include "runtime/async/deadline.h"
#include "runtime/base/log.h"
#include "runtime/os/family.h"

namespace troupe::worker {
namespace {

constexpr Duration kEvery = std::chrono::seconds(1);
constexpr Duration kDialLimit = std::chrono::seconds(2);

}  // namespace

Pulse::Pulse(const Clock& clock, Duration period, net::Address head, wire::Hello hello)
    : clock_(clock),
      period_(period),
      head_(std::move(head)),
      hello_(std::move(hello)),
      beat_(clock.Now()),
      thread_("worker-pulse"),
      scope_(thread_.executor(), "pulse") {
  async::asio::post(thread_.context(), [this] { scope_.Spawn("watch", Watch()); });
}

Pulse::~Pulse() { thread_.Stop(); }

void Pulse::Beat() { beat_.store(clock_.Now()); }

void Pulse::Use(const net::Credentials& credentials) {
  const MutexLock lock(mutex_);
  credentials_ = credentials;
}

bool Pulse::Late() const { return clock_.Now() - beat_.load() > period_ + period_ / 2; }

net::OpenOptions Pulse::Dialled() {
  net::OpenOptions options(head_);
  options.hello = hello_;
  options.hello.role = wire::Role::kWorker;
  options.limit = kDialLimit;
  const MutexLock lock(mutex_);
  options.credentials = credentials_;
  return options;
}

async::Task<void> Pulse::Watch() {
  for (;;) {
    co_await async::SleepFor(kEvery);
    if (Late()) {
      co_await Tell();
    } else if (connection_) {
      connection_->Close(MakeError(ErrorCode::kConnection, "the worker's loop goes round"));
      connection_.reset();
    }
  }
}

async::Task<void> Pulse::Tell() {
  if (!connection_) {
    net::OpenOptions options = Dialled();
    if (!options.credentials) co_return;
    const StatusOr<net::Identity> own = options.credentials->certificate.identity();
    // Over a Unix socket no certificate is shown: who this node is, is told.
    if (own.ok()) options.hello.subject = NodeId(own->id);
    auto opening = net::OpenSession(std::move(options), clock_);
    StatusOr<net::OpenedSession> session = co_await std::move(opening);
    if (!session.ok()) co_return;
    connection_ = std::move(session->connection);
  }
  wire::Message message;
  message.body = wire::WorkerHeldUp{static_cast<std::uint8_t>(os::StateOf(getpid()))};
  if (!connection_->Send(message).ok()) connection_.reset();
}

}  // namespace troupe::worker
