// Waits for the marker of a launch, so that no request costs more for what others wait for.
//
//   WA-1  Adding, ending and running out cost the logarithm of all waits, each; the end of a peer
//         costs what that one waits for.
//   WA-2  A peer (a session, or a process behind a worker's) leaves no more than kWaitsMax waiting:
//         one more is refused.
//
// Pure; a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "head/core/machine/io.h"

namespace troupe::head {

struct Waiter {
  Route route;
  std::uint64_t request = 0;
  LaunchId launch;
  Instant due{};  // then it waits no longer; zero: it waits for ever
};

class Waits {
 public:
  static constexpr std::size_t kWaitsMax = 10'000;

  /// Adds one that waits, and returns its number, by which Take ends it; nullopt: this peer leaves
  /// too many waiting.
  std::optional<std::uint64_t> Add(const Waiter& waiter);
  std::optional<Waiter> Take(std::uint64_t number);
  /// Takes out all that wait for this launch, in the order in which they came.
  std::vector<Waiter> TakeOf(const LaunchId& launch);
  /// Takes out all whose time is over.
  std::vector<Waiter> TakeDue(Instant now);
  /// When the next one's time is over.
  std::optional<Instant> NextDue() const;
  /// Drops the waits of a process behind a session; those of the whole session where `process` is
  /// null.
  void Drop(const SessionId& session, const ProcessId* process);
  std::size_t size() const { return waiters_.size(); }

  Instant armed{};  // for the next one; zero: no timer is

 private:
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Waiter> waiters_;
  std::set<std::pair<LaunchId, std::uint64_t>> by_launch_;
  std::map<Route, std::set<std::uint64_t>> by_route_;
  std::set<std::pair<Instant, std::uint64_t>> by_due_;
};

}  // namespace troupe::head
