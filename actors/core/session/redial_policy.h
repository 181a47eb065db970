// How long, and how fast, a lost call connection is made anew. Pure.
//
//   RD-1  It is tried for `limit` from the loss; a connection that ends before its welcome, having
//         lasted less than `limit`, counts as the same loss.
//   RD-2  A welcome, or a connection that lasted, begins anew: a peer that is busy is not a lost
//         one.
//   RD-3  Connections that keep ending are followed by pauses that double, kPauseMax at most.
//   RD-4  On this host there is one try: a process that cannot be reached at once is gone.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "runtime/base/time.h"

namespace troupe::actors {

class RedialPolicy {
 public:
  static constexpr Duration kFirstPause = std::chrono::milliseconds(20);
  static constexpr Duration kPauseMax = std::chrono::milliseconds(640);

  RedialPolicy(Duration limit, bool once) : limit_(limit), once_(once) {}

  void Connected(Instant now) { connected_ = now; }
  void Welcomed() {
    until_.reset();
    tries_ = 0;
  }

  struct Step {
    Duration pause{};  // before dialling
    Duration limit{};  // how long dialling may take, after the pause
  };
  /// The connection is gone: what to do, or nullopt: give up.
  std::optional<Step> Lost(Instant now) {
    if (until_ && connected_ && now - *connected_ >= limit_ && !once_) Welcomed();
    if (!until_) until_ = now + limit_;
    Step step;
    if (tries_ > 0) {
      step.pause = std::min(kFirstPause * (1 << std::min(tries_ - 1, 5)), Duration(kPauseMax));
    }
    step.limit = *until_ - now - step.pause;
    if (step.limit <= Duration::zero() || (once_ && tries_ > 0)) return std::nullopt;
    ++tries_;
    return step;
  }

 private:
  Duration limit_;
  bool once_;
  int tries_ = 0;
  std::optional<Instant> until_;
  std::optional<Instant> connected_;
};

}  // namespace troupe::actors
