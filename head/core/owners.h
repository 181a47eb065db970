// Owners: whose end takes what along (decision 9), and the sessions they speak through.
//
// A client owns what it made, by its subject. A local client that is gone ends at once; a remote
// one may be away for a grace; after a restart of the head every owner has a longer one. An actor
// owns what it made and ends with the directory's record of it, so no grace is needed there; what a
// rank made ends with its launch's epoch.
#pragma once

#include <functional>
#include <string>

#include "head/core/turn.h"

namespace troupe::head {

void OpenSession(Turn& turn, const SessionOpened& input);
void CloseSession(Turn& turn, const SessionId& session);
void OnProcessGone(Turn& turn, const SessionId& session, const ProcessId& process);
void OnOwnerTimer(Turn& turn, const OwnerId& owner);
/// Ends everything `owner` has: launches, actors, groups.
void EndOwner(Turn& turn, const OwnerId& owner, const std::string& why);
/// A selection of launches, actors and groups; each function is asked about open ones that are not
/// detached.
struct Selection {
  std::function<bool(const Launch&)> launch;
  std::function<bool(const Actor&)> actor;
  std::function<bool(const Group&)> group;
};
/// Ends what is meant: launches with their grace, actors, groups, in that order.
void EndAll(Turn& turn, const Selection& which, const std::string& why);
/// After replay: everyone who owns something is away, with the restart grace.
void AwaitOwners(Turn& turn);
/// A node is back: its processes do not know that pushes were lost. What they watch is theirs again
/// on the new session, and is told them anew.
void ResumeWatches(Turn& turn, Node& node, const SessionId& session);
/// A node is lost: nobody there watches any more.
void DropWatches(Turn& turn, const Node& node);

}  // namespace troupe::head
