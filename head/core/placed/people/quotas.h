// Quotas: the most that a user's requests may have together.
//
//   QT-1  No reservation is asked for that would take a user over a cap on GPUs, CPUs or running
//         launches. What runs when a cap is lowered goes on.
//   QT-2  What is over a cap by itself is refused when it is submitted, and so is a launch of a
//         user who has as many waiting as the cap allows. The text names cap and use.
//   QT-3  What fits under the caps beside less of what its user has now waits, says for which cap,
//         and holds up nobody else's requests.
//   QT-4  Once a request has waited for its user's quota as long as the first in the queue waits
//         before it keeps a place, later ones of that user leave it what it needs of the quota.
//   QT-5  Only the administrator sets quotas: who comes as the user that the head runs as.
//
// Pure; view: the cluster.
#pragma once

#include <map>
#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

void OnSetQuota(Turn& turn, const Request& request, const wire::SetQuota& message);

/// Why a request of this user could never start, whatever room the cluster has; empty: it could.
std::string OverQuota(const Turn& turn, const std::string& user, const Resources& wanted);
/// Why this user may not submit another launch now; empty: they may.
std::string QueueFull(const Turn& turn, const std::string& user);

/// For people: the caps that a waiting group waits for; empty: none (QT-3).
std::string QuotaWaitedFor(const Turn& turn, const Group& group);

/// The quotas in one pass over the queue.
class QuotaPass {
 public:
  /// Returns true if the group's user may have it now. Otherwise it waits for the quota; `keeps`:
  /// groups behind it leave it the resources it needs (QT-4).
  bool Admits(const Turn& turn, Group& group, bool keeps);

 private:
  std::map<std::string, CapAmounts> kept_;  // by user: what later ones leave
};

}  // namespace troupe::head
