#include "actors/server/call_listener.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "actors/bulk/bulk_mover.h"
#include "actors/net/now.h"
#include "runtime/base/log.h"

namespace troupe::actors {
namespace {

/// A link for large values came in at the door.
void AdmitLink(CallStream stream) {
  if (BulkMover* const mover = BulkMover::Current()) mover->Admit(std::move(stream));
}

bool OutOfDescriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

CallListener::CallListener(std::string path, GuardedFd socket, int epoll_fd, std::uint64_t event)
    : path_(std::move(path)),
      generation_(ForkGuard::generation()),
      epoll_fd_(epoll_fd),
      event_(event),
      socket_(std::move(socket)) {}

StatusOr<std::unique_ptr<CallListener>> CallListener::Open(std::string path,
                                                           IdentitySource identity, int epoll_fd,
                                                           std::uint64_t event, int wake_fd) {
  TROUPE_ASSIGN(GuardedFd socket, ListenUnix(path));
  std::unique_ptr<CallListener> listener(
      new CallListener(std::move(path), std::move(socket), epoll_fd, event));
  if (!listener->Watch(EPOLL_CTL_ADD, true)) {
    return MakeError(ErrorCode::kConnection,
                     "cannot serve at " + listener->path_ + ": out of descriptors");
  }
  if (identity) {
    TROUPE_ASSIGN(listener->door_,
                  CallDoor::Open(listener->path_, std::move(identity), wake_fd, AdmitLink));
  }
  return listener;
}

CallListener::~CallListener() {
  if (generation_ == ForkGuard::generation()) ::unlink(path_.c_str());
}

void CallListener::Accept(absl::FunctionRef<void(CallStream)> admit) {
  while (true) {
    const int fd = ::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && OutOfDescriptors(errno)) return Pause();
    Resume();  // also where nobody waits: the system looks for a descriptor first
    if (fd < 0) return;
    CallStream stream{UnixStream(fd)};
    const Status same_user = CheckPeerIsSameUser(fd);
    if (!same_user.ok()) {
      Log(LogLevel::kWarning, "caller refused", {{"socket", path_}, {"why", MessageOf(same_user)}});
      continue;
    }
    admit(std::move(stream));
  }
}

std::vector<CallStream> CallListener::TakeFromDoor() {
  return door_ != nullptr ? door_->Take() : std::vector<CallStream>();
}

void CallListener::Pause() {
  const int error = errno;
  const Instant now = Now();
  if (!paused_until_) Watch(EPOLL_CTL_MOD, false);
  paused_until_ = now + net::Shortage::kPause;
  if (!shortage_.Ran(now)) return;
  Log(LogLevel::kError,
      "callers wait: no descriptor is left for their connections (raise `ulimit -n`)",
      {{"socket", path_}, {"why", strerror(error)}});
}

void CallListener::Resume() {
  if (paused_until_) Watch(EPOLL_CTL_MOD, true);
  paused_until_.reset();
  if (shortage_.lasts() && shortage_.Over(Now())) {
    Log(LogLevel::kInfo, "callers are let in again", {{"socket", path_}});
  }
}

bool CallListener::Watch(int operation, bool watched) {
  epoll_event event{};
  event.events = watched ? static_cast<unsigned>(EPOLLIN) : 0u;
  event.data.u64 = event_;
  return ::epoll_ctl(epoll_fd_, operation, socket_.get(), &event) == 0;
}

}  // namespace troupe::actors
