// Decides whether a thread that is about to block should first poll for a few microseconds, learnt
// from the results of earlier polling. Pure: durations come from the caller, one owner, no lock.
//
//   SP-1  Off when the process may use fewer than two CPUs, or runs under a CPU quota.
//   SP-2  After kMissesMax polls in a row that found nothing, and as many long ones (SP-5), the
//         next kSkipAfterMisses waits block at once.
//   SP-3  A step (a few reads and a yield) longer than kContendedFactor budgets means that the CPU
//         is contended: the next kSkipAfterContention waits block at once.
//   SP-4  Where who blocked waits long to go on afterwards (another Python thread computes and
//         keeps the GIL for its 5 ms), blocking costs a hundred budgets: polling goes on for
//         kCostlyFactor of them, which is how long a peer takes that fell asleep meanwhile; SP-3
//         rests, and SP-2 skips kSkipWhileCostly. Else one wait that blocked would lead to the
//         next.
//   SP-5  Two ends that sleep wake each other too late for a short poll for ever where waking a
//         processor takes longer than the budget (95 us on some guests), though calls between them
//         would take a tenth if neither slept. So polls are kLongFactor budgets long after
//         kMissesMax short ones, and stay so until as many long ones miss.
#pragma once

#include "runtime/base/time.h"

namespace troupe::actors {

class SpinPolicy {
 public:
  static constexpr Duration kBudget = std::chrono::microseconds(30);
  static constexpr int kMissesMax = 8;
  static constexpr int kSkipAfterMisses = 128;
  static constexpr int kSkipWhileCostly = 4;
  static constexpr int kSkipAfterContention = 500;
  static constexpr int kContendedFactor = 4;
  static constexpr int kCostlyFactor = 4;
  static constexpr int kLongFactor = 4;
  static constexpr Duration kCostlyReturn = std::chrono::milliseconds(1);

  explicit SpinPolicy(bool allowed, Duration budget = kBudget)
      : allowed_(allowed && budget > Duration::zero()), budget_(budget) {}

  Duration budget() const {
    return costly_ ? kCostlyFactor * budget_ : long_ ? kLongFactor * budget_ : budget_;
  }
  bool allowed() const { return allowed_; }

  /// Notes whether the last blocking wait took long to go on (SP-4).
  void BlockingIsCostly(bool costly) {
    if (costly == costly_) return;
    costly_ = costly;
    long_ = false;
    skip_ = 0;
    misses_ = 0;
  }
  /// Called once per wait; true: poll for up to budget().
  bool ShouldSpin() {
    if (!allowed_) return false;
    if (skip_ == 0) return true;
    --skip_;
    return false;
  }
  /// After each step of polling: true when it took so long that polling should stop now (SP-3).
  bool Contended(Duration step) {
    if (costly_ || step <= kContendedFactor * budget_) return false;
    skip_ = kSkipAfterContention;
    misses_ = 0;
    return true;
  }
  void Hit() { misses_ = 0; }
  void Miss() {
    if (++misses_ < kMissesMax) return;
    misses_ = 0;
    const bool lengthen = !costly_ && !long_;
    long_ = lengthen;
    if (!lengthen) skip_ = costly_ ? kSkipWhileCostly : kSkipAfterMisses;
  }

 private:
  bool allowed_;
  Duration budget_;
  int misses_ = 0;
  int skip_ = 0;
  bool costly_ = false;
  bool long_ = false;
};

}  // namespace troupe::actors
