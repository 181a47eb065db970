#include "runtime/net/admission.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstdint>
#include <map>
#include <utility>

#include "runtime/base/mutex.h"
#include "runtime/base/unique_fd.h"

namespace troupe::net {

namespace {

// The kernel's struct (linux/tcp.h, 4.1 and later) goes on where that of the C library ends; both
// headers together do not compile.
struct TcpInfo {
  tcp_info known;
  std::uint64_t pacing_rate, max_pacing_rate, bytes_acked, bytes_received;
};
static_assert(sizeof(tcp_info) == 104);

}  // namespace

std::optional<Duration> SilenceOf(int fd) {
  int unread = 0;
  if (ioctl(fd, SIOCINQ, &unread) != 0 || unread > 0) return std::nullopt;
  TcpInfo info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  const Duration silent = std::chrono::milliseconds(info.known.tcpi_last_data_recv);
  if (info.bytes_received > 0 && silent < Admission::kPatience) return std::nullopt;
  return silent;
}

struct Admission::Counts {
  struct Open {
    std::string host;
    UniqueFd socket;  // a duplicate: the connection may end at any moment
  };

  Counts(std::size_t most_per_host, std::size_t most)
      : per_host_max(most_per_host), total_max(most) {}

  const std::size_t per_host_max;
  const std::size_t total_max;
  Mutex mutex;
  std::map<std::string, std::size_t> by_host ABSL_GUARDED_BY(mutex);
  std::map<std::uint64_t, Open> open ABSL_GUARDED_BY(mutex);  // by a running number
  std::uint64_t last ABSL_GUARDED_BY(mutex) = 0;

  /// Again for one that was sent away, when its holder notices: that counts no more.
  void Forget(std::uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto gone = open.find(number);
    if (gone == open.end()) return;
    const auto of_host = by_host.find(gone->second.host);
    if (of_host != by_host.end() && --of_host->second == 0) by_host.erase(of_host);
    open.erase(gone);
  }

  /// AD-1, for one more from `host`, or (null) at all.
  bool MakeRoom(const std::string* host) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    auto longest = open.end();
    Duration silence{-1};
    for (auto each = open.begin(); each != open.end(); ++each) {
      const auto& [of_host, socket] = each->second;
      if (!socket.valid() || (host != nullptr && of_host != *host)) continue;
      const std::optional<Duration> silent = SilenceOf(socket.get());
      if (!silent || *silent <= silence) continue;
      longest = each;
      silence = *silent;
    }
    if (longest == open.end()) return false;
    ::shutdown(longest->second.socket.get(), SHUT_RDWR);
    Forget(longest->first);
    return true;
  }
};

Admission::Admission(std::size_t per_host_max, std::size_t total_max)
    : counts_(std::make_shared<Counts>(per_host_max, total_max)) {}

std::shared_ptr<void> Admission::Admit(const std::string& host, int fd) {
  Counts& all = *counts_;
  const MutexLock lock(all.mutex);
  const auto of_host = all.by_host.find(host);
  const bool share_taken = of_host != all.by_host.end() && of_host->second >= all.per_host_max;
  if (share_taken && !all.MakeRoom(&host)) return nullptr;
  if (all.open.size() >= all.total_max && !all.MakeRoom(nullptr)) return nullptr;
  if (!host.empty()) ++all.by_host[host];
  const std::uint64_t number = ++all.last;
  Counts::Open& mine = all.open[number];
  mine.host = host;
  if (!host.empty() && fd >= 0) mine.socket.Reset(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  auto give_back = [counts = counts_, number](void*) {
    Counts& held = *counts;
    const MutexLock inner(held.mutex);
    held.Forget(number);
  };
  return std::shared_ptr<void>(counts_.get(), std::move(give_back));
}

std::size_t Admission::open() const {
  Counts& all = *counts_;
  const MutexLock lock(all.mutex);
  return all.open.size();
}

}  // namespace troupe::net
