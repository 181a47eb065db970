#include "head/core/machine/waits.h"

namespace troupe::head {

std::optional<std::uint64_t> Waits::Add(const Waiter& waiter) {
  std::set<std::uint64_t>& of_peer = by_route_[waiter.route];
  if (of_peer.size() >= kWaitsMax) return std::nullopt;
  const std::uint64_t number = ++last_;
  of_peer.insert(number);
  waiters_.emplace(number, waiter);
  by_launch_.emplace(waiter.launch, number);
  if (waiter.due != Instant{}) by_due_.emplace(waiter.due, number);
  return number;
}

std::optional<Waiter> Waits::Take(std::uint64_t number) {
  const auto found = waiters_.find(number);
  if (found == waiters_.end()) return std::nullopt;
  const Waiter waiter = found->second;
  waiters_.erase(found);
  by_launch_.erase({waiter.launch, number});
  by_due_.erase({waiter.due, number});
  const auto of_peer = by_route_.find(waiter.route);
  of_peer->second.erase(number);
  if (of_peer->second.empty()) by_route_.erase(of_peer);
  return waiter;
}

std::vector<Waiter> Waits::TakeOf(const LaunchId& launch) {
  std::vector<Waiter> taken;
  for (auto each = by_launch_.lower_bound({launch, 0});
       each != by_launch_.end() && each->first == launch;) {
    const std::uint64_t number = (each++)->second;
    if (auto waiter = Take(number)) taken.push_back(*waiter);
  }
  return taken;
}

std::vector<Waiter> Waits::TakeDue(Instant now) {
  std::vector<Waiter> taken;
  while (!by_due_.empty() && by_due_.begin()->first <= now) {
    if (auto waiter = Take(by_due_.begin()->second)) taken.push_back(*waiter);
  }
  return taken;
}

std::optional<Instant> Waits::NextDue() const {
  if (by_due_.empty()) return std::nullopt;
  return by_due_.begin()->first;
}

void Waits::Drop(const SessionId& session, const ProcessId* process) {
  const Route first{session, process == nullptr ? ProcessId() : *process};
  std::vector<std::uint64_t> gone;
  for (auto each = by_route_.lower_bound(first);
       each != by_route_.end() && each->first.session == session; ++each) {
    if (process != nullptr && each->first.process != *process) break;
    gone.insert(gone.end(), each->second.begin(), each->second.end());
  }
  for (const std::uint64_t number : gone) Take(number);
}

}  // namespace troupe::head
