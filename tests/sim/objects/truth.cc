// The simulation's own knowledge, which no process has: contents of every slot, its readers, who
// may lose which object.
#include <cstdio>

#include "tests/sim/objects/world.h"

namespace troupe::sim {

void ObjectsWorld::Fail(std::string what) {
  if (result_.failure.empty()) {
    result_.failure = std::move(what);
    Trace("FAILED " + result_.failure);
  }
}

void ObjectsWorld::Trace(const std::string& line) {
  if (trace_)
    std::printf("%9.6f %s\n", Seconds(now() - Instant(std::chrono::seconds(1000))), line.c_str());
}

void ObjectsWorld::RememberFree(const ProcessId& maker, const store::FreeSlot& free) {
  frees_.emplace_back(maker, free);
}

// O1: who could still read the old bytes?
void ObjectsWorld::Written(const store::SlotId& slot, std::uint64_t generation) {
  Count("writes");
  if (generation > 1) Count("rewrites");
  for (const auto& [id, process] : processes_) {
    for (const ObjectsProcess::View& view : process->views) {
      if (process->alive && view.slot == slot) {
        Fail("O1: a slot is rewritten while " + id.Short() + " has a view of " +
             view.object.Text());
      }
    }
  }
  for (const Child& child : children_) {
    if (child.slot == slot) Fail("O1: a slot is rewritten while a forked child reads it");
  }
  content_[slot] = generation;
}

bool ObjectsWorld::Lists(const store::ObjectId& object, const ProcessId& reader) {
  const auto& owned = Find(object.owner)->table.state().owned;
  const auto found = owned.find(object.sequence);
  if (found == owned.end()) return false;
  const auto loan = found->second.loans.lower_bound({reader, 0});
  return found->second.borrowers.count(reader) != 0 ||
         (loan != found->second.loans.end() && loan->first == reader);
}

void ObjectsWorld::Mapped(const ObjectsProcess& by, const store::ObjectId& object,
                          const store::Location& location) {
  Count("views");
  if (object.owner != by.id) Count("views of borrowed");
  if (content_[location.slot] != location.generation) {
    Fail("O1: " + by.id.Short() + " maps " + object.Text() + " and finds another value");
  }
  // A reader that has not heard yet that the owner is gone may find nothing; it never reads wrong
  // contents.
  if (!Find(object.owner)->alive || Struck(object.owner, by.id)) return;
  if (object.owner != by.id && !Lists(object, by.id)) {
    Fail("O1: " + by.id.Short() + " reads " + object.Text() +
         ", and its owner does not know of it");
  }
  const ObjectsProcess& maker = *Find(location.slot.maker);
  const bool at_maker =
      maker.alive &&
      maker.slots.StateOf({location.slot.segment, location.slot.slot}) == store::SlotState::kLent;
  if (!maker.alive) Count("views after the maker's death");
  const Node& node = nodes_.at(location.node);
  if (!at_maker && !node.keeper.Has(location.slot) && local_in_flight_ == 0) {
    Fail("O7: " + by.id.Short() + " cannot map " + object.Text() + ": nobody has its segment");
  }
}

void ObjectsWorld::Forked(const ObjectsProcess& parent) {
  Count("forks");
  for (const ObjectsProcess::View& view : parent.views)
    children_.push_back({view.slot, view.generation});
}

void ObjectsWorld::Lost(const ProcessId& by, const store::ObjectId& object,
                        const ProcessId& lender) {
  Count("references lost");
  losses_.push_back({by, object, lender});
  lost_.insert({by, object});
}

// O6: a reference is lost only if who lent it is gone, or had lost it itself.
void ObjectsWorld::CheckLosses() {
  for (const LostRef& loss : losses_) {
    if (loss.lender.IsNil()) {
      if (!Struck(loss.by, loss.object.owner)) {
        Fail("O6: " + loss.object.Text() + ", lent by its owner, is lost to " + loss.by.Short());
      }
      continue;
    }
    const bool excused = !Find(loss.lender)->alive || Struck(loss.lender, loss.by) ||
                         Struck(loss.lender, loss.object.owner) ||
                         lost_.count({loss.lender, loss.object}) != 0;
    if (!excused) {
      Fail("O6: " + loss.object.Text() + " is lost to " + loss.by.Short() + ", though " +
           loss.lender.Short() + ", which lent it, lives");
    }
  }
}

// O2: nobody holds anything, so nothing is held.
void ObjectsWorld::CheckQuiet() {
  for (const auto& [id, process] : processes_) {
    if (process->alive) {
      const std::string leak = process->Leaks();
      if (!leak.empty()) Fail("O2: " + id.Short() + ": " + leak);
      continue;
    }
    for (const auto& [node_id, node] : nodes_) {
      if (node.keeper.HasAnyOf(id))
        Fail("O2: a keeper still holds a segment of " + id.Short() + ", which is dead");
    }
  }
}

}  // namespace troupe::sim
