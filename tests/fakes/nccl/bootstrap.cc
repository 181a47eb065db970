#include "tests/fakes/nccl/bootstrap.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/fakes/nccl/segment.h"

namespace troupe::fakes {
namespace {

constexpr char kMagic[8] = {'F', 'A', 'K', 'E', 'N', 'C', 'C', 'L'};
struct IdText {
  char magic[8];
  char socket[100];  // an abstract Unix socket's name
};
/// The hello of a connection to a listener: a rank, or the listener of another id for all of its
/// ranks.
struct Hello {
  int rank;      // -1: a listener
  int size;      // ranks in all
  int id_count;  // listeners in all
  int index;  // the owner of these ranks
  char first[100];
};

sockaddr_un AddressOf(const char* name, socklen_t& length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", name);
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                  std::strlen(address.sun_path + 1));
  return address;
}

UniqueFd Dial(const char* name) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  socklen_t length;
  const auto address = AddressOf(name, length);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) fd.Reset();
  return fd;
}

/// Sends the segment, or without one the refusal `text`.
void Answer(int to, int segment, const char* text) {
  char control[CMSG_SPACE(sizeof(int))] = {};
  char body[128] = {};
  std::snprintf(body, sizeof body, "%s", text);
  iovec part{body, sizeof body};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (segment >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &segment, sizeof segment);
  }
  sendmsg(to, &message, MSG_NOSIGNAL);
}

UniqueFd ReadAnswer(int from, std::string& error) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  char body[128] = {};
  iovec part{body, sizeof body};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) <= 0) {
    error = "bootstrap: the process that made the id is gone";
    return {};
  }
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (!header || header->cmsg_type != SCM_RIGHTS) {
    error = std::string("bootstrap: ") + body;
    return {};
  }
  int fd;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return UniqueFd(fd);
}

int RanksOf(const Hello& hello) {
  int ranks = 0;
  for (int rank = 0; rank < hello.size; ++rank)
    ranks += rank * hello.id_count / hello.size == hello.index;
  return ranks;
}

UniqueFd MakeSegment(int size) {
  UniqueFd segment(memfd_create("fake-nccl", MFD_CLOEXEC));
  if (segment.valid() && ftruncate(segment.get(), static_cast<off_t>(SegmentBytes(size))) != 0)
    segment.Reset();
  return segment;
}

/// The thread behind an id: collects who comes, and gives all of them the segment.
void ServeId(UniqueFd listener) {
  std::vector<UniqueFd> came;
  Hello first{};
  for (std::size_t expected = 1; came.size() < expected;) {
    UniqueFd fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    Hello hello{};
    if (!fd.valid()) return;
    if (recv(fd.get(), &hello, sizeof hello, MSG_WAITALL) != sizeof hello) continue;
    if (came.empty()) {
      first = hello;
      if (hello.rank < 0) first.index = 0;
      expected =
          static_cast<std::size_t>(RanksOf(first) + (first.index == 0 ? first.id_count - 1 : 0));
    } else if (hello.size != first.size || hello.id_count != first.id_count) {
      Answer(fd.get(), -1, "ranks disagree about their number, or about the ids");
      continue;
    }
    came.push_back(std::move(fd));
  }
  UniqueFd segment;
  std::string error = "no memory for the segment";
  if (first.index == 0) {
    segment = MakeSegment(first.size);
  } else if (UniqueFd up = Dial(first.first); up.valid()) {
    first.rank = -1;
    if (send(up.get(), &first, sizeof first, MSG_NOSIGNAL) == sizeof first)
      segment = ReadAnswer(up.get(), error);
  }
  for (const auto& fd : came) Answer(fd.get(), segment.get(), error.c_str());
}

}  // namespace

bool MakeUniqueId(train::NcclUniqueId& id) {
  static std::atomic<int> count{0};
  IdText text{};
  std::memcpy(text.magic, kMagic, sizeof kMagic);
  std::snprintf(text.socket, sizeof text.socket, "fake-nccl-%d-%d", getpid(), count++);
  UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  socklen_t length;
  const auto address = AddressOf(text.socket, length);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(listener.get(), 128) != 0)
    return false;
  id = {};
  std::memcpy(id.internal, &text, sizeof text);
  std::thread(ServeId, std::move(listener)).detach();  // as NCCL's: it ends with its ranks, or here
  return true;
}

bool IsUniqueId(const train::NcclUniqueId& id) {
  return std::memcmp(id.internal, kMagic, sizeof kMagic) == 0;
}

UniqueFd Join(const JoinRequest& request, const std::atomic<bool>& stop, std::string& error) {
  Hello hello{};
  hello.rank = request.rank;
  hello.size = request.size;
  hello.id_count = request.id_count;
  hello.index = request.rank * request.id_count / request.size;
  IdText mine, first;
  std::memcpy(&mine, request.ids[hello.index].internal, sizeof mine);
  std::memcpy(&first, request.ids[0].internal, sizeof first);
  std::memcpy(hello.first, first.socket, sizeof hello.first);
  UniqueFd fd = Dial(mine.socket);
  if (!fd.valid() || send(fd.get(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) {
    error = "bootstrap: connection refused: the process that made the id is gone";
    return {};
  }
  pollfd fds[] = {{fd.get(), POLLIN, 0}, {request.wake_fd, POLLIN, 0}};
  while (!stop && fds[0].revents == 0) poll(fds, 2, -1);
  if (fds[0].revents == 0) {
    error = "bootstrap: aborted";
    return {};
  }
  return ReadAnswer(fd.get(), error);
}

}  // namespace troupe::fakes
