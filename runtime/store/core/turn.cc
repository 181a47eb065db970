#include "runtime/store/core/turn.h"

#include "runtime/store/core/borrowed.h"
#include "runtime/store/core/owned.h"
#include "runtime/store/core/peers.h"

namespace troupe::store {

OwnedObject* FindOwned(Turn& turn, const ObjectId& id) {
  if (!turn.Mine(id)) return nullptr;
  const auto found = turn.state.owned.find(id.sequence);
  return found == turn.state.owned.end() ? nullptr : &found->second;
}

BorrowedObject* FindBorrowed(Turn& turn, const ObjectId& id) {
  return turn.state.borrowed.Find(id);
}

void Contain(Turn& turn, const ObjectId& id) {
  if (OwnedObject* own = FindOwned(turn, id)) {
    ++own->holds.containers;
  } else if (BorrowedObject* ref = FindBorrowed(turn, id)) {
    ++ref->holds.containers;
  }
}

void Uncontain(Turn& turn, std::vector<ObjectId>& contained) {
  for (const ObjectId& id : contained) {
    OwnedObject* own = FindOwned(turn, id);
    BorrowedObject* ref = own == nullptr ? FindBorrowed(turn, id) : nullptr;
    Holds* holds = own != nullptr ? &own->holds : ref != nullptr ? &ref->holds : nullptr;
    if (holds == nullptr || holds->containers == 0) continue;
    --holds->containers;
    turn.Touch(id);
  }
  contained.clear();
}

void Finish(Turn& turn) {
  while (!turn.touched.empty() || !turn.strikes.empty()) {
    if (turn.touched.empty()) {
      const auto [peer, why] = std::move(turn.strikes.back());
      turn.strikes.pop_back();
      Strike(turn, peer, why);
      continue;
    }
    const ObjectId id = turn.touched.back();
    turn.touched.pop_back();
    if (turn.Mine(id)) {
      ReleaseOwned(turn, id);
    } else {
      ReleaseBorrowed(turn, id);
    }
  }
}

}  // namespace troupe::store
