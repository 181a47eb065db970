#include "actors/train/local/peer_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "runtime/base/text.h"
#include "runtime/net/fd_passing.h"

namespace troupe::train {
namespace {

constexpr std::size_t kFrameBytes = 8;

}  // namespace

Status PeerLink::SendMemory(int memory, const Patience& patience) {
  TROUPE_TRY(Ready(fd_.get(), POLLOUT, patience, "sharing memory with the ranks of this node"));
  const char head[kFrameBytes] = {static_cast<char>(FrameKind::kMemory)};
  if (!net::SendFds(fd_.get(), {head, sizeof head}, {memory}).ok())
    return MakeError(ErrorCode::kConnection,
                     Why("sharing memory with rank " + std::to_string(peer_)));
  return absl::OkStatus();
}

StatusOr<UniqueFd> PeerLink::ReceiveMemory(const Patience& patience) {
  const std::string doing = "getting the node's memory from rank " + std::to_string(peer_);
  TROUPE_TRY(Ready(fd_.get(), POLLIN, patience, doing));
  StatusOr<net::Received> got = net::RecvFds(fd_.get(), kFrameBytes);
  if (!got.ok() || got->payload.size() != kFrameBytes || got->fds.size() != 1 ||
      got->payload[0] != static_cast<char>(FrameKind::kMemory))
    return MakeError(ErrorCode::kConnection, doing + ": it sent none, for it ended or failed");
  return std::move(got->fds[0]);
}

bool PeerLink::Tell(FrameKind kind, std::string_view text) {
  text = CutText(text, kFrameTextMax);
  std::string frame(kFrameBytes, '\0');
  frame[0] = static_cast<char>(kind);
  frame[2] = static_cast<char>(text.size() & 0xff);
  frame[3] = static_cast<char>(text.size() >> 8);
  frame += text;
  const ssize_t sent = send(fd_.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent == static_cast<ssize_t>(frame.size());
}

StatusOr<Frame> PeerLink::Next() {
  const auto invalid = [] { return MakeError(ErrorCode::kInvalid, "it sends what is no frame"); };
  std::size_t whole = kFrameBytes;
  for (;;) {
    if (read_.size() >= kFrameBytes) {
      const auto byte = [this](std::size_t at) { return static_cast<unsigned char>(read_[at]); };
      const std::size_t text = byte(2) | static_cast<std::size_t>(byte(3)) << 8;
      if (text > kFrameTextMax || byte(1) != 0 || byte(0) < 2 || byte(0) > 5) return invalid();
      whole = kFrameBytes + text;
      if (read_.size() == whole) {
        Frame frame{static_cast<FrameKind>(byte(0)), read_.substr(kFrameBytes)};
        read_.clear();
        return frame;
      }
    }
    char part[kFrameTextMax];
    const ssize_t got = recv(fd_.get(), part, whole - read_.size(), MSG_DONTWAIT);
    if (got > 0) {
      read_.append(part, static_cast<std::size_t>(got));
    } else if (got < 0 && errno == EAGAIN) {
      return MakeError(ErrorCode::kNotFound, "nothing yet");
    } else if (got < 0 && (errno == ETIMEDOUT || errno == EHOSTUNREACH || errno == ENETUNREACH)) {
      return MakeError(ErrorCode::kTimeout, "its node is not heard any more");
    } else if (got == 0 || errno != EINTR) {
      return MakeError(ErrorCode::kConnection, "its connection ended");
    }
  }
}

}  // namespace troupe::train
