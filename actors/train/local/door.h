// The rendezvous of a group's ranks.
//
// Each rank opens a door and publishes its card in the launch's store. Ranks of its node come by an
// abstract Unix socket with a random name; those of other nodes, where the group has several, by
// TCP at an address that the launch gives. A rank dials those below it and is dialled by those
// above, once for each channel, and both ends prove themselves (handshake.h). Processes of another
// user are not listened to at the Unix socket.
//
//   DO1  Strangers hold up nobody: all that come are heard at once, each for kStrangerMax at most,
//        and of more than kStrangersMax the oldest is turned away.
//   DO2  A rank comes once for each channel; a second one ends the forming.
//
// Blocking functions take a Patience and end with it.
#pragma once

#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "actors/train/local/handshake.h"

namespace troupe::train {

inline constexpr Duration kStrangerMax = std::chrono::seconds(10);
inline constexpr std::size_t kStrangersMax = 256;

/// The address of a rank; travels through the launch's store.
struct Card {
  std::string host;     // ranks with the same one share memory: os::BootId, or what names the node
  std::string door;     // the Unix socket's name
  std::string name;     // the host's, for people
  std::string address;  // "10.0.0.1:4711"; empty where no other node is to come

  std::string Text() const;
  /// kInvalid for what is no card.
  static StatusOr<Card> Parse(std::string_view text);
};

class Door {
 public:
  /// Listens to this node under a random name. `host`: what names the node, os::BootId where empty.
  /// Returns at once.
  static StatusOr<Door> Open(std::string host = {});
  /// Listens at a port of this address too; the card then has it. kConnection: it is not this
  /// machine's.
  Status Listen(const std::string& address);
  const Card& card() const { return card_; }
  int fd() const { return fd_.get(); }
  int tcp_fd() const { return tcp_.get(); }

 private:
  UniqueFd fd_, tcp_;
  Card card_;
};

/// A connection between two ranks, both proven.
struct Met {
  UniqueFd fd;
  int peer = 0;
  Channel channel = Channel::kWatch;
  int pid = 0;  // the peer's process as the kernel says; 0: it is on another node
};

/// Dials a rank and proves both ends. kConnection, kJoinRefused, kTimeout, kCancelled.
StatusOr<Met> Dial(const Card& card, bool is_here, int peer, Dialler me, const Secret& secret,
                   const Patience& patience);

/// The connections accepted by a door.
class Guests {
 public:
  /// Both must outlive it.
  Guests(const Door& door, int me, const Secret& secret) : door_(door), me_(me), secret_(secret) {}
  /// Blocks until one has come and proved itself.
  StatusOr<Met> Next(const Patience& patience);

 private:
  struct Guest {
    Answerer answerer;
    Instant until;
    int pid;
  };
  Status Admit(int door, bool is_unix, Instant now);
  StatusOr<Met> Hear(const Patience& patience);

  const Door& door_;
  const int me_;
  const Secret& secret_;
  std::list<Guest> guests_;  // in the order in which they came
};

}  // namespace troupe::train
