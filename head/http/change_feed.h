// Changes of a cluster since a stream last asked.
//
// The head's side, on its loop: OnStep() after each step of the reducer, which does nothing while
// no stream is open, and otherwise counts; then it wakes the HTTP server's loop once, until that
// has collected. So a burst of a thousand steps costs one wake-up. View: one head process.
// `watched` is the one thing that both loops touch.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "head/core/head_core.h"

namespace troupe::head {

/// Lists of the API that a change may be in, and tokens, which end streams.
enum class ChangedList : std::uint8_t { kNodes, kActors, kLaunches, kGroups, kTokens };
inline constexpr std::size_t kChangedLists = 5;
const char* NameOf(ChangedList list);
/// The list that an event of the journal changes; kChangedLists: none.
std::size_t ListOf(const wire::EventBody& event);

struct Changes {
  /// How often each list has changed; only whether two of these differ means something.
  std::array<std::uint64_t, kChangedLists> versions{};
  std::uint64_t incarnation = 0;
  std::uint64_t first = 0;  // the number of the earliest event that is kept; 0: there is none
  std::vector<wire::ClusterEvent> events;  // later than the one asked for
};

class ChangeFeed {
 public:
  /// `wake` is called on the head's loop.
  ChangeFeed(const HeadCore& core, std::function<void()> wake)
      : core_(core), wake_(std::move(wake)) {}

  /// Any thread: whether there are streams.
  void SetWatched(bool watched) { watched_.store(watched, std::memory_order_relaxed); }

  /// On the head's loop, after a step. `rows` are what it wrote down.
  void OnStep(const std::vector<Row>& rows, bool may_change_nodes);
  /// On the head's loop.
  Changes Collect(std::uint64_t after);

 private:
  const HeadCore& core_;
  const std::function<void()> wake_;
  std::atomic<bool> watched_{false};
  bool woken_ = false;
  std::array<std::uint64_t, kChangedLists> versions_{};
  std::uint64_t states_ = 0;  // the nodes' states as one number
};

}  // namespace troupe::head
