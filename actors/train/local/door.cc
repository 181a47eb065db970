#include "actors/train/local/door.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "actors/train/local/local_work.h"
#include "runtime/net/address.h"
#include "runtime/net/bind.h"
#include "runtime/net/digest.h"
#include "runtime/os/host.h"

namespace troupe::train {
namespace {

constexpr std::string_view kCardBegins = "troupe-group 2\n";
constexpr std::size_t kCardMax = 1024, kDoorBytes = 32;
constexpr int kBacklog = 512;
constexpr const char* kRemedy =
    "\n  try: GLOO_SOCKET_IFNAME names the interface at whose address ranks meet; firewalls "
    "between "
    "nodes must let them through";
// The other end of a watched connection is asked after when nothing came for so long, and given up
// as long after; the verdict on a node that is cut off comes before.
constexpr int kIdleSeconds = 30, kProbeSeconds = 15, kProbes = 4, kSilentMilliseconds = 90'000;

std::pair<sockaddr_un, socklen_t> Abstract(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t bytes = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), bytes);
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes)};
}

ucred PeerOf(int fd) {
  ucred peer{0, static_cast<uid_t>(-1), 0};
  socklen_t length = sizeof peer;
  getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length);
  return peer;
}

void Set(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);
}

/// How a connection to another node behaves. Only what is always read may be given up for its
/// silence: a rank that comes late to an operation reads no part of it.
void Tune(int fd, Channel channel) {
  Set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (channel != Channel::kWatch) return;
  Set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  Set(fd, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  Set(fd, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  Set(fd, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  Set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kSilentMilliseconds);
}

StatusOr<UniqueFd> DialHere(const std::string& door, const std::string& doing) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto [address, length] = Abstract(door);
  while (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
    if (errno != EINTR) return MakeError(ErrorCode::kConnection, Why(doing));
  return fd;
}

StatusOr<UniqueFd> DialElsewhere(const std::string& text, const Patience& patience,
                                 const std::string& doing) {
  TROUPE_ASSIGN(const net::Address address, net::ParseAddress(text));
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found) != 0)
    return MakeError(ErrorCode::kInvalid, doing + ": that is no numeric address");
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  UniqueFd fd(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return MakeError(ErrorCode::kConnection, Why(doing));
  if (connect(fd.get(), found->ai_addr, found->ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return MakeError(ErrorCode::kConnection, Why(doing));
  TROUPE_TRY(Ready(fd.get(), POLLOUT, patience, doing));
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  errno = error;
  if (error != 0) return MakeError(ErrorCode::kConnection, Why(doing));
  return fd;
}

}  // namespace

std::string Card::Text() const {
  return std::string(kCardBegins) + host + "\n" + door + "\n" + name + "\n" + address;
}

StatusOr<Card> Card::Parse(std::string_view text) {
  std::vector<std::string> parts;
  if (text.size() <= kCardMax && text.starts_with(kCardBegins))
    for (std::size_t at = kCardBegins.size(); at <= text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      parts.emplace_back(text.substr(at, end - at));
      at = end + 1;
    }
  if (parts.size() != 4 || parts[0].empty())
    return MakeError(ErrorCode::kInvalid,
                     "what a rank has said of where it is cannot be read: all ranks need the same "
                     "version of troupe");
  return Card{parts[0], parts[1], parts[2], parts[3]};
}

StatusOr<Door> Door::Open(std::string host) {
  std::string random(kDoorBytes, '\0');
  while (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    continue;
  Door door;
  door.card_ = {host.empty() ? os::BootId() : std::move(host),
                "troupe-group-" + net::Base32(random), os::HostName(), ""};
  door.fd_.Reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto [address, length] = Abstract(door.card_.door);
  if (!door.fd_.valid() ||
      bind(door.fd(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(door.fd(), kBacklog) != 0)
    return MakeError(ErrorCode::kConnection, Why("opening a socket for the ranks of this node"));
  return door;
}

Status Door::Listen(const std::string& address) {
  TROUPE_ASSIGN(const net::Address any, net::TcpAddress(address, 0));
  TROUPE_ASSIGN(auto bound, net::BindTcp(any));
  tcp_ = std::move(bound.fd);
  card_.address = bound.address.Text();
  return absl::OkStatus();
}

StatusOr<Met> Dial(const Card& card, bool is_here, int peer, Dialler me, const Secret& secret,
                   const Patience& patience) {
  const std::string doing =
      "meeting rank " + std::to_string(peer) +
      (is_here ? " of this node" : " on " + card.name + " at " + card.address);
  Met met{{}, peer, me.channel, 0};
  if (is_here) {
    TROUPE_ASSIGN(met.fd, DialHere(card.door, doing));
    met.pid = PeerOf(met.fd.get()).pid;
  } else if (card.address.empty()) {
    return MakeError(ErrorCode::kInvalid, "rank " + std::to_string(peer) + " on " + card.name +
                                              " is on another node than rank " +
                                              std::to_string(me.rank) +
                                              ", and listens to its own node alone");
  } else {
    auto fd = DialElsewhere(card.address, patience, doing);
    if (ErrorCodeOf(fd.status()) == ErrorCode::kConnection)
      return MakeError(ErrorCode::kConnection, MessageOf(fd.status()) + kRemedy);
    TROUPE_ASSIGN(met.fd, std::move(fd));
    Tune(met.fd.get(), me.channel);
  }
  TROUPE_TRY(ProveAsDialler(met.fd.get(), me, peer, secret, patience, doing));
  return met;
}

Status Guests::Admit(int door, bool is_unix, Instant now) {
  UniqueFd fd(accept4(door, nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd.valid()) {
    // Only these errors may go away at another try; with too few descriptors it would be tried for
    // ever.
    const bool is_short = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
    return is_short ? MakeError(ErrorCode::kConnection, Why("taking the connection of a rank"))
                    : absl::OkStatus();
  }
  int pid = 0;
  if (is_unix) {
    const ucred who = PeerOf(fd.get());
    if (who.uid != geteuid()) return absl::OkStatus();
    pid = who.pid;
  }
  if (guests_.size() >= kStrangersMax) guests_.pop_front();  // DO1
  guests_.push_back({Answerer(std::move(fd), me_), now + kStrangerMax, pid});
  return absl::OkStatus();
}

StatusOr<Met> Guests::Hear(const Patience& patience) {
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    const auto next = guest->answerer.Hear(secret_);
    if (next == Answerer::Next::kMore && guest->until > patience.clock.Now()) {
      ++guest;
      continue;
    }
    if (next == Answerer::Next::kProven) {
      const Dialler who = guest->answerer.dialler();
      Met met{guest->answerer.Take(), who.rank, who.channel, guest->pid};
      guests_.erase(guest);
      if (met.pid == 0) Tune(met.fd.get(), met.channel);
      return met;
    }
    guest = guests_.erase(guest);
  }
  return MakeError(ErrorCode::kNotFound, "nobody yet");
}

StatusOr<Met> Guests::Next(const Patience& patience) {
  for (;;) {
    auto met = Hear(patience);
    if (met.ok()) return met;
    const Instant now = patience.clock.Now(), until = patience.began + patience.most;
    if (now >= until)
      return MakeError(ErrorCode::kTimeout, "waiting for the other ranks: not done after " +
                                                SecondsText(patience.most) +
                                                ", counted from the forming's beginning");
    const Instant first = guests_.empty() ? until : std::min(until, guests_.front().until);
    std::vector<pollfd> fds = {
        {patience.stop_fd, POLLIN, 0}, {door_.fd(), POLLIN, 0}, {door_.tcp_fd(), POLLIN, 0}};
    for (const auto& guest : guests_) fds.push_back({guest.answerer.fd(), POLLIN, 0});
    const auto most = std::clamp<std::int64_t>(Millis(first - now) + 1, 0, 1 << 30);
    if (poll(fds.data(), fds.size(), static_cast<int>(most)) <= 0) continue;
    if (fds[0].revents != 0)
      return MakeError(ErrorCode::kCancelled, "waiting for the other ranks: the group was stopped");
    for (const std::size_t door : {std::size_t{1}, std::size_t{2}})
      if (fds[door].revents != 0) TROUPE_TRY(Admit(fds[door].fd, door == 1, patience.clock.Now()));
  }
}

}  // namespace troupe::train
