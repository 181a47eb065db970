#include "placement/fair_share.h"

#include <algorithm>
#include <utility>

namespace troupe::placement {
namespace {

constexpr const char* kShared[] = {"CPU", "GPU", "memory"};
constexpr double kSecondUs = 1e6;

}  // namespace

Parts PartsOf(const Resources& held, const Resources& total) {
  Parts parts;
  for (const char* name : kShared) {
    const std::uint64_t amount = held.Get(name);
    if (amount == 0) continue;
    // A node that is lost is no longer in the total.
    parts[name] = static_cast<double>(amount) /
                  static_cast<double>(std::max(total.Get(name), amount));
  }
  return parts;
}

void UsageWindow::Add(std::uint64_t from_us, std::uint64_t to_us, const Parts& parts) {
  if (parts.empty()) return;
  while (from_us < to_us) {
    const std::uint64_t hour = from_us / kHourUs;
    const std::uint64_t until_us = std::min(to_us, (hour + 1) * kHourUs);
    Sums& sums = hours_[hour];
    for (const auto& [name, part] : parts)
      sums[name] += part * static_cast<double>(until_us - from_us) / kSecondUs;
    from_us = until_us;
  }
}

void UsageWindow::Forget(std::uint64_t now_us) {
  const std::uint64_t now_hour = now_us / kHourUs;
  if (now_hour < kHours) return;
  hours_.erase(hours_.begin(), hours_.lower_bound(now_hour - kHours));
}

double UsageWindow::DominantShare(std::uint64_t now_us, Sums more) const {
  const std::uint64_t now_hour = now_us / kHourUs;
  for (const auto& [hour, held] : hours_) {
    if (hour + kHours < now_hour || hour > now_hour) continue;
    // The oldest hour counts only by the part inside the window.
    const bool oldest = hour + kHours == now_hour;
    const double weight =
        oldest ? 1 - static_cast<double>(now_us % kHourUs) / static_cast<double>(kHourUs) : 1;
    for (const auto& [name, seconds] : held) more[name] += weight * seconds;
  }
  double most = 0;
  for (const auto& [name, seconds] : more) most = std::max(most, seconds);
  return most / (static_cast<double>(kHours * kHourUs) / kSecondUs);
}

std::size_t FairOrder::AddLine(double share, bool passed_over, std::vector<std::uint64_t> orders) {
  lines_.push_back({share, passed_over, std::move(orders), 0});
  const std::size_t line = lines_.size() - 1;
  if (!lines_[line].orders.empty()) queue_.insert(KeyOf(line));
  return line;
}

std::optional<FairOrder::Next> FairOrder::Pick() {
  if (queue_.empty()) return std::nullopt;
  const std::size_t line = std::get<3>(*queue_.begin());
  queue_.erase(queue_.begin());
  Line& picked = lines_[line];
  const Next next{line, picked.next++};
  picked.passed_over = false;
  if (picked.next < picked.orders.size()) queue_.insert(KeyOf(line));
  return next;
}

void FairOrder::SetShare(std::size_t line, double share) {
  const bool queued = queue_.erase(KeyOf(line)) > 0;
  lines_[line].share = share;
  if (queued) queue_.insert(KeyOf(line));
}

FairOrder::Key FairOrder::KeyOf(std::size_t line) const {
  const Line& of = lines_[line];
  const std::uint64_t order = of.next < of.orders.size() ? of.orders[of.next] : 0;
  return {!of.passed_over, of.share, order, line};
}

}  // namespace troupe::placement
