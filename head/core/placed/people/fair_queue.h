// The order in which a pass over the queue tries those that wait: the highest priority first; at
// one priority by the fair shares of their users (placement/fair_share.h, FS-1 and FS-2), and the
// requests of one user in order of submission.
//
//   FS-3  What a user is granted counts at once as if it were held for an hour more, so that of two
//         users who begin together neither gets all there is.
//
// Pure; view: the cluster.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "head/core/machine/turn.h"
#include "placement/fair_share.h"

namespace troupe::head {

class FairQueue {
 public:
  /// `keys` in their order; all of them wait for a place in the cluster.
  FairQueue(Turn& turn, std::vector<QueueKey> keys) : turn_(turn), keys_(std::move(keys)) {}

  /// The next to be tried. What was granted to the one before counts already.
  std::optional<GroupId> Next();

 private:
  // The requests of one user at one priority.
  struct Line {
    std::string user;
    std::vector<GroupId> groups;
    std::vector<std::uint64_t> orders;
  };
  void BeginPriority();
  void AddLines();
  void NoteGrant();

  Turn& turn_;
  std::vector<QueueKey> keys_;
  std::size_t next_key_ = 0;
  std::vector<Line> lines_;  // at the priority that is gone over now
  placement::FairOrder order_;
  std::optional<placement::FairOrder::Next> picked_;
};

/// For people, of a group that waits beside requests of other users: what each has held. Empty:
/// nobody else waits at its priority.
std::string SharesText(Turn& turn, const Group& group);

}  // namespace troupe::head
