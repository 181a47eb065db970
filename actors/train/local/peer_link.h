// How the ranks of a node find and trust each other: a Unix socket between each two of them.
//
// Each rank opens a door, an abstract Unix socket with a random name, and publishes its card (host
// and name) in the launch's store. A rank dials the doors of those below it and is dialled by those
// above. Both ends then prove by HMAC-SHA256 over two nonces that they know the group's secret, and
// who they are; processes of another user are not listened to at all. After that the socket
// carries little: the shared memory's descriptor, once, and a few frames of fixed size. Its end is
// how a peer's death is noticed, by event.
//
//   frame: kind u8, zero u8, length of the text u16, zero u32 (little endian), the text
//
// Blocking functions take a Patience and end with it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/secret.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/base/unique_fd.h"

namespace troupe::train {

inline constexpr std::size_t kFrameTextMax = 2048;

/// How long to wait, and a descriptor that ends the wait when it can be read.
struct Patience {
  const Clock& clock;
  Instant began;
  Duration most;
  int stop_fd = -1;
};

/// Where a rank is found; travels through the launch's store.
struct Card {
  std::string host;  // os::BootId of its process
  std::string door;

  std::string Text() const;
  /// kInvalid for what is no card.
  static StatusOr<Card> Parse(std::string_view text);
};

class Door {
 public:
  /// Listens under a random name. Returns at once.
  static StatusOr<Door> Open();
  const Card& card() const { return card_; }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  Card card_;
};

enum class FrameKind : std::uint8_t { kMemory = 1, kLeaves = 2, kStopped = 3 };
struct Frame {
  FrameKind kind;
  std::string text;
};

class PeerLink {
 public:
  PeerLink(UniqueFd fd, int peer, int pid) : fd_(std::move(fd)), peer_(peer), pid_(pid) {}

  /// Dials the door of `peer` and proves both ends. kConnection, kJoinRefused, kTimeout,
  /// kCancelled.
  static StatusOr<PeerLink> Dial(const Card& card, int peer, int me, const Secret& secret,
                                 const Patience& patience);
  /// The next peer that comes and proves itself; strangers are turned away and waited out.
  static StatusOr<PeerLink> Accept(const Door& door, int me, const Secret& secret,
                                   const Patience& patience);

  /// Sends a descriptor in a frame.
  Status SendMemory(int memory, const Patience& patience);
  StatusOr<UniqueFd> ReceiveMemory(const Patience& patience);
  /// Gives the kernel a frame, its text cut at kFrameTextMax; false where the peer takes none.
  bool Tell(FrameKind kind, std::string_view text);
  /// What has come, without waiting. kNotFound: nothing yet; kConnection: the peer is gone;
  /// kInvalid: it sends no frames.
  StatusOr<Frame> Next();

  int fd() const { return fd_.get(); }
  int peer() const { return peer_; }
  /// The peer's process, as the kernel says.
  int pid() const { return pid_; }

 private:
  UniqueFd fd_;
  int peer_, pid_;
  std::string read_;  // a frame's beginning
};

}  // namespace troupe::train
