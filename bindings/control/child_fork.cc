#include "bindings/control/child_fork.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "runtime/base/unique_fd.h"
#include "runtime/net/fd_passing.h"
#include "runtime/os/process.h"
#include "runtime/wire/frame.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace troupe::bindings {
namespace {

enum class Side { kParent, kChild };

/// Results of the process in the middle; volatile, for they are written between the two returns of
/// vfork().
struct Outcome {
  volatile pid_t child = 0;
  volatile int error = ECANCELED;  // until the middle has done its part
};

/// 0 or errno. The receiver knows the child by its pidfd before it can have reaped it.
int Announce(int socket, pid_t child) noexcept {
  errno = 0;
  const StatusOr<UniqueFd> pidfd = os::OpenPidfd(child);
  if (!pidfd.ok()) return errno != 0 ? errno : ESRCH;
  wire::ForkReply reply;
  reply.pid = child;
  wire::Message message;
  message.body = reply;
  const StatusOr<std::string> frame = wire::EncodeFrame(message);
  if (!frame.ok()) return EINVAL;
  return net::SendFds(socket, *frame, {pidfd->get()}).ok() ? 0 : errno;
}

/// Forks by a process in the middle that ends at once, so that the child goes to the subreaper
/// above. clone() with CLONE_PARENT would do it in one step, but past libc: the handlers of
/// pthread_atfork, which torch and OpenBLAS register, and what libc itself keeps of a process would
/// be left as they were. The middle shares this process's memory while this process waits (vfork),
/// so that its fork() is this process's in all but the parent, and page tables are copied once.
[[gnu::noinline]] Side ForkByMiddle(int socket, Outcome& outcome) {
  const pid_t middle = vfork();
  if (middle < 0) {
    outcome.error = errno;
    return Side::kParent;
  }
  if (middle == 0) {
    const pid_t child = fork();
    // The child's memory and stack are a copy: it may return, the middle may not
    if (child == 0) return Side::kChild;
    outcome.child = child;
    outcome.error = child < 0 ? errno : Announce(socket, child);
    if (child > 0 && outcome.error != 0) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    _exit(0);
  }
  while (waitpid(middle, nullptr, 0) < 0 && errno == EINTR) {
  }
  return Side::kParent;
}

/// The child's first step: until the other end is closed, which says that the middle has ended and
/// the parent is the right one.
void AwaitParent(UniqueFd& gate, UniqueFd& opener) {
  opener.Reset();
  char unused;
  while (read(gate.get(), &unused, 1) < 0 && errno == EINTR) {
  }
  gate.Reset();
}

[[noreturn]] void RaiseOsError(int error) {
  errno = error;
  PyErr_SetFromErrno(PyExc_OSError);
  throw nb::python_error();
}

int ForkChild(int socket) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) RaiseOsError(errno);
  UniqueFd gate(ends[0]);
  UniqueFd opener(ends[1]);
  Outcome outcome;
  PyOS_BeforeFork();
  if (ForkByMiddle(socket, outcome) == Side::kChild) {
    AwaitParent(gate, opener);
    PyOS_AfterFork_Child();
    return 0;
  }
  opener.Reset();
  PyOS_AfterFork_Parent();
  if (outcome.error != 0) RaiseOsError(outcome.error);
  return outcome.child;
}

}  // namespace

void bind_fork(nb::module_& m) {
  m.def("fork_child", &ForkChild, "socket"_a,
        "Forks a child of the nearest subreaper above this process, which is told of it over "
        "`socket` first: its pid, or 0 in "
        "the child. OSError where the system refuses.");
}

}  // namespace troupe::bindings
