// All that a rank has to ranks of other nodes: with each of them a connection for the parts of
// collectives and one for messages, and the thread that moves them.
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
  /// Begins to move bytes. `area` must outlive it: whoever waits in it is woken.
  Connections(std::vector<Met> met, int group_size, SharedArea& area);

  /// Of a rank of another node.
  PartStream& parts(int rank) const { return *parts_[static_cast<std::size_t>(rank)]; }
  MailStream& mail(int rank) const { return *mails_[static_cast<std::size_t>(rank)]; }
  /// Drops what is outstanding; the others see that nothing more comes. Any thread, at once.
  void EndAll();
  /// A rank that cannot be reached, or is on this node, where there is nothing to end.
  void End(int rank);

 private:
  Waker waker_;
  std::vector<std::unique_ptr<PartStream>> parts_;  // by rank; null for those of this node
  std::vector<std::unique_ptr<MailStream>> mails_;
  std::unique_ptr<Wire> wire_;
};

}  // namespace troupe::train
