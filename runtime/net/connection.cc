#include "runtime/net/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <utility>

#include "runtime/async/deadline.h"
#include "runtime/async/scope.h"
#include "runtime/wire/frame.h"

namespace troupe::net {
namespace {

using async::kTuple;
using async::Task;
namespace asio = async::asio;
using namespace std::chrono_literals;

constexpr Duration kHeaderLimit = 2s;
constexpr Duration kFrameLimit = 5s;
constexpr std::size_t kReadBytes = 16 * 1024;
constexpr std::size_t kBatchBytes = 64 * 1024;

class FramedConnection final : public Connection,
                               public std::enable_shared_from_this<FramedConnection> {
 public:
  FramedConnection(const async::Executor& executor, std::unique_ptr<Stream> stream, PeerInfo peer,
                   bool authenticated, std::shared_ptr<void> ticket)
      : stream_(std::move(stream)),
        peer_(std::move(peer)),
        ticket_(std::move(ticket)),
        authenticated_(authenticated),
        reader_(authenticated ? wire::FrameLimits() : wire::kUnauthenticatedLimits),
        drained_(executor),
        scope_(executor, "connection of " + peer_.address) {}

  Task<StatusOr<wire::Message>> Receive() override;
  Status Send(const wire::Message& message) override;
  Task<Status> Drain() override;
  Task<void> Finish(Duration limit) override;
  void Close(Status reason) override;

  const PeerInfo& peer() const override { return peer_; }
  void Authenticated() override {
    authenticated_ = true;
    reader_.set_limits(wire::FrameLimits());
    ticket_.reset();
  }
  bool clean_eof() const override { return clean_eof_; }
  std::size_t queued_bytes() const override { return queued_bytes_; }
  int native_fd() const override { return stream_->native_fd(); }

 private:
  Task<StatusOr<std::size_t>> ReadMore();
  Task<void> WriteQueue(std::shared_ptr<FramedConnection> self);
  Task<Status> WaitUntilBelow(std::size_t bytes);
  std::string TakeBatch();
  Status AtEnd();

  std::unique_ptr<Stream> stream_;
  PeerInfo peer_;
  std::shared_ptr<void> ticket_;
  bool authenticated_;
  wire::FrameReader reader_;
  std::array<char, kReadBytes> block_;
  std::deque<std::string> queue_;
  std::size_t queued_bytes_ = 0;  // in queue_, and of the batch being written
  bool writing_ = false;
  bool clean_eof_ = false;
  Status broken_;
  asio::steady_timer drained_;  // waiters sleep on it; cancelled when the queue shrinks
  async::Scope scope_;
};

Status FramedConnection::AtEnd() {
  const std::size_t pending = reader_.pending_bytes();
  clean_eof_ = pending == 0;
  if (clean_eof_)
    return MakeError(ErrorCode::kConnection, peer_.address + " closed the connection");
  return MakeError(ErrorCode::kConnection,
                   peer_.address + " ended the connection in the middle of a message, of which " +
                       std::to_string(pending) + " bytes had come");
}

Task<StatusOr<std::size_t>> FramedConnection::ReadMore() {
  auto reading = stream_->Read(block_.data(), block_.size());
  if (authenticated_) co_return co_await std::move(reading);
  const bool in_header = reader_.pending_bytes() < wire::kHeaderBytes;
  std::string what = in_header ? "a message header from " : "the rest of a message from ";
  what += peer_.address;
  co_return co_await async::WithDeadline(std::move(reading), in_header ? kHeaderLimit : kFrameLimit,
                                         std::move(what));
}

Task<StatusOr<wire::Message>> FramedConnection::Receive() {
  for (;;) {
    auto next = reader_.Next();
    if (next && next->ok()) co_return *std::move(next);
    if (next) {
      Close(
          MakeError(ErrorCodeOf(next->status()), peer_.address + ": " + MessageOf(next->status())));
    }
    if (!broken_.ok()) co_return broken_;
    StatusOr<std::size_t> n = co_await ReadMore();
    const asio::cancellation_state cancellation = co_await asio::this_coro::cancellation_state;
    if (cancellation.cancelled() != asio::cancellation_type::none) {
      co_return MakeError(ErrorCode::kCancelled,
                          "waiting for a message of " + peer_.address + " was cancelled");
    }
    if (!n.ok()) {
      const ErrorCode code = ErrorCodeOf(n.status());
      Close(MakeError(code, code == ErrorCode::kTimeout
                                ? MessageOf(n.status())
                                : "the connection to " + peer_.address +
                                      " was lost: " + MessageOf(n.status())));
    } else if (*n == 0) {
      Close(AtEnd());
    } else {
      reader_.Feed(std::string_view(block_.data(), *n));
    }
  }
}

Status FramedConnection::Send(const wire::Message& message) {
  if (!broken_.ok()) return broken_;
  TROUPE_ASSIGN(std::string frame, wire::EncodeFrame(message));
  if (queued_bytes_ + frame.size() > kQueueBytesMax) {
    Close(MakeError(
        ErrorCode::kConnection,
        peer_.address + " was disconnected: it takes its messages too slowly (64 MiB wait)"));
    return broken_;
  }
  queued_bytes_ += frame.size();
  queue_.push_back(std::move(frame));
  if (!writing_) {
    writing_ = true;
    scope_.Spawn("write", WriteQueue(shared_from_this()));
  }
  return {};
}

std::string FramedConnection::TakeBatch() {
  std::string batch = std::move(queue_.front());
  queue_.pop_front();
  while (!queue_.empty() && batch.size() + queue_.front().size() <= kBatchBytes) {
    batch += queue_.front();
    queue_.pop_front();
  }
  return batch;
}

// Runs while there is something to write; `self` keeps the connection until then.
Task<void> FramedConnection::WriteQueue(std::shared_ptr<FramedConnection> self) {
  while (!queue_.empty() && broken_.ok()) {
    const std::string batch = TakeBatch();
    Status written = co_await stream_->Write(batch);
    queued_bytes_ -= std::min(queued_bytes_, batch.size());
    drained_.cancel();
    if (!written.ok()) {
      Close(MakeError(ErrorCode::kConnection,
                      "the connection to " + peer_.address + " was lost: " + MessageOf(written)));
    }
  }
  writing_ = false;
}

Task<Status> FramedConnection::WaitUntilBelow(std::size_t bytes) {
  while (broken_.ok() && queued_bytes_ >= bytes) {
    drained_.expires_at(asio::steady_timer::time_point::max());
    co_await drained_.async_wait(kTuple);
  }
  co_return broken_;
}

Task<Status> FramedConnection::Drain() { co_return co_await WaitUntilBelow(kDrainedBytes); }

Task<void> FramedConnection::Finish(Duration limit) {
  const auto self = shared_from_this();
  auto sending = WaitUntilBelow(1);
  Status sent = co_await async::WithDeadline(std::move(sending), limit, "the last messages");
  Close(sent.ok() ? MakeError(ErrorCode::kConnection,
                              "the connection to " + peer_.address + " was closed here")
                  : sent);
}

void FramedConnection::Close(Status reason) {
  if (!broken_.ok()) return;
  broken_ = reason.ok() ? MakeError(ErrorCode::kConnection,
                                    "the connection to " + peer_.address + " was closed here")
                        : std::move(reason);
  queue_.clear();
  queued_bytes_ = 0;
  ticket_.reset();
  stream_->Close();
  drained_.cancel();
}

}  // namespace

std::shared_ptr<Connection> MakeConnection(const async::Executor& executor,
                                           std::unique_ptr<Stream> stream, PeerInfo peer,
                                           bool authenticated, std::shared_ptr<void> ticket) {
  return std::make_shared<FramedConnection>(executor, std::move(stream), std::move(peer),
                                            authenticated, std::move(ticket));
}

StatusOr<std::shared_ptr<Connection>> AdoptUnixSocket(const async::Executor& executor, UniqueFd fd,
                                                      std::string peer) {
  PeerInfo info;
  info.address = std::move(peer);
  info.local = true;
  ucred who{};
  socklen_t length = sizeof who;
  if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &who, &length) == 0) {
    info.uid = who.uid;
    info.pid = who.pid;
  }
  TROUPE_ASSIGN(Socket socket, WrapSocket(executor, std::move(fd)));
  return MakeConnection(executor, MakePlainStream(std::move(socket)), std::move(info), true);
}

}  // namespace troupe::net
