#include "actors/train/local/peer_link.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "actors/train/local/local_work.h"
#include "runtime/base/text.h"
#include "runtime/net/digest.h"
#include "runtime/net/fd_passing.h"
#include "runtime/os/host.h"

namespace troupe::train {
namespace {

constexpr std::string_view kCardBegins = "troupe-group 1\n";
constexpr std::size_t kNonceBytes = 32, kProofBytes = 32, kFrameBytes = 8, kCardMax = 512;
constexpr Duration kStrangerMax = std::chrono::seconds(10);
constexpr int kBacklog = 512;

std::string Why(const std::string& what) { return what + ": " + std::strerror(errno); }

std::string Nonce() {
  std::string bytes(kNonceBytes, '\0');
  for (std::size_t got = 0; got < bytes.size();) {
    const ssize_t more = getrandom(bytes.data() + got, bytes.size() - got, 0);
    if (more > 0) got += static_cast<std::size_t>(more);
  }
  return bytes;
}

std::pair<sockaddr_un, socklen_t> Abstract(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t bytes = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), bytes);
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes)};
}

/// Until `fd` can do this; kTimeout, kCancelled.
Status Ready(int fd, short events, const Patience& patience, const std::string& doing) {
  for (;;) {
    const Duration left = patience.began + patience.most - patience.clock.Now();
    pollfd fds[] = {{fd, events, 0}, {patience.stop_fd, POLLIN, 0}};
    const int ready =
        poll(fds, 2, static_cast<int>(std::clamp<std::int64_t>(Millis(left) + 1, 0, 1 << 30)));
    if (ready > 0 && fds[1].revents != 0)
      return MakeError(ErrorCode::kCancelled, doing + ": the group was stopped");
    if (ready > 0) return absl::OkStatus();
    if (ready == 0 && left <= Duration::zero())
      return MakeError(ErrorCode::kTimeout, doing + ": not done after " +
                                                SecondsText(patience.most) +
                                                ", counted from the forming's beginning");
  }
}

Status Write(int fd, std::string_view bytes, const Patience& patience, const std::string& doing) {
  while (!bytes.empty()) {
    TROUPE_TRY(Ready(fd, POLLOUT, patience, doing));
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
      return MakeError(ErrorCode::kConnection, Why(doing));
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return absl::OkStatus();
}

StatusOr<std::string> Read(int fd, std::size_t count, const Patience& patience,
                           const std::string& doing) {
  std::string bytes(count, '\0');
  for (std::size_t got = 0; got < count;) {
    TROUPE_TRY(Ready(fd, POLLIN, patience, doing));
    const ssize_t more = recv(fd, bytes.data() + got, count - got, MSG_DONTWAIT);
    if (more == 0) return MakeError(ErrorCode::kConnection, doing + ": the other end closed");
    if (more < 0 && errno != EAGAIN && errno != EINTR)
      return MakeError(ErrorCode::kConnection, Why(doing));
    if (more > 0) got += static_cast<std::size_t>(more);
  }
  return bytes;
}

std::string Number(std::uint32_t value) {
  std::string bytes(4, '\0');
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

std::uint32_t FromNumber(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

/// What only who knows the secret can say of this meeting; each end has words of its own.
std::string Proof(const Secret& secret, std::string_view end, std::string_view dialler_nonce,
                  std::string_view answerer_nonce, int dialler, int answerer) {
  std::string said(end);
  said += dialler_nonce;
  said += answerer_nonce;
  said +=
      Number(static_cast<std::uint32_t>(dialler)) + Number(static_cast<std::uint32_t>(answerer));
  return net::HmacSha256(secret.Reveal(), said);
}

Status Unproven(int rank) {
  return MakeError(ErrorCode::kJoinRefused, "who answers as rank " + std::to_string(rank) +
                                                " does not know the group's secret");
}

ucred PeerOf(int fd) {
  ucred peer{0, static_cast<uid_t>(-1), 0};
  socklen_t length = sizeof peer;
  getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length);
  return peer;
}

/// The dialler's rank, once it has proved itself.
StatusOr<int> Answer(int fd, int me, const Secret& secret, const Patience& patience) {
  const std::string doing = "hearing a rank that comes";
  TROUPE_ASSIGN(const std::string hello, Read(fd, 4 + kNonceBytes, patience, doing));
  const int peer = static_cast<int>(FromNumber(hello) & 0x7fffffffu);
  const std::string theirs = hello.substr(4), mine = Nonce();
  TROUPE_TRY(Write(fd, mine + Proof(secret, "answers", theirs, mine, peer, me), patience, doing));
  TROUPE_ASSIGN(const std::string proof, Read(fd, kProofBytes, patience, doing));
  if (!net::ConstantTimeEqual(proof, Proof(secret, "dials", theirs, mine, peer, me)))
    return Unproven(peer);
  return peer;
}

}  // namespace

std::string Card::Text() const { return std::string(kCardBegins) + host + "\n" + door; }

StatusOr<Card> Card::Parse(std::string_view text) {
  const std::size_t end = text.rfind('\n');
  if (text.size() > kCardMax || !text.starts_with(kCardBegins) || end < kCardBegins.size())
    return MakeError(ErrorCode::kInvalid,
                     "what a rank has said of where it is cannot be read: all ranks need the same "
                     "version of troupe");
  return Card{std::string(text.substr(kCardBegins.size(), end - kCardBegins.size())),
              std::string(text.substr(end + 1))};
}

StatusOr<Door> Door::Open() {
  Door door;
  door.card_ = {os::BootId(), "troupe-group-" + net::Base32(Nonce())};
  door.fd_.Reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto [address, length] = Abstract(door.card_.door);
  if (!door.fd_.valid() ||
      bind(door.fd(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(door.fd(), kBacklog) != 0)
    return MakeError(ErrorCode::kConnection, Why("opening a socket for the ranks of this node"));
  return door;
}

StatusOr<PeerLink> PeerLink::Dial(const Card& card, int peer, int me, const Secret& secret,
                                  const Patience& patience) {
  const std::string doing = "meeting rank " + std::to_string(peer) + " of this node";
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto [address, length] = Abstract(card.door);
  while (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
    if (errno != EINTR) return MakeError(ErrorCode::kConnection, Why(doing));
  const ucred who = PeerOf(fd.get());
  const std::string mine = Nonce();
  TROUPE_TRY(Write(fd.get(), Number(static_cast<std::uint32_t>(me)) + mine, patience, doing));
  TROUPE_ASSIGN(const std::string answer,
                Read(fd.get(), kNonceBytes + kProofBytes, patience, doing));
  const std::string theirs = answer.substr(0, kNonceBytes);
  if (!net::ConstantTimeEqual(answer.substr(kNonceBytes),
                              Proof(secret, "answers", mine, theirs, me, peer)))
    return Unproven(peer);
  TROUPE_TRY(Write(fd.get(), Proof(secret, "dials", mine, theirs, me, peer), patience, doing));
  return PeerLink(std::move(fd), peer, who.pid);
}

StatusOr<PeerLink> PeerLink::Accept(const Door& door, int me, const Secret& secret,
                                    const Patience& patience) {
  for (;;) {
    TROUPE_TRY(Ready(door.fd(), POLLIN, patience, "waiting for the other ranks of this node"));
    UniqueFd fd(accept4(door.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.valid()) {
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) continue;
      return MakeError(ErrorCode::kConnection, Why("taking the connection of a rank"));
    }
    const ucred who = PeerOf(fd.get());
    if (who.uid != geteuid()) continue;
    // A stranger that says nothing is not waited for as long as a rank is.
    Patience one = patience;
    one.began = patience.clock.Now();
    one.most = std::min(kStrangerMax, patience.began + patience.most - one.began);
    auto peer = Answer(fd.get(), me, secret, one);
    if (peer.ok()) return PeerLink(std::move(fd), *peer, who.pid);
    if (ErrorCodeOf(peer.status()) == ErrorCode::kCancelled) return peer.status();
  }
}

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
      if (text > kFrameTextMax || byte(1) != 0 || byte(0) < 2 || byte(0) > 3) return invalid();
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
    } else if (got == 0 || errno != EINTR) {
      return MakeError(ErrorCode::kConnection, "its connection ended");
    }
  }
}

}  // namespace troupe::train
