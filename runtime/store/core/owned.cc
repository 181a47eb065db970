#include "runtime/store/core/owned.h"

#include <algorithm>
#include <utility>

#include "runtime/store/core/borrowed.h"
#include "runtime/store/core/loans.h"
#include "runtime/store/core/peers.h"

namespace troupe::store {
namespace {

void FreeLocation(Turn& turn, const Location& location, bool clean, bool orphan) {
  const Free free{location.slot, location.generation, clean};
  if (location.slot.maker == turn.state.self) {
    turn.effects.push_back(FreeSlot{turn.state.self, free.slot, free.generation, clean});
  } else if (orphan || !PeerOf(turn, location.slot.maker).Reachable()) {
    turn.effects.push_back(FreeAtKeeper{location.node, free.slot, free.generation});
  } else {
    Tell(turn, location.slot.maker, free);
  }
}

void TellBorrowers(Turn& turn, const ObjectId& id, OwnedObject& own) {
  for (const ProcessId& borrower : own.borrowers) {
    Tell(turn, borrower, Changed{id, AnswerFor(turn, own, borrower)});
  }
  turn.effects.push_back(Wake{id});
}

bool HasLocation(Turn& turn, const ObjectId& id, const Location& location) {
  const OwnedObject* own = FindOwned(turn, id);
  if (own == nullptr) return false;
  const auto& at = own->value.locations;
  return std::any_of(at.begin(), at.end(), [&](const Location& l) {
    return l.slot == location.slot && l.generation == location.generation;
  });
}

void NoteOrphans(Turn& turn, OwnedObject& own) {
  for (const Location& location : own.value.locations) {
    if (location.slot.maker == turn.state.self) continue;
    if (!PeerOf(turn, location.slot.maker).Reachable()) own.orphans.insert(location.slot);
  }
}

}  // namespace

ObjectId NewOwned(Turn& turn, std::uint64_t sequence, Value value,
                  std::vector<ObjectId> contained) {
  const ObjectId id{turn.state.self, sequence};
  OwnedObject& own = turn.state.owned[id.sequence];
  own.holds.handles = 1;
  own.value = std::move(value);
  own.contained = std::move(contained);
  for (const ObjectId& inner : own.contained) Contain(turn, inner);
  return id;
}

bool Fulfil(Turn& turn, const ObjectId& id, const Answer& answer, const ProcessId& maker) {
  std::vector<ObjectId> contained = TakeContained(turn, maker, answer.contained);
  OwnedObject* own = FindOwned(turn, id);
  const bool wanted =
      own != nullptr && (own->value.kind == ValueKind::kPending || Is(Mutant::kDupReply));
  if (!wanted) {
    Uncontain(turn, contained);
    for (const Location& location : answer.value.locations) {
      if (HasLocation(turn, id, location)) continue;  // a repeated reply
      FreeLocation(turn, location, /*clean=*/true, /*orphan=*/false);
    }
    return false;
  }
  Uncontain(turn, own->contained);
  own->value = answer.value;
  own->contained = std::move(contained);
  NoteOrphans(turn, *own);
  TellBorrowers(turn, id, *own);
  return true;
}

Answer AnswerFor(Turn& turn, const OwnedObject& own, const ProcessId& receiver) {
  Answer answer;
  answer.value = own.value;
  for (const ObjectId& inner : own.contained) {
    answer.contained.push_back(LendTo(turn, inner, receiver));
  }
  return answer;
}

void OnHold(Turn& turn, const ProcessId& from, const Hold& message) {
  OwnedObject* own = FindOwned(turn, message.object);
  if (own == nullptr) {
    if (message.settles != 0) EndLoan(turn, from, message.settles, /*clean=*/true);
    Tell(turn, from, Gone{message.object});
    return;
  }
  own->borrowers.insert(from);
  PeerOf(turn, from).borrows.insert(message.object.sequence);
  if (message.settles != 0) EndLoan(turn, from, message.settles, /*clean=*/true);
  Tell(turn, from, HoldOk{message.object, AnswerFor(turn, *own, from)});
}

void OnDrop(Turn& turn, const ProcessId& from, const Drop& message) {
  OwnedObject* own = FindOwned(turn, message.object);
  if (own == nullptr || own->borrowers.erase(from) == 0) return;
  PeerOf(turn, from).borrows.erase(message.object.sequence);
  own->dirty = own->dirty || !message.clean;
  turn.Touch(message.object);
}

void OnWithdraw(Turn& turn, const ProcessId& from, const Withdraw& message) {
  if (message.location.slot.maker != from || HasLocation(turn, message.object, message.location))
    return;
  FreeLocation(turn, message.location, /*clean=*/true, /*orphan=*/false);
}

void RemoveBorrower(Turn& turn, const ProcessId& who, bool taint) {
  Peer& peer = PeerOf(turn, who);
  for (const std::uint64_t sequence : peer.borrows) {
    const ObjectId id{turn.state.self, sequence};
    OwnedObject* own = FindOwned(turn, id);
    if (own == nullptr || own->borrowers.erase(who) == 0) continue;
    own->dirty = own->dirty || taint;
    turn.Touch(id);
  }
  peer.borrows.clear();
  for (const auto& [loan, id] : peer.loans_open) {
    OwnedObject* own = FindOwned(turn, id);
    if (own == nullptr || own->loans.erase({who, loan}) == 0) continue;
    own->dirty = own->dirty || taint;
    turn.Touch(id);
  }
}

void OrphanSlotsOf(Turn& turn, const ProcessId& maker) {
  for (auto& [sequence, own] : turn.state.owned) {
    for (const Location& location : own.value.locations) {
      if (location.slot.maker == maker) own.orphans.insert(location.slot);
    }
  }
}

void AddLocation(Turn& turn, const ObjectId& id, const Location& location) {
  OwnedObject* own = FindOwned(turn, id);
  if (own == nullptr || own->value.kind != ValueKind::kSegments) {
    FreeLocation(turn, location, /*clean=*/true, /*orphan=*/false);
    return;
  }
  own->value.locations.push_back(location);
  NoteOrphans(turn, *own);
}

void LoseLocationsOn(Turn& turn, const NodeId& node, std::string_view why) {
  for (auto& [sequence, own] : turn.state.owned) {
    auto& at = own.value.locations;
    const auto gone =
        std::remove_if(at.begin(), at.end(), [&](const Location& l) { return l.node == node; });
    if (gone == at.end()) continue;
    at.erase(gone, at.end());
    if (at.empty()) {
      own.value = Value::Lost(std::string(why));
      Uncontain(turn, own.contained);
    }
    TellBorrowers(turn, ObjectId{turn.state.self, sequence}, own);
  }
}

void ReleaseOwned(Turn& turn, const ObjectId& id) {
  OwnedObject* own = FindOwned(turn, id);
  if (own == nullptr || own->Held()) return;
  for (const Location& location : own->value.locations) {
    FreeLocation(turn, location, !own->dirty, own->orphans.count(location.slot) != 0);
  }
  Uncontain(turn, own->contained);
  turn.state.owned.erase(id.sequence);
  turn.effects.push_back(Forgotten{id});
}

}  // namespace troupe::store
