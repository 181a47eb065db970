#include "head/core/placed/room_notices.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe::head {
namespace {

/// Returns true if the owner of this lease has another one there already: it wants more, but goes
/// on meanwhile.
bool GoesOn(Turn& turn, const Actor& lease, const GroupId& inside) {
  const auto& leases = turn.state.leased_actors;
  for (auto each = leases.lower_bound({lease.owner, ActorId()});
       each != leases.end() && each->first == lease.owner; ++each) {
    const Actor& other = *turn.FindActor(each->second);
    const Group* const own = turn.FindGroup(other.own_group);
    if (!other.place.node.IsNil() && own != nullptr && own->spec.parent == inside) return true;
  }
  return false;
}

}  // namespace

void NoteRoomWanted(Turn& turn, const Group& group) {
  if (turn.state.leased_actors.empty()) return;
  const Actor* const actor = turn.FindActor(group.spec.actor);
  const bool lease = actor != nullptr && actor->spec.leased;
  if (lease && GoesOn(turn, *actor, group.spec.parent)) return;
  RoomWanted& wanted = turn.state.room_wanted;
  for (const wire::Bundle& bundle : group.spec.bundles) {
    for (const wire::Resource& each : bundle.resources) {
      RoomWanted::Who& who = wanted.by[{group.spec.parent, each.name}];
      if (who.until <= turn.now) who = {lease ? actor->owner : OwnerId(), false, {}};
      who.others = who.others || !lease || who.owner != actor->owner;
      who.until = turn.now + kRoomWantedFor;
    }
  }
  wanted.news = true;
}

bool RoomIsWanted(Turn& turn, const Actor& actor) {
  if (!actor.spec.leased || actor.state != wire::ActorState::kAlive) return false;
  const Group* const own = turn.FindGroup(actor.own_group);
  if (own == nullptr) return false;
  const auto& by = turn.state.room_wanted.by;
  const auto& holds = actor.spec.run_resources;
  return std::any_of(holds.begin(), holds.end(), [&](const wire::Resource& each) {
    const auto found = by.find({own->spec.parent, each.name});
    return found != by.end() && found->second.until > turn.now &&
           (found->second.others || found->second.owner != actor.owner);
  });
}

std::vector<ActorId> WhoMakesRoom(Turn& turn) {
  RoomWanted& wanted = turn.state.room_wanted;
  std::vector<ActorId> holders;
  if (!wanted.news || turn.now < wanted.due) return holders;
  wanted.news = false;
  wanted.due = turn.now + kRoomWordEvery;
  for (auto each = wanted.by.begin(); each != wanted.by.end();) {
    each = each->second.until <= turn.now ? wanted.by.erase(each) : std::next(each);
  }
  for (const auto& [owner, id] : turn.state.leased_actors) {
    if (RoomIsWanted(turn, *turn.FindActor(id))) holders.push_back(id);
  }
  return holders;
}

}  // namespace troupe::head
