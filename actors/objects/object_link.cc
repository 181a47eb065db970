#include "actors/objects/object_link.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>

#include "actors/net/unix_stream.h"

namespace troupe::actors {
namespace {

constexpr std::size_t kLinkReadBytes = 64u << 10;
constexpr int kDescriptorsPerMessage = 1;

/// In the abstract namespace; its length in `*size`.
sockaddr_un AddressOf(const ProcessId& process, socklen_t* size) {
  const std::string name = "troupe-objects-" + process.Hex();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path + 1, name.data(), name.size());
  *size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

int NewSocket() { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

}  // namespace

StatusOr<GuardedFd> ObjectLink::Listen(const ProcessId& self) {
  socklen_t size = 0;
  const sockaddr_un address = AddressOf(self, &size);
  GuardedFd fd(NewSocket());
  if (fd.get() < 0 || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(fd.get(), 512) != 0) {
    return MakeError(ErrorCode::kConnection,
                     std::string("cannot listen for other processes' objects: ") + strerror(errno));
  }
  return fd;
}

ObjectLink::Dialled ObjectLink::Dial(const ProcessId& peer, GuardedFd* fd) {
  socklen_t size = 0;
  const sockaddr_un address = AddressOf(peer, &size);
  GuardedFd made(NewSocket());
  if (made.get() < 0) return Dialled::kBusy;
  int result;
  do {
    result = ::connect(made.get(), reinterpret_cast<const sockaddr*>(&address), size);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return errno == ECONNREFUSED ? Dialled::kNobody : Dialled::kBusy;
  // the name was taken by another user
  if (!CheckPeerIsSameUser(made.get()).ok()) return Dialled::kNobody;
  *fd = std::move(made);
  return Dialled::kOk;
}

void ObjectLink::Append(const std::string& bytes) {
  if (out_.empty() || out_.back().descriptor.get() >= 0) out_.emplace_back();
  out_.back().bytes += bytes;
  unsent_ += bytes.size();
}

void ObjectLink::AppendWith(const std::string& bytes, GuardedFd descriptor) {
  out_.emplace_back();
  out_.back().bytes = bytes;
  out_.back().descriptor = std::move(descriptor);
  unsent_ += bytes.size();
}

ObjectLink::Flushed ObjectLink::Flush() {
  while (!out_.empty()) {
    Chunk& chunk = out_.front();
    iovec part{chunk.bytes.data() + chunk.sent, chunk.bytes.size() - chunk.sent};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
    if (chunk.sent == 0 && chunk.descriptor.get() >= 0) {
      message.msg_control = space;
      message.msg_controllen = sizeof space;
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof(int));
      const int fd = chunk.descriptor.get();
      memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    const ssize_t n = ::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EINTR) continue;
      const bool later = errno == EAGAIN || errno == EWOULDBLOCK;
      return later && unsent_ <= kUnsentMax ? Flushed::kLater : Flushed::kOver;
    }
    chunk.sent += static_cast<std::size_t>(n);
    unsent_ -= static_cast<std::size_t>(n);
    if (chunk.sent == chunk.bytes.size()) out_.pop_front();
  }
  return Flushed::kAll;
}

bool ObjectLink::Read() {
  while (true) {
    const std::size_t had = in_.size();
    in_.resize(had + kLinkReadBytes);
    iovec part{in_.data() + had, kLinkReadBytes};
    alignas(cmsghdr) char space[CMSG_SPACE(kDescriptorsPerMessage * sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    const ssize_t n = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const int error = errno;
    in_.resize(had + (n > 0 ? static_cast<std::size_t>(n) : 0));
    if (n < 0 && error == EINTR) continue;
    if (n < 0) return error == EAGAIN || error == EWOULDBLOCK;
    if (n == 0) return false;
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
         head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
      int fd = -1;
      memcpy(&fd, CMSG_DATA(head), sizeof fd);
      descriptors_.emplace_back(fd);
    }
    // Cut off: this process has no descriptor left, or the peer sent more than it may.
    if ((message.msg_flags & MSG_CTRUNC) != 0 || descriptors_.size() > kDescriptorsMax)
      return false;
    if (static_cast<std::size_t>(n) < kLinkReadBytes && descriptors_.empty()) return true;
    if (in_.size() >= (1u << 20)) return true;  // the rest after these; the socket stays readable
  }
}

GuardedFd ObjectLink::TakeDescriptor() {
  if (descriptors_.empty()) return GuardedFd();
  GuardedFd first = std::move(descriptors_.front());
  descriptors_.pop_front();
  return first;
}

}  // namespace troupe::actors
