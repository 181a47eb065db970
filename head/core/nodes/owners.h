// Owners: whose end takes what along (decision 9), and the sessions they speak through.
//
// A client owns what it made, by its subject. A local client that is gone ends at once; a remote
// one may be away for a grace; after a restart of the head every owner has a longer one. An actor
// owns what it made and ends with the directory's record of it, so no grace is needed there; what a
// rank made ends with its launch's epoch.
#pragma once

#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

void OpenSession(Turn& turn, const SessionOpened& input);
void CloseSession(Turn& turn, const SessionId& session);
void OnProcessGone(Turn& turn, const SessionId& session, const ProcessId& process);
void OnOwnerTimer(Turn& turn, const OwnerId& owner);
/// Ends everything `owner` has: launches, actors, groups (launched/owned.h).
void EndOwner(Turn& turn, const OwnerId& owner, const std::string& why);
/// After replay: everyone who owns something is away, with the restart grace.
void AwaitOwners(Turn& turn);

}  // namespace troupe::head
