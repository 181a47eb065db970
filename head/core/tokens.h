// Join tokens: made, listed, revoked, used. The head keeps a key derived from each, never its text.
#pragma once

#include "head/core/turn.h"

namespace troupe::head {

void OnCreateToken(Turn& turn, const Request& request, const wire::CreateToken& message);
void OnListTokens(Turn& turn, const Request& request);
void OnRevokeToken(Turn& turn, const Request& request, const wire::RevokeToken& message);
/// A peer joined with it.
void NoteTokenUsed(Turn& turn, const TokenId& id);

}  // namespace troupe::head
