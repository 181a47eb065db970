#include "actors/train/local/handshake.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "actors/train/local/local_work.h"
#include "runtime/net/digest.h"

namespace troupe::train {
namespace {

constexpr std::size_t kNonceBytes = 32, kProofBytes = 32, kNameBytes = 4;
constexpr int kRankBits = 24;

std::string Nonce() {
  std::string bytes(kNonceBytes, '\0');
  for (std::size_t got = 0; got < bytes.size();) {
    const ssize_t more = getrandom(bytes.data() + got, bytes.size() - got, 0);
    if (more > 0) got += static_cast<std::size_t>(more);
  }
  return bytes;
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
  std::string bytes(kNameBytes, '\0');
  for (std::size_t i = 0; i < kNameBytes; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

std::uint32_t FromNumber(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < kNameBytes; ++i)
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

std::uint32_t NameOf(Dialler dialler) {
  return static_cast<std::uint32_t>(dialler.rank) | static_cast<std::uint32_t>(dialler.channel)
                                                        << kRankBits;
}

/// Proves knowledge of the secret for this meeting; each end has words of its own.
std::string Proof(const Secret& secret, std::string_view end, std::string_view dialler_nonce,
                  std::string_view answerer_nonce, std::uint32_t dialler, int answerer) {
  std::string said(end);
  said += dialler_nonce;
  said += answerer_nonce;
  said += Number(dialler) + Number(static_cast<std::uint32_t>(answerer));
  return net::HmacSha256(secret.Reveal(), said);
}

}  // namespace

std::string Why(const std::string& doing) { return doing + ": " + std::strerror(errno); }

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

Status ProveAsDialler(int fd, Dialler me, int peer, const Secret& secret, const Patience& patience,
                      const std::string& doing) {
  const std::string mine = Nonce();
  const std::uint32_t name = NameOf(me);
  TROUPE_TRY(Write(fd, Number(name) + mine, patience, doing));
  TROUPE_ASSIGN(const std::string answer, Read(fd, kNonceBytes + kProofBytes, patience, doing));
  const std::string theirs = answer.substr(0, kNonceBytes);
  if (!net::ConstantTimeEqual(answer.substr(kNonceBytes),
                              Proof(secret, "answers", mine, theirs, name, peer)))
    return MakeError(ErrorCode::kJoinRefused, "who answers as rank " + std::to_string(peer) +
                                                  " does not know the group's secret");
  return Write(fd, Proof(secret, "dials", mine, theirs, name, peer), patience, doing);
}

Answerer::Next Answerer::Hear(const Secret& secret) {
  for (;;) {
    const std::size_t whole = mine_.empty() ? kNameBytes + kNonceBytes : kProofBytes;
    char part[kNameBytes + kNonceBytes];
    const ssize_t got = recv(fd_.get(), part, whole - got_.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return Next::kMore;
    if (got <= 0) return Next::kRefused;
    got_.append(part, static_cast<std::size_t>(got));
    if (got_.size() < whole) continue;
    if (mine_.empty()) {
      const std::uint32_t name = FromNumber(got_);
      dialler_ = {static_cast<int>(name & ((1u << kRankBits) - 1)),
                  static_cast<Channel>(name >> kRankBits)};
      theirs_ = got_.substr(kNameBytes);
      mine_ = Nonce();
      got_.clear();
      const std::string answer =
          mine_ + Proof(secret, "answers", theirs_, mine_, NameOf(dialler_), me_);
      // A connection that has carried nothing yet takes so little at once.
      if (send(fd_.get(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
          static_cast<ssize_t>(answer.size()))
        return Next::kRefused;
      continue;
    }
    const bool proven =
        net::ConstantTimeEqual(got_, Proof(secret, "dials", theirs_, mine_, NameOf(dialler_), me_));
    return proven && static_cast<int>(dialler_.channel) < kChannels ? Next::kProven
                                                                    : Next::kRefused;
  }
}

}  // namespace troupe::train
