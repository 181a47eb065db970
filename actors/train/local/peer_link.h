// Messages between two ranks of a group beside tensors.
//
// It is little: on one node the shared memory's descriptor, once, and a few frames of fixed size.
// The connection's end is how a peer's death is noticed, by event.
//
//   frame: kind u8, zero u8, length of the text u16, zero u32 (little endian), the text
//
// Blocking functions take a Patience and end with it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "actors/train/local/handshake.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace troupe::train {

inline constexpr std::size_t kFrameTextMax = 2048;

enum class FrameKind : std::uint8_t {
  kMemory = 1,
  kLeaves = 2,
  kStopped = 3,
  kAsks = 4,  // question: which ranks of the peer's node have not come to the piece of this number
  kAnswers = 5,  // answer: their ranks
};
struct Frame {
  FrameKind kind;
  std::string text;
};

class PeerLink {
 public:
  PeerLink(UniqueFd fd, int peer, int pid) : fd_(std::move(fd)), peer_(peer), pid_(pid) {}

  /// Sends a descriptor in a frame.
  Status SendMemory(int memory, const Patience& patience);
  StatusOr<UniqueFd> ReceiveMemory(const Patience& patience);
  /// Gives the kernel a frame, its text cut at kFrameTextMax; false where the peer takes none.
  bool Tell(FrameKind kind, std::string_view text);
  /// Returns the next frame, without waiting. kNotFound: nothing yet; kConnection: the peer is
  /// gone; kTimeout: its node is not heard any more; kInvalid: it sends no frames.
  StatusOr<Frame> Next();

  int fd() const { return fd_.get(); }
  int peer() const { return peer_; }
  /// The peer's process, as the kernel says; 0: it is on another node.
  int pid() const { return pid_; }

 private:
  UniqueFd fd_;
  int peer_, pid_;
  std::string read_;  // a frame's beginning
};

}  // namespace troupe::train
