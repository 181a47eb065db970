// Late ranks: each rank's operations counted at its entry and at its end, how long they usually
// take, and which ranks have not come to operations that others wait in. Pure.
//
//   PR1  A rank is late where its last entered operation is the lowest and a rank is further.
//   PR2  An operation is overdue after three times the median of those before, 10 s at least; 60 s
//        while fewer than ten are known.
//   PR3  An overdue operation is told of once.
//   PR4  Numbers never go back, and what is finished was entered.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/time.h"

namespace troupe::train {

struct RankProgress {
  int rank = 0;
  std::uint64_t entered = 0, finished = 0;  // the last operation's number, from 1; 0: none
};

/// PR1: the late ranks, in order; none where all have entered the same.
std::vector<int> LateRanks(std::span<const RankProgress> ranks);

/// How long operations take, of the last 64.
class OperationTimes {
 public:
  void Add(Duration took);
  /// PR2: how long one may take before it is overdue.
  Duration OverdueAfter() const;

 private:
  std::deque<Duration> last_;
};

/// The operations of one rank.
class ProgressWatch {
 public:
  struct Overdue {
    std::uint64_t seq;
    Duration since;  // time since its entry
    Duration most;   // how long it might have taken
  };

  void OnEntered(std::uint64_t seq, Instant now);
  /// All up to `seq` are finished.
  void OnFinished(std::uint64_t seq, Instant now);
  /// The oldest operation that is overdue and was not told of; look again at `next()`.
  std::optional<Overdue> OnTick(Instant now);
  std::optional<Instant> next() const;
  RankProgress progress(int rank) const { return {rank, entered_, finished_}; }

 private:
  struct Running {
    std::uint64_t seq;
    Instant entered;
  };
  std::deque<Running> running_;  // as many as may be outstanding
  OperationTimes times_;
  std::uint64_t entered_ = 0, finished_ = 0, told_ = 0;
  Instant last_end_{};
};

}  // namespace troupe::train
