// Measures the work of the head's shell: steps of the reducer, commits of the journal.
//
// Pure; on the head's loop.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "head/http/histogram.h"

namespace troupe::head {

struct ShellFigures {
  Histogram reducer_step;
  Histogram journal_commit;
};

class ShellWatch {
 public:
  void OnStep(Duration length) { figures_.reducer_step.Add(length); }
  /// A batch whose last event is `sequence` went to the journal.
  void OnSubmitted(std::uint64_t sequence, Instant now) { commits_.emplace_back(sequence, now); }
  /// All events up to `sequence` are durable.
  void OnDurable(std::uint64_t sequence, Instant now) {
    for (; !commits_.empty() && commits_.front().first <= sequence; commits_.pop_front())
      figures_.journal_commit.Add(now - commits_.front().second);
  }
  const ShellFigures& figures() const { return figures_; }

 private:
  ShellFigures figures_;
  std::deque<std::pair<std::uint64_t, Instant>> commits_;  // under way: the last event, since when
};

}  // namespace troupe::head
