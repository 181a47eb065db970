// Measures the work of the head's shell: steps of the reducer, commits of the journal; and counts
// what happens in the cluster.
//
// Pure; on the head's loop.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "head/http/histogram.h"
#include "head/http/tally.h"

namespace troupe::head {

struct ShellFigures {
  Histogram reducer_step;
  Histogram journal_commit;
  Histogram marker_commit;
  ClusterCounts cluster;
};

class ShellWatch {
 public:
  /// A step of the reducer wrote `rows` down and left `state`.
  void OnStep(Duration length, const std::vector<Row>& rows, const State& state, Instant now) {
    figures_.reducer_step.Add(length);
    if (rows.empty()) return;
    tally_.OnStep(rows, state);
    for (const Row& row : rows) {
      if (wire::Holds<wire::MarkerWritten>(row.event.body))
        markers_.emplace_back(row.sequence, now);
    }
  }
  /// A batch whose last event is `sequence` went to the journal.
  void OnSubmitted(std::uint64_t sequence, Instant now) { commits_.emplace_back(sequence, now); }
  /// All events up to `sequence` are durable.
  void OnDurable(std::uint64_t sequence, Instant now) {
    Settle(commits_, sequence, now, figures_.journal_commit);
    Settle(markers_, sequence, now, figures_.marker_commit);
  }
  ShellFigures figures() const {
    ShellFigures figures = figures_;
    figures.cluster = tally_.counts();
    return figures;
  }

 private:
  using Pending =
      std::deque<std::pair<std::uint64_t, Instant>>;  // under way: the last event, since
  static void Settle(Pending& pending, std::uint64_t sequence, Instant now, Histogram& lengths) {
    for (; !pending.empty() && pending.front().first <= sequence; pending.pop_front())
      lengths.Add(now - pending.front().second);
  }

  ShellFigures figures_;  // without `cluster`
  Tally tally_;
  Pending commits_;
  Pending markers_;
};

}  // namespace troupe::head
