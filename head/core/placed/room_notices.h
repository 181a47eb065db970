// Notices to the makers of leased processes (ActorSpec::leased) that others wait for room; they
// then give back idle ones sooner than they would.
//
// A word of the moment (ActorInfo::room_wanted): said to those that hold such when somebody begins
// to wait, at most every kRoomWordEvery (what comes in between is said with the next), and to those
// that come to hold it within kRoomWantedFor. Not durable: whom it does not reach keeps an idle
// process a little longer.
#pragma once

#include <vector>

#include "head/core/machine/turn.h"

namespace troupe::head {

inline constexpr Duration kRoomWordEvery = std::chrono::milliseconds(100);
inline constexpr Duration kRoomWantedFor = std::chrono::seconds(5);

/// A pass has met this one for the first time, and found no room. A lease counts if it would be its
/// maker's first.
void NoteRoomWanted(Turn& turn, const Group& group);
/// Returns true if the resources of a leased process are wanted for more than leases of its own
/// maker.
bool RoomIsWanted(Turn& turn, const Actor& actor);
/// Behind a pass: leased processes whose watchers are to be told now that others wait.
std::vector<ActorId> WhoMakesRoom(Turn& turn);

}  // namespace troupe::head
