#include "runtime/net/bind.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "runtime/net/port_holder.h"

namespace troupe::net {
namespace {

constexpr int kBacklog = 1024;
constexpr int kSocketType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

Status CannotListen(const Address& address) {
  return MakeError(ErrorCode::kInvalid,
                   "cannot listen on " + address.Text() + ": " + std::strerror(errno));
}

std::uint16_t PortOf(int fd) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length);
  return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&own)->sin6_port
                                         : reinterpret_cast<sockaddr_in*>(&own)->sin_port);
}

StatusOr<Bound> BindOne(const Address& address, const addrinfo& where) {
  Bound bound;
  bound.address = address;
  bound.fd = UniqueFd(socket(where.ai_family, kSocketType, where.ai_protocol));
  if (!bound.fd.valid()) return CannotListen(address);
  const int yes = 1;
  setsockopt(bound.fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(bound.fd.get(), where.ai_addr, where.ai_addrlen) != 0 ||
      listen(bound.fd.get(), kBacklog) != 0) {
    if (errno != EADDRINUSE) return CannotListen(address);
    return MakeError(
        ErrorCode::kAlreadyExists,
        "port " + std::to_string(address.port) + " on " + address.host + " is taken by " +
            HolderOfPort(address.port) +
            "\n  choose another with --port, or let the system choose a free one with --port 0");
  }
  bound.address.port = PortOf(bound.fd.get());
  return bound;
}

Status OwnFolder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return MakeError(ErrorCode::kInvalid,
                     "cannot make the folder " + folder + ": " + std::strerror(errno));
  }
  struct stat info{};
  if (lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid()) {
    return MakeError(ErrorCode::kInvalid,
                     folder + " is not a folder of this user: sockets cannot be kept there");
  }
  if ((info.st_mode & 077) != 0 && chmod(folder.c_str(), 0700) != 0) {
    return MakeError(
        ErrorCode::kInvalid,
        "others can enter " + folder + ", and it cannot be changed: " + std::strerror(errno));
  }
  return {};
}

sockaddr_un UnixName(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), std::min(path.size(), kUnixPathBytesMax));
  return name;
}

/// A socket file nobody answers on is left over from a process that was killed.
bool IsLeftOver(const std::string& path) {
  struct stat info{};
  if (lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return false;
  const UniqueFd probe(socket(AF_UNIX, kSocketType, 0));
  const sockaddr_un name = UnixName(path);
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 &&
         errno == ECONNREFUSED;
}

}  // namespace

StatusOr<Bound> BindTcp(const Address& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  const int error = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) {
    return MakeError(ErrorCode::kInvalid, "cannot listen on " + address.Text() +
                                              ": the name does not resolve (" +
                                              gai_strerror(error) + ")");
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  StatusOr<Bound> bound = CannotListen(address);
  for (const addrinfo* where = found; where != nullptr; where = where->ai_next) {
    bound = BindOne(address, *where);
    if (bound.ok()) break;
  }
  return bound;
}

StatusOr<Bound> BindUnix(const Address& address) {
  TROUPE_TRY(OwnFolder(address.path.substr(0, std::max<std::size_t>(address.path.rfind('/'), 1))));
  Bound bound;
  bound.address = address;
  bound.fd = UniqueFd(socket(AF_UNIX, kSocketType, 0));
  const sockaddr_un name = UnixName(address.path);
  const auto* where = reinterpret_cast<const sockaddr*>(&name);
  bool done = bind(bound.fd.get(), where, sizeof name) == 0;
  if (!done && errno == EADDRINUSE && IsLeftOver(address.path)) {
    unlink(address.path.c_str());
    done = bind(bound.fd.get(), where, sizeof name) == 0;
  }
  if (!done && errno == EADDRINUSE) {
    return MakeError(ErrorCode::kAlreadyExists,
                     address.path + " is taken: a running process listens on it");
  }
  // The folder keeps others out while the mode is still the umask's.
  if (!done || chmod(address.path.c_str(), 0600) != 0 || listen(bound.fd.get(), kBacklog) != 0) {
    return CannotListen(address);
  }
  return bound;
}

}  // namespace troupe::net
