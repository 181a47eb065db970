// All that a rank has to ranks of other nodes: with each of them a connection for the parts of
// collectives and one for messages.
//
// Messages are moved by a thread. So are parts where ranks share a node, for a rank that waits for
// its neighbours must not hold up other nodes; a rank that is alone waits for nothing else and
// moves them itself, which saves two changes of threads for each part.
#pragma once

#include <memory>
#include <vector>

#include "actors/train/local/door.h"
#include "actors/train/local/mail_stream.h"
#include "actors/train/local/part_stream.h"
#include "actors/train/local/shared_area.h"
#include "actors/train/local/wire.h"

namespace troupe::train {

class Connections {
 public:
  /// Begins to move bytes. `area` must outlive it: whoever waits in it is woken. `stop_fd` can be
  /// read once the area is stopped.
  Connections(std::vector<Met> met, int group_size, SharedArea& area, int stop_fd);

  /// The streams to and from a rank of another node.
  PartStream& parts(int rank) const { return *parts_[static_cast<std::size_t>(rank)]; }
  MailStream& mail(int rank) const { return *mails_[static_cast<std::size_t>(rank)]; }
  /// Blocks until `ready()`, which only reads what the parts' connections have done.
  template <class Ready>
  Woken Await(const Ready& ready, const Clock& clock, Instant until) {
    if (area_.size() > 1) return area_.Await(ready, clock, until);
    for (;;) {
      if (area_.stopped()) return Woken::kStopped;
      if (ready()) return Woken::kReady;
      const Duration left = until == Instant::max() ? kForever : until - clock.Now();
      if (left <= Duration::zero()) return Woken::kLate;
      MoveWithin(left);
    }
  }
  /// Drops what is outstanding; the others see that nothing more comes. Any thread, at once.
  void EndAll();
  /// A rank that cannot be reached, or is on this node, where there is nothing to end.
  void End(int rank);

 private:
  static constexpr Duration kForever = std::chrono::hours(24);
  /// Moves parts once a connection can, or not at all after so long.
  void MoveWithin(Duration most);

  SharedArea& area_;
  const int stop_fd_;
  Waker waker_;
  std::vector<std::unique_ptr<PartStream>> parts_;  // by rank; null for those of this node
  std::vector<std::unique_ptr<MailStream>> mails_;
  std::unique_ptr<Wire> wire_;
};

}  // namespace troupe::train
