// A process's state of the objects it owns, the references it borrows and the processes it shares
// them with. Plain data; owned.h, borrowed.h and peers.h say who changes it and how.
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
#include "runtime/store/core/borrowed_objects.h"
#include "runtime/store/core/control_stream.h"
#include "runtime/store/core/message.h"
#include "runtime/store/core/mutant.h"
#include "runtime/store/core/received_loans.h"

namespace troupe::store {

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
  std::map<std::uint64_t, ObjectId> loans_open;  // loans we gave it
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
  BorrowedObjects borrowed;
  std::map<ProcessId, Peer> peers;
};

}  // namespace troupe::store
