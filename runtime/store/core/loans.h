// Loans: a reference that was sent, from its sending until its receiver says that it is settled.
//
// Who lends keeps the object until then: as its owner (a loan keeps an object as a borrower does),
// or as a borrower that does not drop its own registration. So a reference is never without
// somebody the owner knows of while it travels.
#pragma once

#include "runtime/store/core/turn.h"

namespace troupe::store {

/// Lends an object this process holds. Loan 0: there is nothing to lend (its owner is gone, or the
/// receiver is).
Handed LendTo(Turn& turn, const ObjectId& id, const ProcessId& receiver);
/// A loan of ours is over.
void EndLoan(Turn& turn, const ProcessId& receiver, std::uint64_t loan, bool clean);
/// Loans of ours to a process that is gone; those of objects we own are RemoveBorrower's.
void VoidLoansTo(Turn& turn, const ProcessId& receiver);

/// A loan of theirs has come: true when it counts (it did not come before, was not recalled, and
/// its lender is not gone).
bool CountLoan(Turn& turn, const ProcessId& lender, std::uint64_t loan);
/// Tells the lender that its loan is over.
void SettleLoan(Turn& turn, const ProcessId& lender, std::uint64_t loan, bool clean);
void OnRecall(Turn& turn, const ProcessId& lender, const Recall& message);

}  // namespace troupe::store
