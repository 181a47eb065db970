// A connection between the object stores of two processes of this host: bytes and descriptors.
//
// A Unix socket in the abstract namespace, named by the process it belongs to, so that nothing is
// left behind whoever ends how; both sides are of the same user (SO_PEERCRED), or it is refused
// before a byte is read. Non-blocking, not thread-safe: the store's mutex guards it. Limits:
// kUnsentMax bytes that the peer does not take, kDescriptorsMax descriptors that no frame has
// claimed.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <utility>

#include "actors/net/fork_guard.h"
#include "actors/objects/segment_map.h"
#include "runtime/base/ids.h"
#include "runtime/base/status.h"

namespace troupe::actors {

class ObjectLink {
 public:
  static constexpr std::size_t kUnsentMax = 64u << 20;
  static constexpr std::size_t kDescriptorsMax = 64;

  /// Listens for links to `self`.
  static StatusOr<GuardedFd> Listen(const ProcessId& self);
  enum class Dialled { kOk, kNobody, kBusy };
  /// kNobody: no such process lives. kBusy: try again soon.
  static Dialled Dial(const ProcessId& peer, GuardedFd* fd);

  ObjectLink(GuardedFd fd, std::uint64_t id, bool dialled)
      : id_(id), dialled_(dialled), fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  std::uint64_t id() const { return id_; }
  /// By this side.
  bool dialled() const { return dialled_; }

  void Append(const std::string& bytes);
  /// The descriptor goes with the first byte of `bytes`.
  void AppendWith(const std::string& bytes, GuardedFd descriptor);
  enum class Flushed { kAll, kLater, kOver };
  Flushed Flush();
  /// Reads what is there into in(). False: the connection is over.
  bool Read();
  std::string& in() { return in_; }
  /// The descriptor that came with the oldest frame that brings one; not valid: none came.
  GuardedFd TakeDescriptor();

  ProcessId peer;           // once it has greeted
  bool up = false;          // both have
  std::uint64_t stamp = 0;  // when it was dialled, by the dialler's clock
  bool ack_due = false;
  bool watches_writes = false;
  std::set<SegmentKey> given;  // segments whose descriptors the peer got here

 private:
  struct Chunk {
    std::string bytes;
    std::size_t sent = 0;
    GuardedFd descriptor;
  };
  const std::uint64_t id_;
  const bool dialled_;
  GuardedFd fd_;
  std::deque<Chunk> out_;
  std::size_t unsent_ = 0;
  std::string in_;
  std::deque<GuardedFd> descriptors_;
};

}  // namespace troupe::actors
