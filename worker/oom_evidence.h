// Attribution of kills for want of memory to processes: the kernel counts kills of a control group
// and names nobody.
//
// View: one node; pure. A process that ended by a SIGKILL which nobody here sent takes one kill
// that has not been told of yet; two that are killed together have one each. Kills of processes
// that this node is not told of, children of its processes, are left over: Settle() writes them off
// after a while, so that they are not taken for what is killed by hand later.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "runtime/os/cgroup.h"

namespace troupe::worker {

class OomEvidence {
 public:
  explicit OomEvidence(const os::OomKills& now) : told_(now.count), seen_(now.count) {}

  /// The file that counts a kill which nobody has taken, or "". It is the caller's then.
  std::string Take(const os::OomKills& now) {
    if (now.count <= told_) return "";
    ++told_;
    return now.source;
  }
  /// Kills that nobody has taken; for a process that was not killed itself, but may have lost a
  /// child.
  std::uint64_t left(const os::OomKills& now) const {
    return now.count - std::min(now.count, told_);
  }
  /// To be called now and then: what was counted at the call before and is not taken yet is written
  /// off.
  void Settle(const os::OomKills& now) {
    told_ = std::max(told_, seen_);
    seen_ = now.count;
  }

 private:
  std::uint64_t told_;
  std::uint64_t seen_;
};

}  // namespace troupe::worker
