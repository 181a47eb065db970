// Reservations for ranks that died (RP2, RP4; replace.h): what follows when one has its places, is
// lost, or is refused by its node.
#pragma once

#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// A reservation for ranks that died has its places.
void OnSparePlaced(Turn& turn, const Group& spare);
/// Ends a reservation for ranks that died whose places are lost: ranks in it have failed.
void LoseSpare(Turn& turn, const Group& spare, const std::string& why);
/// The node starts nothing more of this attempt: what it should start is started elsewhere.
void OnAttemptEndedOn(Turn& turn, Node& node, const wire::EpochEnded& message);

}  // namespace troupe::head
