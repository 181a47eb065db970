// A borrowed object as this process knows it. Plain data; borrowed.h changes it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/store/core/message.h"
#include "runtime/store/core/mutant.h"

namespace troupe::store {

/// A loan given: to whom, under which number of ours. A loan received: from whom, its number of
/// theirs.
using LoanKey = std::pair<ProcessId, std::uint64_t>;

/// Why this process itself keeps an object.
struct Holds {
  std::uint64_t handles = 0;     // references in the user's hands
  std::uint64_t views = 0;       // arrays over a mapping of it
  std::uint64_t containers = 0;  // values kept here that it lies inside of
  bool forked = false;           // a child was forked while a view lived

  bool Any() const {
    return handles != 0 || containers != 0 || (views != 0 && !Is(Mutant::kViewUncounted));
  }
};

enum class RefState : std::uint8_t {
  kLent,         // readable under the owner's loan while the call that brought it runs
  kRegistering,  // Hold is sent
  kHeld,         // the owner lists us
  kDropping,     // Drop is sent
  kDead,         // the owner is gone, or has forgotten the object; stays until the user lets go
};

/// A reference to another process's object.
struct BorrowedObject {
  RefState state = RefState::kRegistering;
  Holds holds;
  bool licensed = false;                   // an open loan of the owner's allows reading
  std::vector<std::uint64_t> owner_loans;  // the owner's, to settle
  std::set<LoanKey> owed;                  // other lenders', settled when the owner has answered
  std::set<LoanKey> lent;                  // ours to others
  std::uint64_t drop_frame = 0;
  Value value;
  std::vector<ObjectId> contained;
  ProcessId lender;  // process that handed it to us last; named when it is lost
  std::string cause;  // kDead: why
  bool lost = false;  // kDead: the owner lives, the object does not

  bool Pinned() const { return holds.Any() || (!lent.empty() && !Is(Mutant::kNoLoanPin)); }
};

}  // namespace troupe::store
