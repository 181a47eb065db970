#include "runtime/os/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "runtime/os/text.h"

namespace troupe::os {

StatusOr<SignalFd> SignalFd::Open(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) return SystemError("pthread_sigmask");
  UniqueFd fd(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd.valid()) return SystemError("signalfd");
  return SignalFd(std::move(fd));
}

std::optional<int> SignalFd::Next() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace troupe::os
