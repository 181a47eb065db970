// Effects of a simulated process's table: sends, dials, frees.
#include "tests/sim/objects/process.h"
#include "tests/sim/objects/world.h"

namespace troupe::sim {

void ObjectsProcess::DoEffects() {
  for (;;) {
    const store::Effects effects = table.TakeEffects();
    if (effects.empty()) break;
    for (const store::Effect& effect : effects) Do(effect);
  }
  const auto next = table.NextDeadline();
  if (!next || *next >= expiry_due_) return;
  expiry_due_ = *next;
  world_.loop().At(*next, "expiry", [this, due = *next] {
    if (!alive || expiry_due_ != due) return;
    expiry_due_ = Instant::max();
    table.Expire(world_.now());
    DoEffects();
  });
}

void ObjectsProcess::Do(const store::Effect& effect) {
  if (!alive) return;  // killed in the middle of what it did
  ObjectsWorld& world = world_;
  const ProcessId self = id;
  if (const auto* send = std::get_if<store::SendFrame>(&effect)) {
    const std::uint64_t applied = table.AppliedOf(send->peer);
    world_.Send(id, send->peer,
                [&world, self, to = send->peer, frame = send->frame, applied](std::uint64_t conn) {
                  ObjectsProcess& there = *world.Find(to);
                  there.table.Frame(self, conn, applied, frame, world.now());
                  there.DoEffects();
                });
  } else if (const auto* ack = std::get_if<store::SendAck>(&effect)) {
    if (!acks_due_.insert(ack->peer).second) return;
    world_.loop().In(std::chrono::milliseconds(1), "ack", [this, &world, self, to = ack->peer] {
      acks_due_.erase(to);
      if (!alive) return;
      world.Send(self, to, [&world, self, to, applied = table.AppliedOf(to)](std::uint64_t conn) {
        ObjectsProcess& there = *world.Find(to);
        there.table.Ack(self, conn, applied, world.now());
        there.DoEffects();
      });
    });
  } else if (const auto* connect = std::get_if<store::Connect>(&effect)) {
    world_.Dial(id, connect->peer);
  } else if (const auto* refuse = std::get_if<store::Refuse>(&effect)) {
    CloseTo(refuse->peer);
    world_.Refuse(id, refuse->peer);
  } else if (const auto* watch = std::get_if<store::Watch>(&effect)) {
    world_.Watch(id, watch->process);
  } else if (const auto* free = std::get_if<store::FreeSlot>(&effect)) {
    world_.RememberFree(id, *free);
    slots.Free(free->owner, {free->slot.segment, free->slot.slot}, free->generation, free->clean);
    CloseSegments();
  } else if (const auto* kept = std::get_if<store::FreeAtKeeper>(&effect)) {
    world_.OwnerToKeeper(kept->node, [slot = kept->slot, generation = kept->generation](
                                         store::Keeper& keeper) { keeper.Free(slot, generation); });
  } else if (const auto* lost = std::get_if<store::OwnerLost>(&effect)) {
    slots.OwnerLost(lost->owner, lost->dead);
    CloseSegments();
  } else if (const auto* wake = std::get_if<store::Wake>(&effect)) {
    const store::BorrowedObject* const found = table.state().borrowed.Find(wake->object);
    if (found != nullptr && found->lost) {
      world_.Lost(id, wake->object, found->lender);
    }
  }
}

void ObjectsProcess::CloseSegments() {
  for (const store::CloseSegment& close : slots.TakeClosed()) {
    world_.ToKeeper(*this, [maker = id, close](store::Keeper& keeper) {
      if (close.forget) {
        keeper.Forget(maker, close.segment);
      } else {
        keeper.Leave(maker, close.segment);
      }
    });
  }
}

}  // namespace troupe::sim
