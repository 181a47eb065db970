// When the background thread of a process should do I/O. Pure.
//
// Callers' own threads do the I/O of their calls, because a hand-over between threads costs more
// than the call. The background thread is for what no caller does: a future to complete, frames
// nobody flushes, a deadline, an actor that hangs up while nobody waits.
//
//   WP-1  While callers keep using the gate it only ticks: a thread in poll would be woken by every
//         reply that a caller is about to read itself.
//   WP-2  It watches the sockets once the gate was vacant for a whole tick, or at once when a
//         future waits for a reply.
//   WP-3  While one thread leads for long (it blocks in get), it parks: no ticks, no idle CPU. Who
//         leaves the gate vacant, or gives it work, wakes it.
//   WP-4  Work given while it watches or parks must wake it; while it ticks it need not, unless the
//         work cannot wait a tick.
#pragma once

#include <cstdint>

#include "runtime/base/time.h"

namespace troupe::actors {

class WatchPolicy {
 public:
  static constexpr Duration kTick = std::chrono::milliseconds(1);
  static constexpr int kTicksToPark = 8;

  enum class Step { kTick, kPark, kWatch };
  struct View {
    std::uint64_t turns = 0;    // the leader gate's count
    bool vacant = true;         // the gate
    bool futures_wait = false;  // a future waits for a reply
    bool stranded = false;      // frames that nobody flushed yet
  };

  /// Returns the next step. Called after every wake-up, under the gate's mutex.
  Step Next(const View& view) {
    const bool same = view.turns == last_turns_;
    last_turns_ = view.turns;
    if (!view.vacant) {
      quiet_ticks_ = same ? quiet_ticks_ + 1 : 0;
      return quiet_ticks_ >= kTicksToPark && !view.stranded ? Step::kPark : Step::kTick;
    }
    quiet_ticks_ = 0;
    return same || view.futures_wait ? Step::kWatch : Step::kTick;
  }

 private:
  std::uint64_t last_turns_ = ~std::uint64_t{0};
  int quiet_ticks_ = 0;
};

}  // namespace troupe::actors
