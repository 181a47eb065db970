// What one process knows of the objects it owns, the references it borrows and the processes it
// shares them with. Plain data; owned.h, borrowed.h and peers.h say who changes it and how.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/time.h"
#include "runtime/store/core/control_stream.h"
#include "runtime/store/core/message.h"
#include "runtime/store/core/mutant.h"
#include "runtime/store/core/received_loans.h"

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

/// An object this process owns, from its first export (or as a call's result to come) to the last
/// hold.
struct OwnedObject {
  Value value;
  std::vector<ObjectId> contained;
  Holds holds;
  std::set<ProcessId> borrowers;
  std::set<LoanKey> loans;
  std::set<SlotId> orphans;  // slots whose maker is gone: freed at their node's worker
  bool dirty = false;        // somebody who may have read it left without a clean release

  bool Held() const { return holds.Any() || !borrowers.empty() || !loans.empty(); }
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
  ProcessId lender;   // who handed it to us last; named when it is lost
  std::string cause;  // kDead: why
  bool lost = false;  // kDead: the owner lives, the object does not

  bool Pinned() const { return holds.Any() || (!lent.empty() && !Is(Mutant::kNoLoanPin)); }
};

/// Another process, from the first word between us to its burial.
struct Peer {
  ControlStream stream;
  std::uint64_t connection = 0;  // the latest; a higher number fences a lower
  bool connected = false;
  std::optional<Instant> unreachable_since;  // no connection, and something depends on one
  bool struck = false;
  std::optional<Instant> dead_since;
  std::string cause;
  std::uint64_t loans_given = 0;
  std::map<std::uint64_t, ObjectId> loans_open;  // of those we gave it
  ReceivedLoans received;
  std::set<std::uint64_t> borrows;                       // objects of ours that list it
  std::deque<std::pair<std::uint64_t, ObjectId>> drops;  // (frame, object), until acknowledged

  bool Reachable() const { return !struck && !dead_since; }
};

struct Options {
  Duration resume_window = std::chrono::seconds(30);
  /// A dead borrower stays listed this long after the verdict: who it handed the reference to may
  /// still be on the way to us.
  Duration burial_delay = std::chrono::seconds(1);
  /// Frames kept for a peer that does not acknowledge; beyond them the pair is struck.
  std::size_t frames_kept_max = 1u << 20;
};

struct State {
  ProcessId self;
  Options options;
  std::uint64_t sequence = 0;
  std::map<std::uint64_t, OwnedObject> owned;
  std::map<ObjectId, BorrowedObject> borrowed;
  std::map<ProcessId, Peer> peers;
};

}  // namespace troupe::store
