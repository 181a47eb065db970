#include "actors/train/core/progress.h"

#include <algorithm>

namespace troupe::train {
namespace {

constexpr std::size_t kTimesKept = 64, kTimesNeeded = 10;
constexpr Duration kLeast = std::chrono::seconds(10), kUnknown = std::chrono::seconds(60);

}  // namespace

std::vector<int> LateRanks(std::span<const RankProgress> ranks) {
  std::vector<int> late;
  if (ranks.empty()) return late;
  const auto [lowest, highest] = std::minmax_element(
      ranks.begin(), ranks.end(),
      [](const RankProgress& a, const RankProgress& b) { return a.entered < b.entered; });
  if (lowest->entered == highest->entered) return late;
  for (const auto& rank : ranks)
    if (rank.entered == lowest->entered) late.push_back(rank.rank);
  std::sort(late.begin(), late.end());
  return late;
}

void OperationTimes::Add(Duration took) {
  last_.push_back(took);
  if (last_.size() > kTimesKept) last_.pop_front();
}

Duration OperationTimes::OverdueAfter() const {
  if (last_.size() < kTimesNeeded) return kUnknown;
  std::vector<Duration> sorted(last_.begin(), last_.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return std::max(3 * *middle, kLeast);
}

void ProgressWatch::OnEntered(std::uint64_t seq, Instant now) {
  if (seq <= entered_) return;  // PR4
  entered_ = seq;
  running_.push_back({seq, now});
}

void ProgressWatch::OnFinished(std::uint64_t seq, Instant now) {
  seq = std::min(seq, entered_);
  while (!running_.empty() && running_.front().seq <= seq) {
    // An operation entered behind another one began when that one ended.
    times_.Add(now - std::max(running_.front().entered, last_end_));
    last_end_ = now;
    running_.pop_front();
  }
  finished_ = std::max(finished_, seq);
}

std::optional<Instant> ProgressWatch::next() const {
  if (running_.empty() || running_.front().seq <= told_) return std::nullopt;
  return std::max(running_.front().entered, last_end_) + times_.OverdueAfter();
}

std::optional<ProgressWatch::Overdue> ProgressWatch::OnTick(Instant now) {
  const auto due = next();
  if (!due || now < *due) return std::nullopt;
  told_ = running_.front().seq;  // PR3
  return Overdue{told_, now - running_.front().entered, times_.OverdueAfter()};
}

}  // namespace troupe::train
