#include "runtime/store/core/loans.h"

#include "runtime/store/core/borrowed.h"
#include "runtime/store/core/peers.h"

namespace troupe::store {

Handed LendTo(Turn& turn, const ObjectId& id, const ProcessId& receiver) {
  Peer& peer = PeerOf(turn, receiver);
  if (!peer.Reachable()) return {id, 0};
  OwnedObject* own = FindOwned(turn, id);
  BorrowedObject* ref = own == nullptr ? FindBorrowed(turn, id) : nullptr;
  if (ref != nullptr && ref->state == RefState::kLent) Register(turn, id, *ref);
  const bool lends =
      own != nullptr ||
      (ref != nullptr && (ref->state == RefState::kRegistering || ref->state == RefState::kHeld));
  if (!lends) return {id, 0};
  const std::uint64_t loan = ++peer.loans_given;
  peer.loans_open[loan] = id;
  if (own != nullptr) {
    own->loans.insert({receiver, loan});
  } else {
    ref->lent.insert({receiver, loan});
  }
  return {id, loan};
}

void EndLoan(Turn& turn, const ProcessId& receiver, std::uint64_t loan, bool clean) {
  Peer& peer = PeerOf(turn, receiver);
  const auto open = peer.loans_open.find(loan);
  if (open == peer.loans_open.end()) return;
  const ObjectId id = open->second;
  peer.loans_open.erase(open);
  if (OwnedObject* own = FindOwned(turn, id)) {
    own->loans.erase({receiver, loan});
    own->dirty = own->dirty || !clean;
  } else if (BorrowedObject* ref = FindBorrowed(turn, id)) {
    ref->lent.erase({receiver, loan});
  }
  turn.Touch(id);
}

void VoidLoansTo(Turn& turn, const ProcessId& receiver) {
  Peer& peer = PeerOf(turn, receiver);
  for (auto at = peer.loans_open.begin(); at != peer.loans_open.end();) {
    if (turn.Mine(at->second)) {
      ++at;
      continue;
    }
    if (BorrowedObject* ref = FindBorrowed(turn, at->second)) {
      ref->lent.erase({receiver, at->first});
      turn.Touch(at->second);
    }
    at = peer.loans_open.erase(at);
  }
}

bool CountLoan(Turn& turn, const ProcessId& lender, std::uint64_t loan) {
  if (loan == 0) return false;
  Peer& peer = PeerOf(turn, lender);
  if (peer.struck) return false;
  const auto added = peer.received.Add(loan);
  if (added == ReceivedLoans::Added::kTooFar) {
    turn.strikes.emplace_back(lender, "it leaves gaps in the numbers of its loans");
    return false;
  }
  return added == ReceivedLoans::Added::kNew && !peer.dead_since;
}

void SettleLoan(Turn& turn, const ProcessId& lender, std::uint64_t loan, bool clean) {
  Tell(turn, lender, Settle{loan, clean});
}

void OnRecall(Turn& turn, const ProcessId& lender, const Recall& message) {
  const bool came = !CountLoan(turn, lender, message.loan);
  if (came && !Is(Mutant::kRecallClean)) return;  // settled in its own time
  SettleLoan(turn, lender, message.loan, /*clean=*/true);
}

}  // namespace troupe::store
