// How two ranks of a group prove to each other who they are, and bytes with a deadline.
//
//   dialler:  rank and channel u32, nonce 32
//   answerer: nonce 32, HMAC-SHA256("answers", both nonces, who dials, who answers), the key being
//             the group's secret
//   dialler:  HMAC-SHA256("dials", the same)
//
// Nothing that the other end says is acted on before its proof was compared; all of it has a fixed
// size. Blocking functions take a Patience and end with it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/secret.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/base/unique_fd.h"

namespace troupe::train {

/// How long to wait, and a descriptor that ends the wait when it can be read.
struct Patience {
  const Clock& clock;
  Instant began;
  Duration most;
  int stop_fd = -1;
};

/// The purpose of a connection.
enum class Channel : std::uint8_t { kWatch = 0, kParts = 1, kMail = 2 };
inline constexpr int kChannels = 3;

/// "doing: what errno says".
std::string Why(const std::string& doing);
/// Blocks until `fd` can do this. kTimeout, kCancelled.
Status Ready(int fd, short events, const Patience& patience, const std::string& doing);

/// The dialling rank, and its purpose.
struct Dialler {
  int rank = 0;
  Channel channel = Channel::kWatch;
};

/// The dialler's part; blocks. kJoinRefused: who answers does not know the secret; kConnection,
/// kTimeout, kCancelled.
Status ProveAsDialler(int fd, Dialler me, int peer, const Secret& secret, const Patience& patience,
                      const std::string& doing);

/// The answerer's part, as bytes come: never blocks.
class Answerer {
 public:
  enum class Next { kMore, kProven, kRefused };
  Answerer(UniqueFd fd, int me) : fd_(std::move(fd)), me_(me) {}

  /// Takes what has come. kRefused: it ended, or is nobody of the group.
  Next Hear(const Secret& secret);
  /// The dialling rank, once it is proven.
  Dialler dialler() const { return dialler_; }
  int fd() const { return fd_.get(); }
  UniqueFd Take() { return std::move(fd_); }

 private:
  UniqueFd fd_;
  int me_;
  std::string got_, theirs_, mine_;  // received bytes; the nonces, once there
  Dialler dialler_;
};

}  // namespace troupe::train
