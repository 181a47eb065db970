// A token that is revoked: it lets nobody in any more, and what a client or an observer opened by
// it ends.
//
//   RT-1  The revocation is journaled before anything is said of it; a restarted head still refuses
//         what it refused.
//   RT-2  Every session of a client or an observer that came by the token, or by a certificate it
//         was given for it, is closed.
//   RT-3  Launches, actors and groups of the token end, but those that are detached or in a
//         detached launch: they are listed to who revokes. Its certificates are refused for as long
//         as they would be valid.
//   RT-4  Every worker is told of all revoked tokens, when it registers and when there is one more.
//   RT-5  Nodes that joined by it stay.
//
// Pure; view: cluster.
#pragma once

#include "head/core/machine/turn.h"

namespace troupe::head {

/// The answer names what goes on: detached launches, and nodes that cannot be told, with the time
/// until which those may let its certificates in.
void OnRevokeToken(Turn& turn, const Request& request, const wire::RevokeToken& message);
/// Revokes a token that was made for one thing, which has ended. A token that nobody has used is
/// forgotten.
void EndToken(Turn& turn, const TokenId& id, const std::string& why);

}  // namespace troupe::head
