// Join tokens: made, listed, used, forgotten; revocation.h has how one ends. The head keeps a key
// derived from each, never its text.
//
// A token that is over (expired, revoked, or used where it was for a single use) is listed for
// another 25 hours, so that it can be said what became of it, and is then forgotten (an event
// without a role): at the next token that is made or list that is asked for. So there are never
// more than kTokensMax.
#pragma once

#include "head/core/machine/turn.h"

namespace troupe::head {

inline constexpr std::size_t kTokensMax = 10'000;

void OnCreateToken(Turn& turn, const Request& request, const wire::CreateToken& message);
void OnListTokens(Turn& turn, const Request& request);
/// A peer joined with it.
void NoteTokenUsed(Turn& turn, const TokenId& id);
/// Returns true if a certificate of this role that was given for `token` is worth nothing any more.
bool IsRevoked(const State& state, wire::Role role, const TokenId& token);
/// All that are revoked, to a worker; nothing where none is.
void TellRevoked(Turn& turn, const NodeId& node);

}  // namespace troupe::head
