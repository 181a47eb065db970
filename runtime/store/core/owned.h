// The owner's side: what it decides about the objects it owns.
//
//   PENDING --Fulfil--> READY (inline, or locations) or FAILED (an error is a value)
//   READY --the last location is gone--> LOST
//   any --no own handle, view, containing value, borrower or loan--> erased, its slots freed
#pragma once

#include "runtime/store/core/turn.h"

namespace troupe::store {

ObjectId NewOwned(Turn& turn, std::uint64_t sequence, Value value, std::vector<ObjectId> contained);
/// The reply to a call: its value, and the references in it, lent by `maker`. False: it was
/// answered before, or nobody wants it any more; what came is freed.
bool Fulfil(Turn& turn, const ObjectId& id, const Answer& answer, const ProcessId& maker);

/// The value as it is sent to `receiver`, the references inside lent to it.
Answer AnswerFor(Turn& turn, const OwnedObject& own, const ProcessId& receiver);

void OnHold(Turn& turn, const ProcessId& from, const Hold& message);
void OnDrop(Turn& turn, const ProcessId& from, const Drop& message);
void OnWithdraw(Turn& turn, const ProcessId& from, const Withdraw& message);

/// A process that was listed, or had loans, is gone; `taint`: it may have left readers behind.
void RemoveBorrower(Turn& turn, const ProcessId& who, bool taint);
/// Slots made by a process that is gone are freed at their node's worker instead.
void OrphanSlotsOf(Turn& turn, const ProcessId& maker);

void AddLocation(Turn& turn, const ObjectId& id, const Location& location);
void LoseLocationsOn(Turn& turn, const NodeId& node, std::string_view why);

void ReleaseOwned(Turn& turn, const ObjectId& id);

}  // namespace troupe::store
