#include "runtime/store/core/references.h"

#include "runtime/store/core/borrowed.h"
#include "runtime/store/core/loans.h"
#include "runtime/store/core/owned.h"
#include "runtime/store/core/turn.h"

namespace troupe::store {

// A turn, ended when the function that began it returns.
class References::Scope {
 public:
  Scope(References& table, Instant now) : turn_{table.state_, table.effects_, now, {}, {}} {}
  ~Scope() { Finish(turn_); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  Turn& operator*() { return turn_; }
  Turn* operator->() { return &turn_; }

 private:
  Turn turn_;
};

namespace {

Holds* HoldsOf(Turn& turn, const ObjectId& id) {
  if (OwnedObject* own = FindOwned(turn, id)) return &own->holds;
  BorrowedObject* ref = FindBorrowed(turn, id);
  return ref == nullptr ? nullptr : &ref->holds;
}

}  // namespace

References::References(ProcessId self, Options options) {
  state_.self = self;
  state_.options = options;
}

ObjectId References::Put(Value value, std::vector<ObjectId> contained, Instant now) {
  return PutAs(++state_.sequence, std::move(value), std::move(contained), now);
}

ObjectId References::PutAs(std::uint64_t sequence, Value value, std::vector<ObjectId> contained,
                           Instant now) {
  Scope turn(*this, now);
  return NewOwned(*turn, sequence, std::move(value), std::move(contained));
}

ObjectId References::Expect(Instant now) { return Put(Value(), {}, now); }

bool References::Fulfil(const ObjectId& id, const Answer& answer, const ProcessId& maker,
                        Instant now) {
  Scope turn(*this, now);
  return store::Fulfil(*turn, id, answer, maker);
}

bool References::Fail(const ObjectId& id, std::string error, Instant now) {
  return Fulfil(id, Answer{Value::Error(std::move(error)), {}}, state_.self, now);
}

void References::AddLocation(const ObjectId& id, const Location& location, Instant now) {
  Scope turn(*this, now);
  store::AddLocation(*turn, id, location);
}

void References::NodeDied(const NodeId& node, std::string_view why, Instant now) {
  Scope turn(*this, now);
  LoseLocationsOn(*turn, node, why);
}

bool References::Adopt(const ObjectId& id, const SlotId& slot, std::uint64_t generation,
                       Instant now) {
  Scope turn(*this, now);
  OwnedObject* own = FindOwned(*turn, id);
  if (own == nullptr) return false;
  for (const Location& location : own->value.locations) {
    if (location.slot == slot && location.generation == generation) {
      own->orphans.insert(slot);
      return true;
    }
  }
  return false;
}

bool References::AddHandle(const ObjectId& id) {
  Scope turn(*this, {});
  Holds* const holds = HoldsOf(*turn, id);
  if (holds != nullptr) ++holds->handles;
  return holds != nullptr;
}

bool References::DropOneOfMore(const ObjectId& id) {
  Scope turn(*this, {});
  Holds* const holds = HoldsOf(*turn, id);
  if (holds == nullptr || holds->handles == 0 || holds->handles + holds->containers == 1)
    return false;
  --holds->handles;
  return true;
}

void References::DropHandle(const ObjectId& id, Instant now) {
  Scope turn(*this, now);
  Holds* holds = HoldsOf(*turn, id);
  if (holds == nullptr || holds->handles == 0) return;
  --holds->handles;
  turn->Touch(id);
}

bool References::AddView(const ObjectId& id) {
  if (!MayRead(id)) return false;
  Scope turn(*this, {});
  ++HoldsOf(*turn, id)->views;
  return true;
}

void References::DropView(const ObjectId& id, Instant now) {
  Scope turn(*this, now);
  Holds* holds = HoldsOf(*turn, id);
  if (holds == nullptr || holds->views == 0) return;
  --holds->views;
  turn->Touch(id);
}

void References::Forked() {
  for (auto& [sequence, own] : state_.owned) own.dirty = own.dirty || own.holds.views != 0;
  for (auto& [owner, objects] : state_.borrowed.by_owner()) {
    for (auto& [sequence, ref] : objects)
      ref.holds.forked = ref.holds.forked || ref.holds.views != 0;
  }
}

Lent References::Lend(const ObjectId& id, const ProcessId& receiver, Instant now) {
  Scope turn(*this, now);
  Lent lent;
  lent.handed = LendTo(*turn, id, receiver);
  const OwnedObject* own = FindOwned(*turn, id);
  if (own != nullptr && lent.handed.loan != 0) lent.answer = AnswerFor(*turn, *own, receiver);
  return lent;
}

Handed References::LendInside(const ObjectId& id, const ProcessId& receiver, Instant now) {
  Scope turn(*this, now);
  return LendTo(*turn, id, receiver);
}

void References::Withdraw(const ObjectId& id, const Location& location, Instant now) {
  Scope turn(*this, now);
  Tell(*turn, id.owner, store::Withdraw{id, location});
}

void References::Recall(const ProcessId& receiver, const std::vector<std::uint64_t>& loans,
                        Instant now) {
  if (Is(Mutant::kLoanForgotten)) return;
  Scope turn(*this, now);
  for (const std::uint64_t loan : loans) {
    if (PeerOf(*turn, receiver).loans_open.count(loan) != 0)
      Tell(*turn, receiver, store::Recall{loan});
  }
}

bool References::Receive(const ProcessId& lender, const Handed& handed, const Answer* answer,
                         Instant now) {
  Scope turn(*this, now);
  return ReceiveRef(*turn, lender, handed, answer, /*contained=*/false);
}

void References::EndCall(const ObjectId& id, Instant now) {
  Scope turn(*this, now);
  BorrowedObject* ref = FindBorrowed(*turn, id);
  if (ref != nullptr && ref->state == RefState::kLent && ref->Pinned()) Register(*turn, id, *ref);
}

void References::Want(const ObjectId& id, Instant now) {
  Scope turn(*this, now);
  BorrowedObject* ref = FindBorrowed(*turn, id);
  if (ref == nullptr || ref->state != RefState::kLent || ref->value.Ended()) return;
  Register(*turn, id, *ref);
}

Sight References::Look(const ObjectId& id) const {
  if (id.owner == state_.self) {
    const auto own = state_.owned.find(id.sequence);
    if (own == state_.owned.end()) return {};
    const Value& value = own->second.value;
    if (value.kind == ValueKind::kLost) return {Known::kLost, value, *value.bytes};
    return {value.Ended() ? Known::kValue : Known::kWaiting, value, {}};
  }
  const BorrowedObject* const found = state_.borrowed.Find(id);
  if (found == nullptr) return {};
  const BorrowedObject& ref = *found;
  if (ref.state == RefState::kDead)
    return {ref.lost ? Known::kLost : Known::kOrphan, {}, ref.cause};
  if (!store::MayRead(ref) || !ref.value.Ended()) return {Known::kWaiting, {}, {}};
  if (ref.value.kind == ValueKind::kLost) return {Known::kLost, ref.value, *ref.value.bytes};
  return {Known::kValue, ref.value, {}};
}

bool References::Knows(const ObjectId& id) const {
  return id.owner == state_.self ? state_.owned.count(id.sequence) != 0
                                 : state_.borrowed.Find(id) != nullptr;
}

bool References::MayRead(const ObjectId& id) const { return Look(id).known == Known::kValue; }

Greeting References::Connected(const ProcessId& peer, std::uint64_t connection,
                               std::uint64_t applied, Instant now) {
  Scope turn(*this, now);
  return store::Connected(*turn, peer, connection, applied);
}

void References::Disconnected(const ProcessId& peer, std::uint64_t connection, Instant now) {
  Scope turn(*this, now);
  store::Disconnected(*turn, peer, connection);
}

bool References::Frame(const ProcessId& peer, std::uint64_t connection, std::uint64_t acknowledged,
                       const ControlFrame& frame, Instant now) {
  Scope turn(*this, now);
  return OnFrame(*turn, peer, connection, acknowledged, frame);
}

bool References::Ack(const ProcessId& peer, std::uint64_t connection, std::uint64_t acknowledged,
                     Instant now) {
  Scope turn(*this, now);
  return OnAck(*turn, peer, connection, acknowledged);
}

std::uint64_t References::AppliedOf(const ProcessId& peer) const {
  const auto found = state_.peers.find(peer);
  return found == state_.peers.end() ? 0 : found->second.stream.applied();
}

void References::Refused(const ProcessId& peer, Instant now) {
  Scope turn(*this, now);
  Strike(*turn, peer, "it has given up this process");
}

void References::Dead(const ProcessId& peer, std::string_view cause, Instant now) {
  Scope turn(*this, now);
  Die(*turn, peer, cause);
}

bool References::Mind(const ProcessId& peer, Instant now) {
  Scope turn(*this, now);
  return PeerOf(*turn, peer).Reachable();
}

void References::Expire(Instant now) {
  Scope turn(*this, now);
  store::Expire(*turn);
}

std::optional<Instant> References::NextDeadline() const { return store::NextDeadline(state_); }

}  // namespace troupe::store
