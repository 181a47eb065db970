#include "runtime/store/core/borrowed.h"

#include <utility>

#include "runtime/store/core/loans.h"
#include "runtime/store/core/peers.h"

namespace troupe::store {
namespace {

// Pays lenders once their condition holds: the owner lists us, or nothing will ever be listed.
void PayLenders(Turn& turn, const ObjectId& id, BorrowedObject& ref) {
  for (const auto& [lender, loan] : ref.owed) SettleLoan(turn, lender, loan, /*clean=*/true);
  ref.owed.clear();
  for (const std::uint64_t loan : ref.owner_loans) SettleLoan(turn, id.owner, loan, /*clean=*/true);
  ref.owner_loans.clear();
}

void AdoptAnswer(Turn& turn, const ObjectId& id, BorrowedObject& ref, const Answer& answer) {
  std::vector<ObjectId> contained = TakeContained(turn, id.owner, answer.contained);
  Uncontain(turn, ref.contained);
  ref.contained = std::move(contained);
  ref.value = answer.value;
}

void Die(Turn& turn, const ObjectId& id, BorrowedObject& ref, std::string_view cause, bool lost) {
  ref.state = RefState::kDead;
  ref.cause = std::string(cause);
  ref.lost = lost;
  ref.licensed = false;
  ref.value = Value();
  Uncontain(turn, ref.contained);
  PayLenders(turn, id, ref);
  turn.effects.push_back(Wake{id});
  turn.Touch(id);
}

// A reference that was not here, or was on its way out: it begins anew.
void Begin(Turn& turn, const ObjectId& id, BorrowedObject& ref, bool from_owner,
           std::uint64_t loan) {
  const Peer& owner = PeerOf(turn, id.owner);
  if (!owner.Reachable()) {
    Die(turn, id, ref, owner.cause, /*lost=*/false);
    return;
  }
  const bool fresh = ref.state != RefState::kDropping;
  if (from_owner && loan != 0) {
    ref.licensed = true;
    ref.owner_loans.push_back(loan);
    if (fresh) {
      ref.state = RefState::kLent;
      return;
    }
  }
  Register(turn, id, ref);
}

void Continue(Turn& turn, const ProcessId& lender, const ObjectId& id, BorrowedObject& ref,
              std::uint64_t loan) {
  const bool from_owner = lender == id.owner;
  switch (ref.state) {
    case RefState::kLent:
      if (!from_owner) return Register(turn, id, ref);
      if (loan != 0) ref.owner_loans.push_back(loan);
      break;
    case RefState::kRegistering:
      if (from_owner && loan != 0) {
        ref.owner_loans.push_back(loan);
        ref.licensed = true;
      }
      break;
    case RefState::kHeld:
      if (from_owner && loan != 0) SettleLoan(turn, lender, loan, /*clean=*/true);
      PayLenders(turn, id, ref);
      break;
    case RefState::kDropping:
      return Begin(turn, id, ref, from_owner, loan);
    case RefState::kDead:
      if (from_owner && loan != 0) SettleLoan(turn, lender, loan, /*clean=*/true);
      PayLenders(turn, id, ref);
      break;
  }
}

// References inside a value that is not taken were lent all the same.
void Decline(Turn& turn, const ProcessId& lender, const Answer* answer) {
  if (answer == nullptr) return;
  std::vector<ObjectId> unwanted = TakeContained(turn, lender, answer->contained);
  Uncontain(turn, unwanted);
}

bool ReceiveOwn(Turn& turn, const ProcessId& lender, const Handed& handed, std::uint64_t loan,
                bool contained) {
  if (loan != 0) SettleLoan(turn, lender, loan, /*clean=*/true);
  OwnedObject* own = FindOwned(turn, handed.object);
  if (own == nullptr) return false;
  ++(contained ? own->holds.containers : own->holds.handles);
  return true;
}

}  // namespace

bool ReceiveRef(Turn& turn, const ProcessId& lender, const Handed& handed, const Answer* answer,
                bool contained) {
  const std::uint64_t loan = CountLoan(turn, lender, handed.loan) ? handed.loan : 0;
  if (turn.Mine(handed.object)) {
    Decline(turn, lender, answer);
    return ReceiveOwn(turn, lender, handed, loan, contained);
  }
  const auto [made, fresh] = turn.state.borrowed.Make(handed.object);
  BorrowedObject& ref = *made;
  ++(contained ? ref.holds.containers : ref.holds.handles);
  const bool from_owner = lender == handed.object.owner;
  if (!from_owner) {
    ref.lender = lender;
    if (loan != 0) ref.owed.insert({lender, loan});
    if (Is(Mutant::kSettleEarly)) PayLenders(turn, handed.object, ref);
  }
  if (fresh) {
    Begin(turn, handed.object, ref, from_owner, loan);
  } else {
    Continue(turn, lender, handed.object, ref, loan);
  }
  if (answer != nullptr && from_owner && ref.state != RefState::kDead && !ref.value.Ended()) {
    AdoptAnswer(turn, handed.object, ref, *answer);
  } else {
    Decline(turn, lender, answer);
  }
  turn.Touch(handed.object);
  return true;
}

std::vector<ObjectId> TakeContained(Turn& turn, const ProcessId& lender,
                                    const std::vector<Handed>& handed) {
  std::vector<ObjectId> taken;
  for (const Handed& inner : handed) {
    if (ReceiveRef(turn, lender, inner, /*answer=*/nullptr, /*contained=*/true)) {
      taken.push_back(inner.object);
    }
  }
  return taken;
}

void Register(Turn& turn, const ObjectId& id, BorrowedObject& ref) {
  ref.state = RefState::kRegistering;
  Hold hold{id, 0};
  if (!ref.owner_loans.empty()) hold.settles = ref.owner_loans.front();
  Tell(turn, id.owner, hold);
  for (std::size_t i = 1; i < ref.owner_loans.size(); ++i) {
    SettleLoan(turn, id.owner, ref.owner_loans[i], /*clean=*/true);
  }
  ref.owner_loans.clear();
}

bool MayRead(const BorrowedObject& ref) {
  if (ref.state == RefState::kDropping) return Is(Mutant::kMapAfterRelease);
  if (ref.holds.handles + ref.holds.containers == 0) return false;
  return ref.state == RefState::kHeld || ref.state == RefState::kLent ||
         (ref.state == RefState::kRegistering && ref.licensed);
}

void OnHoldOk(Turn& turn, const ProcessId& from, const HoldOk& message) {
  BorrowedObject* ref = FindBorrowed(turn, message.object);
  if (ref == nullptr || message.object.owner != from || ref->state != RefState::kRegistering) {
    Decline(turn, from, &message.answer);
    return;
  }
  ref->state = RefState::kHeld;
  if (!Is(Mutant::kStaleLicence)) ref->licensed = false;
  PayLenders(turn, message.object, *ref);
  AdoptAnswer(turn, message.object, *ref, message.answer);
  turn.effects.push_back(Wake{message.object});
  turn.Touch(message.object);
}

void OnGone(Turn& turn, const ProcessId& from, const Gone& message) {
  BorrowedObject* ref = FindBorrowed(turn, message.object);
  if (ref == nullptr || message.object.owner != from || ref->state != RefState::kRegistering)
    return;
  const std::string lender = ref->lender.IsNil() ? from.Short() : ref->lender.Short();
  Die(turn, message.object, *ref,
      "its owner " + from.Short() + " has freed it: process " + lender +
          ", which handed the reference on, ended before this process could register it",
      /*lost=*/true);
}

void OnChanged(Turn& turn, const ProcessId& from, const Changed& message) {
  BorrowedObject* ref = FindBorrowed(turn, message.object);
  const bool listed = ref != nullptr && message.object.owner == from &&
                      (ref->state == RefState::kHeld || ref->state == RefState::kRegistering);
  if (!listed) {
    Decline(turn, from, &message.answer);
    return;
  }
  AdoptAnswer(turn, message.object, *ref, message.answer);
  turn.effects.push_back(Wake{message.object});
}

void DropsAcknowledged(Turn& turn, const ProcessId& owner, std::uint64_t n) {
  auto& drops = PeerOf(turn, owner).drops;
  while (!drops.empty() && drops.front().first <= n) {
    const auto [frame, id] = drops.front();
    drops.pop_front();
    BorrowedObject* ref = FindBorrowed(turn, id);
    if (ref == nullptr || ref->state != RefState::kDropping || ref->drop_frame != frame) continue;
    turn.state.borrowed.Erase(id);
    turn.effects.push_back(Forgotten{id});
  }
}

void LoseOwner(Turn& turn, const ProcessId& owner, std::string_view cause) {
  if (Is(Mutant::kNoOwnerVerdict)) return;
  BorrowedObjects::OfOwner* const objects = turn.state.borrowed.Of(owner);
  if (objects == nullptr) return;
  for (auto& [sequence, ref] : *objects) {
    if (ref.state != RefState::kDead) Die(turn, {owner, sequence}, ref, cause, /*lost=*/false);
  }
}

void ForgetLender(Turn& turn, const ProcessId& lender) {
  for (auto& [owner, objects] : turn.state.borrowed.by_owner()) {
    for (auto& [sequence, ref] : objects) {
      ref.owed.erase(ref.owed.lower_bound({lender, 0}), ref.owed.upper_bound({lender, UINT64_MAX}));
    }
  }
}

void ReleaseBorrowed(Turn& turn, const ObjectId& id) {
  BorrowedObject* ref = FindBorrowed(turn, id);
  if (ref == nullptr || ref->Pinned()) return;
  const bool clean = !ref->holds.forked || Is(Mutant::kForkClean);
  switch (ref->state) {
    case RefState::kRegistering:
    case RefState::kDropping:
      return;
    case RefState::kLent:
      for (const std::uint64_t loan : ref->owner_loans) SettleLoan(turn, id.owner, loan, clean);
      break;
    case RefState::kHeld:
      ref->state = RefState::kDropping;
      if (!Is(Mutant::kStaleLicence)) ref->licensed = false;
      ref->holds.forked = false;
      if (!Is(Mutant::kMapAfterRelease) && !Is(Mutant::kStaleLicence)) ref->value = Value();
      Uncontain(turn, ref->contained);
      ref->drop_frame = Tell(turn, id.owner, Drop{id, clean});
      PeerOf(turn, id.owner).drops.emplace_back(ref->drop_frame, id);
      return;
    case RefState::kDead:
      if (!ref->lent.empty()) return;
      break;
  }
  Uncontain(turn, ref->contained);
  turn.state.borrowed.Erase(id);
  turn.effects.push_back(Forgotten{id});
}

}  // namespace troupe::store
