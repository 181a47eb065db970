// The reference table of one process: the objects it owns, the references it borrows, and what it
// and the other processes owe each other for them. Pure: inputs in, effects out.
//
// Each process has one; the worker's keeper (keeper.h) and the maker's slots (slots.h) are its
// neighbours. Whose view: this process's. It belongs to one loop and is not locked. Every function
// returns at once; what is to be done is in TakeEffects(). `now` never goes back.
//
// Invariants (README.md has the list): O3 no Hold, Drop, loan or wait stays without an end while
// the verdicts come; O5 sets, not counts: a repeated frame changes nothing; O6 a reference is not
// lost while its owner and its lender live and are not struck; O8 time-outs only abandon.
//
// Example, of a caller that passes a reference to an actor and of that actor:
//   Lent lent = table.Lend(id, actor, now);        // lent.handed and lent.answer go into the call
//   table.Receive(caller, handed, &answer, now);   // there; the user's handle keeps it
//   table.DropHandle(id, now); table.EndCall(id, now);   // settled, or registered if it is kept
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/store/core/effect.h"
#include "runtime/store/core/peers.h"
#include "runtime/store/core/state.h"

namespace troupe::store {

/// A reference as it travels: the loan, and what the receiver needs to read the value at once.
struct Lent {
  Handed handed;
  Answer answer;  // kPending when the lender is not the owner: the receiver asks the owner
};

enum class Known {
  kNothing,  // no such reference here
  kWaiting,  // the value is to come
  kValue,    // Look().value: inline, at its locations, or an error
  kLost,     // the object is gone, its owner is not (ObjectLost)
  kOrphan,   // the owner is gone (OwnerDied)
};
struct Sight {
  Known known = Known::kNothing;
  Value value;
  std::string cause;  // kLost, kOrphan
};

class References {
 public:
  explicit References(ProcessId self, Options options = {});

  // -- objects of this process --
  /// Takes in a value; the caller has its one handle. `contained`: the references inside, each held
  /// here.
  ObjectId Put(Value value, std::vector<ObjectId> contained, Instant now);
  /// Takes in a value under a number that the caller chooses, never twice, and that Put never uses.
  /// The caller has its one handle. `contained`: the references inside, each held here.
  ObjectId PutAs(std::uint64_t sequence, Value value, std::vector<ObjectId> contained, Instant now);
  /// Makes the object that a call under way will answer; the caller has its one handle.
  ObjectId Expect(Instant now);
  /// The reply to a call, from `maker`, has the value of its object. False: answered before, or
  /// wanted no more; what came is freed.
  bool Fulfil(const ObjectId& id, const Answer& answer, const ProcessId& maker, Instant now);
  bool Fail(const ObjectId& id, std::string error, Instant now);
  void AddLocation(const ObjectId& id, const Location& location, Instant now);
  void NodeDied(const NodeId& node, std::string_view why, Instant now);
  /// The keeper's question after the maker's death: true, keep it; false, free it. The connection
  /// to the maker must have been read to its end and closed before.
  bool Adopt(const ObjectId& id, const SlotId& slot, std::uint64_t generation, Instant now);

  // -- what holds an object here --
  /// False: it is not known here.
  bool AddHandle(const ObjectId& id);
  /// DropHandle, if something else holds it here; false: it is the last, and nothing was done.
  bool DropOneOfMore(const ObjectId& id);
  void DropHandle(const ObjectId& id, Instant now);
  /// A view or a copy is being made: false when it may not be read (now).
  bool AddView(const ObjectId& id);
  void DropView(const ObjectId& id, Instant now);
  /// A child was forked: what is mapped now may be read for ever.
  void Forked();

  // -- references that travel --
  /// Lends an object to `receiver`; the answer goes with it where this process owns it.
  Lent Lend(const ObjectId& id, const ProcessId& receiver, Instant now);
  /// Lends `receiver` a reference that lies inside a value of another owner's: without its own
  /// value.
  Handed LendInside(const ObjectId& id, const ProcessId& receiver, Instant now);
  /// Recalls loans whose carrier will not be sent again: those that did not arrive end.
  void Recall(const ProcessId& receiver, const std::vector<std::uint64_t>& loans, Instant now);
  /// The reply that carried a value made here will not be sent again: its owner frees it if it
  /// never came.
  void Withdraw(const ObjectId& id, const Location& location, Instant now);
  /// A reference came to the user. `answer` only from the owner. False: it is one of ours that is
  /// gone.
  bool Receive(const ProcessId& lender, const Handed& handed, const Answer* answer, Instant now);
  /// The call that brought it is over: what still holds it is registered with its owner.
  void EndCall(const ObjectId& id, Instant now);
  /// Somebody waits for its value.
  void Want(const ObjectId& id, Instant now);
  Sight Look(const ObjectId& id) const;
  /// Look(id).known is not kNothing.
  bool Knows(const ObjectId& id) const;
  bool MayRead(const ObjectId& id) const;

  // -- other processes --
  Greeting Connected(const ProcessId& peer, std::uint64_t connection, std::uint64_t applied,
                     Instant now);
  void Disconnected(const ProcessId& peer, std::uint64_t connection, Instant now);
  /// False: nothing of that connection counts any more; close it.
  bool Frame(const ProcessId& peer, std::uint64_t connection, std::uint64_t acknowledged,
             const ControlFrame& frame, Instant now);
  bool Ack(const ProcessId& peer, std::uint64_t connection, std::uint64_t acknowledged,
           Instant now);
  std::uint64_t AppliedOf(const ProcessId& peer) const;
  /// The other side has struck the pair.
  void Refused(const ProcessId& peer, Instant now);
  /// The worker's verdict.
  void Dead(const ProcessId& peer, std::string_view cause, Instant now);
  /// Watches a peer, which is to own what is made here. False: it is gone already; make nothing for
  /// it.
  bool Mind(const ProcessId& peer, Instant now);
  void Expire(Instant now);
  std::optional<Instant> NextDeadline() const;

  Effects TakeEffects() { return std::exchange(effects_, {}); }
  const State& state() const { return state_; }

 private:
  class Scope;

  State state_;
  Effects effects_;
};

}  // namespace troupe::store
