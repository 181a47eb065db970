#include "worker/process_channel.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/os/text.h"

namespace troupe::worker {
namespace {

constexpr std::size_t kQueueBytesMax = 64u << 20;
constexpr std::size_t kReadBytes = 64u << 10;
// Reads per wake-up, so that a process that never stops sending does not starve the others.
constexpr int kReadsPerTurn = 16;

}  // namespace

StatusOr<std::unique_ptr<ProcessChannel>> ProcessChannel::Open(const async::Executor& executor,
                                                               OnMessage on_message, OnEnd on_end,
                                                               UniqueFd* other_end) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return os::SystemError("socketpair for a control channel");
  }
  UniqueFd ours(ends[0]);
  *other_end = UniqueFd(ends[1]);
  return std::unique_ptr<ProcessChannel>(
      new ProcessChannel(executor, std::move(ours), std::move(on_message), std::move(on_end)));
}

ProcessChannel::ProcessChannel(const async::Executor& executor, UniqueFd fd, OnMessage on_message,
                               OnEnd on_end)
    : fd_(std::move(fd)), on_message_(std::move(on_message)), on_end_(std::move(on_end)) {
  watch_ = std::make_unique<async::FdWatch>(executor, fd_.get(), [this] { ReadSome(false); });
}

void ProcessChannel::Send(const wire::Message& message) {
  StatusOr<std::string> frame = wire::EncodeFrame(message);
  if (!frame.ok()) {
    End(frame.status());
    return;
  }
  SendFrame(*std::move(frame));
}

void ProcessChannel::SendFrame(std::string frame) {
  if (ended_) return;
  queued_bytes_ += frame.size();
  if (queued_bytes_ > kQueueBytesMax) {
    End(MakeError(ErrorCode::kTooLarge, "the process does not read its control channel"));
    return;
  }
  queue_.push_back(std::move(frame));
  if (!waiting_to_write_) Flush();
}

void ProcessChannel::Flush() {
  while (!queue_.empty() && !ended_) {
    const std::string& first = queue_.front();
    const ssize_t sent = send(fd_.get(), first.data() + sent_of_first_,
                              first.size() - sent_of_first_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      waiting_to_write_ = true;
      watch_->WhenWritable([this] {
        waiting_to_write_ = false;
        Flush();
      });
      return;
    }
    if (sent < 0) {  // the process has ended; what it sent before is still to be read
      queue_.clear();
      queued_bytes_ = 0;
      sent_of_first_ = 0;
      return;
    }
    sent_of_first_ += static_cast<std::size_t>(sent);
    queued_bytes_ -= static_cast<std::size_t>(sent);
    if (sent_of_first_ < first.size()) continue;
    queue_.pop_front();
    sent_of_first_ = 0;
  }
}

void ProcessChannel::DrainNow() { ReadSome(true); }

bool ProcessChannel::LeftUnread() const {
  int bytes = 0;
  return reset_ || (ioctl(fd_.get(), SIOCOUTQ, &bytes) == 0 && bytes > 0);
}

void ProcessChannel::ReadSome(bool all) {
  const std::shared_ptr<bool> alive = alive_;
  char buffer[kReadBytes];
  for (int turn = 0; !ended_ && (all || turn < kReadsPerTurn); ++turn) {
    const ssize_t got = recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) {
      reset_ = got < 0 && errno == ECONNRESET;
      End(absl::OkStatus());
      return;
    }
    reader_.Feed(std::string_view(buffer, static_cast<std::size_t>(got)));
    while (auto next = reader_.Next()) {
      if (!next->ok()) {
        End(next->status());
        return;
      }
      on_message_(**std::move(next));
      if (alive.use_count() == 1) return;  // destroyed by the callback
    }
  }
}

void ProcessChannel::End(const Status& reason) {
  if (ended_) return;
  ended_ = true;
  watch_.reset();
  queue_.clear();
  queued_bytes_ = 0;
  on_end_(reason);
}

}  // namespace troupe::worker
