#include "worker/core/log_times.h"

#include <algorithm>

namespace troupe::worker {

void LogTimes::Note(const std::string& file, std::uint64_t now_us, std::uint64_t end) {
  if (end == 0) return;
  const auto [found, fresh] = marks_.try_emplace(file);
  std::vector<Mark>& marks = found->second;
  if (!marks.empty() && marks.back().end >= end) return;
  marks.push_back({now_us, end});
  if (marks.size() > kMarksMax) Thin(&marks);
  if (!fresh) return;
  order_.push_back(file);
  if (order_.size() <= kFilesMax) return;
  marks_.erase(order_.front());
  order_.pop_front();
}

// Every second mark of the older half goes. The first one stays.
void LogTimes::Thin(std::vector<Mark>* marks) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < marks->size(); ++i) {
    if (i % 2 == 0 || i >= kMarksMax / 2) (*marks)[kept++] = (*marks)[i];
  }
  marks->resize(kept);
}

std::optional<std::uint64_t> LogTimes::EndAt(const std::string& file, std::uint64_t at_us) const {
  const auto found = marks_.find(file);
  if (found == marks_.end()) return std::nullopt;
  const std::vector<Mark>& marks = found->second;
  const auto later = std::partition_point(marks.begin(), marks.end(), [at_us](const Mark& mark) {
    return mark.at_us <= at_us;
  });
  return later == marks.begin() ? 0 : std::prev(later)->end;
}

}  // namespace troupe::worker
