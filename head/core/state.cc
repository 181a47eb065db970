#include "head/core/state.h"

namespace troupe::head {

void State::Enqueue(const Group& group) {
  if (!group.spec.parent.IsNil()) {
    waiting_inside.insert(group.key());
    return;
  }
  waiting_groups.insert(group.key());
  queue.open.insert(group.key());
}

void State::Dequeue(const Group& group) {
  waiting_groups.erase(group.key());
  waiting_inside.erase(group.key());
  queue.open.erase(group.key());
}

void State::ListFormerName(const Actor& actor) {
  if (actor.spec.name.empty()) return;
  if (actor.live() || !(actor.former.ended || actor.former.gone)) {
    former_names[ActorNameOf(actor)].insert(actor.spec.actor);
  } else {
    DropFormerName(actor);
  }
}

void State::DropFormerName(const Actor& actor) {
  const auto listed = former_names.find(ActorNameOf(actor));
  if (listed == former_names.end()) return;
  listed->second.erase(actor.spec.actor);
  if (listed->second.empty()) former_names.erase(listed);
}

void NoteJob(State& state, Launch& launch) {
  StatusOr<JobTerms> terms = ParseJobTerms(launch.spec);
  if (terms.ok()) launch.job = *std::move(terms);  // others were refused
  if (!launch.job.after.empty() && launch.open()) state.waiting_after.insert(launch.id);
}

}  // namespace troupe::head
