#include "head/server/probe.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "runtime/async/deadline.h"
#include "runtime/base/unique_fd.h"
#include "runtime/os/host.h"

namespace troupe::head {
namespace {

namespace asio = boost::asio;
using async::Task;

// A Unix socket answers at once.
bool UnixRefuses(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) return false;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return false;
  const int code = connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return code != 0 && (errno == ECONNREFUSED || errno == ENOENT);
}

Task<StatusOr<bool>> TcpRefuses(std::string host, std::uint16_t port) {
  boost::system::error_code bad;
  const auto ip = asio::ip::make_address(host, bad);
  if (bad) co_return false;
  asio::ip::tcp::socket socket(co_await asio::this_coro::executor);
  const asio::ip::tcp::endpoint endpoint(ip, port);
  const auto [error] = co_await socket.async_connect(endpoint, async::kTuple);
  co_return error == asio::error::connection_refused;
}

}  // namespace

Task<bool> NobodyListens(wire::RegisterNode node) {
  if (!node.unix_path.empty() && node.boot_id == os::BootId())
    co_return UnixRefuses(node.unix_path);
  if (node.listen_host.empty() || node.listen_port == 0) co_return false;
  auto connecting = TcpRefuses(node.listen_host, node.listen_port);
  std::string what = "a probe of " + node.name;
  const StatusOr<bool> refused = co_await async::WithDeadline(
      std::move(connecting), Duration(std::chrono::seconds(1)), std::move(what));
  co_return refused.ok() && *refused;
}

}  // namespace troupe::head
