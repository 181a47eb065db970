// The borrower's side: a reference to another process's object.
//
//   none --lent by the owner--> LENT: readable; the loan is settled when nothing keeps it
//   none --handed on by another borrower--> REGISTERING (Hold is sent at receipt)
//   LENT --kept beyond its call, or handed on--> REGISTERING; readable on, under the owner's loan
//   REGISTERING --HoldOk--> HELD, lenders settled;  --Gone--> DEAD (lost)
//   HELD --no handle, view, containing value or loan out--> DROPPING (Drop is sent)
//   DROPPING --acknowledged--> none;  --received again--> REGISTERING (its Hold follows the Drop)
//   any --the owner is dead or struck--> DEAD: old views live on, the user lets go, nobody is
//   handed it
#pragma once

#include <string>

#include "runtime/store/core/turn.h"

namespace troupe::store {

/// A reference came from `lender`, itself to the user (a handle) or inside a value that is kept.
/// False: it is one of our own that we have forgotten.
bool ReceiveRef(Turn& turn, const ProcessId& lender, const Handed& handed, const Answer* answer,
                bool contained);
/// The references inside a value that came; each is contained from here on.
std::vector<ObjectId> TakeContained(Turn& turn, const ProcessId& lender,
                                    const std::vector<Handed>& handed);

/// Sends Hold; settles the owner's loan with it.
void Register(Turn& turn, const ObjectId& id, BorrowedObject& ref);
/// Returns true if a new view or a copy of the value may be made now.
bool MayRead(const BorrowedObject& ref);

void OnHoldOk(Turn& turn, const ProcessId& from, const HoldOk& message);
void OnGone(Turn& turn, const ProcessId& from, const Gone& message);
void OnChanged(Turn& turn, const ProcessId& from, const Changed& message);
/// The peer has applied our frames up to n.
void DropsAcknowledged(Turn& turn, const ProcessId& owner, std::uint64_t n);

/// The owner is gone: every reference to its objects is dead.
void LoseOwner(Turn& turn, const ProcessId& owner, std::string_view cause);
/// A lender is gone: it is owed nothing.
void ForgetLender(Turn& turn, const ProcessId& lender);

void ReleaseBorrowed(Turn& turn, const ObjectId& id);

}  // namespace troupe::store
