// A journal in memory, for tests and the simulator: durable is what Append returned for.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "head/journal/journal.h"

namespace troupe::head {

class MemoryJournal final : public Journal {
 public:
  Status Append(const std::vector<Row>& rows) override {
    if (!failure_.ok()) {
      const Status failure = failure_;
      if (on_refused) on_refused();
      if (IsDiskFull(failure)) failure_ = absl::OkStatus();  // there is room the next time
      return failure;
    }
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    return absl::OkStatus();
  }
  Status Snapshot(std::uint64_t sequence, const std::vector<wire::Event>& events) override {
    if (!failure_.ok()) return failure_;
    snapshot_.clear();
    for (const wire::Event& event : events) snapshot_.push_back({sequence, event});
    const auto after = [&](const Row& row) { return row.sequence > sequence; };
    rows_.erase(rows_.begin(), std::find_if(rows_.begin(), rows_.end(), after));
    return absl::OkStatus();
  }
  Status Replay(const std::function<void(const Row&)>& visit) override {
    for (const Row& row : snapshot_) visit(row);
    for (const Row& row : rows_) visit(row);
    return absl::OkStatus();
  }
  /// Every later Append fails with it; a full disk does so once.
  void Break(Status failure) { failure_ = std::move(failure); }
  /// A crash that lost the last rows: what was never acknowledged.
  void Truncate(std::size_t rows) {
    if (rows < rows_.size()) rows_.resize(rows);
  }
  const std::vector<Row>& rows() const { return rows_; }
  std::function<void()> on_refused;  // called within an Append that fails

 private:
  std::vector<Row> snapshot_;
  std::vector<Row> rows_;
  Status failure_;
};

}  // namespace troupe::head
