// Actors that end, or are lost, along with what they run in: a launch, a placement group, a node.
#pragma once

#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// Ends the actors of a launch whose epoch ends: its nodes end the processes with that.
void EndActorsOf(Turn& turn, const LaunchId& launch, const std::string& why);
/// Ends the actors in a placement group that is removed.
void EndActorsIn(Turn& turn, const GroupId& group, const std::string& why);
/// The group lost its places: the actor that it was made for and those in it end there, and are
/// made again in others while restarts are left.
void LoseActorsWithPlaces(Turn& turn, const GroupId& group, wire::FailureKind kind,
                          const std::string& why);
/// The node is gone; with a `verdict` what ran there is known to be dead.
void LoseActorsOn(Turn& turn, const NodeId& node, const std::string& why, bool verdict);
/// The node was lost without a verdict and is heard again: actors that reserved nothing go on, the
/// others end.
void ActorsAreBack(Turn& turn, const NodeId& node);
/// The node has said what it runs: what it should run, and does not, is dead.
void LoseMissingActors(Turn& turn, const NodeId& node);
/// The node registered anew: it is told again of what it is to start and to end.
void ResumeActorsOn(Turn& turn, const NodeId& node);
/// Runs when the actor's lost node must have fenced the actor: then it is dead.
void OnRecreateTimer(Turn& turn, const ActorId& id);
/// After replay: who may only be made again once its lost node has fenced it waits for the rest of
/// that.
void ResumeActorTimers(Turn& turn);

}  // namespace troupe::head
