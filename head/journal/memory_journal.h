// A journal in memory, for tests and the simulator: durable is what Append returned for.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "head/journal/journal.h"

namespace troupe::head {

class MemoryJournal final : public Journal {
 public:
  Status Append(const std::vector<Row>& rows) override {
    if (!failure_.ok()) return failure_;
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    return absl::OkStatus();
  }
  Status Replay(const std::function<void(const wire::Event&)>& visit) override {
    for (const Row& row : rows_) visit(row.event);
    return absl::OkStatus();
  }
  /// Every later Append fails with it.
  void Break(Status failure) { failure_ = std::move(failure); }
  /// A crash that lost the last rows: what was never acknowledged.
  void Truncate(std::size_t rows) {
    if (rows < rows_.size()) rows_.resize(rows);
  }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;
  Status failure_;
};

}  // namespace troupe::head
