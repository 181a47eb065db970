// Placement groups: reservations of bundles, fenced by attempts (spec: placement-groups).
//
//   PENDING --plan: attempt a journaled, Reserve to its nodes--> (attempting a)
//   (attempting a) --all OK--> CREATED
//   (attempting a) --a NO or a lost node--> PENDING, Release(a), back-off
//   CREATED --node lost--> RESCHEDULING (like PENDING)
//   any --removed--> REMOVED, Release(a)
// A gang (the ranks of a launch) and an actor's own resources are groups too. What was released is
// free again when the node says Released: its processes are gone.
#pragma once

#include <string>
#include <vector>

#include "head/core/machine/turn.h"
#include "placement/request.h"

namespace troupe::head {

void OnReserveReply(Turn& turn, Node& node, const wire::ReserveReply& message);
void OnReleased(Turn& turn, Node& node, const wire::Released& message);

/// Journals the attempt and asks the nodes.
void StartAttempt(Turn& turn, Group& group, std::vector<wire::BundlePlace> places);
/// The current attempt, or what was created, is over; its nodes are told; it waits for a new plan.
void Unplace(Turn& turn, Group& group, const std::string& why);
/// A node no longer holds a bundle of it.
void LoseBundles(Turn& turn, const GroupId& group, wire::FailureKind kind, const std::string& why);
void EndGroup(Turn& turn, const GroupId& group, const std::string& why);
/// A Reserve without an answer, once more to one node.
void AskAgain(Turn& turn, const GroupId& group, const NodeId& node);
/// Notes a node's free resources; amounts below this account of it are remembered until it reports
/// again.
void NoteFree(Turn& turn, Node& node, const std::vector<wire::Resource>& free,
              std::uint64_t version);

}  // namespace troupe::head
