#include "actors/net/stall_watch.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "actors/net/tls_loop.h"

namespace troupe::actors {

std::shared_ptr<StallWatch> StallWatch::Begin(int fd) {
  const unsigned off = 0;
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &off, sizeof off);
  std::shared_ptr<StallWatch> watch(new StallWatch(fd));
  TlsLoop::Current().Watch(watch);
  return watch;
}

void StallWatch::End() {
  if (generation_ != ForkGuard::generation()) return;
  const MutexLock lock(mutex_);
  fd_ = -1;
}

bool StallWatch::lost() {
  const MutexLock lock(mutex_);
  return lost_;
}

bool StallWatch::Look(Instant now) {
  const MutexLock lock(mutex_);
  if (fd_ < 0) return false;
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  TcpSample sample;
  sample.unanswered = info.tcpi_unacked > 0 || info.tcpi_probes > 0;
  sample.since_answer = std::chrono::milliseconds(info.tcpi_last_ack_recv);
  if (!rule_.Lost(now, sample)) return true;
  lost_ = true;
  ::shutdown(fd_, SHUT_RDWR);
  return false;
}

}  // namespace troupe::actors
