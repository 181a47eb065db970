#include "runtime/net/endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

namespace troupe::net {

namespace asio = async::asio;

async::Task<StatusOr<std::vector<Endpoint>>> Resolve(Address address) {
  std::vector<Endpoint> endpoints;
  if (address.is_unix()) {
    endpoints.emplace_back(asio::local::stream_protocol::endpoint(address.path));
    co_return endpoints;
  }
  boost::system::error_code not_numeric;
  const auto number = asio::ip::make_address(address.host, not_numeric);
  if (!not_numeric) {
    endpoints.emplace_back(asio::ip::tcp::endpoint(number, address.port));
    co_return endpoints;
  }
  asio::ip::tcp::resolver resolver(co_await asio::this_coro::executor);
  const std::string port = std::to_string(address.port);
  auto [error, results] = co_await resolver.async_resolve(address.host, port, async::kTuple);
  if (error || results.empty()) {
    co_return MakeError(ErrorCode::kConnection,
                        "the name " + address.host + " does not resolve: " + error.message());
  }
  for (const auto& result : results) endpoints.emplace_back(result.endpoint());
  co_return endpoints;
}

StatusOr<UniqueFd> OpenSocket(const Endpoint& to) {
  UniqueFd fd(::socket(to.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.valid()) return fd;
  return MakeError(ErrorCode::kConnection,
                   std::string("no socket for a connection: ") + std::strerror(errno));
}

Address PeerAddress(int fd) {
  Address address;
  address.host = "an unknown address";
  sockaddr_storage other{};
  socklen_t length = sizeof other;
  char text[INET6_ADDRSTRLEN] = "";
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&other), &length) != 0) return address;
  if (other.ss_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(&other);
    address.host = ::inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
    address.port = ntohs(in->sin_port);
  } else if (other.ss_family == AF_INET6) {
    const auto* in = reinterpret_cast<const sockaddr_in6*>(&other);
    address.host = ::inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof text);
    address.port = ntohs(in->sin6_port);
  }
  return address;
}

}  // namespace troupe::net
