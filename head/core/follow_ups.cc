#include "head/core/follow_ups.h"

#include <variant>

#include "head/core/launched/archive/archive.h"
#include "head/core/launched/epoch_ends.h"
#include "head/core/launched/epochs.h"
#include "head/core/launched/gang/regroup.h"
#include "head/core/launched/gang/spares.h"
#include "head/core/launched/jobs/jobs.h"
#include "head/core/launched/launch_views.h"
#include "head/core/launched/owned.h"
#include "head/core/launched/reconcile.h"
#include "head/core/launched/runs.h"
#include "head/core/nodes/watches.h"
#include "head/core/placed/actor_lives.h"
#include "head/core/placed/actor_losses.h"
#include "head/core/placed/actor_views.h"
#include "head/core/placed/actors.h"
#include "head/core/placed/group_views.h"
#include "head/core/placed/groups.h"

namespace troupe::head {
namespace {

class FollowUps {
 public:
  explicit FollowUps(Turn& turn) : t_(turn) {}

  void operator()(const fact::NodeRegistered& f) {
    if (f.was_dead) ActorsAreBack(t_, f.node);
    Reconcile(t_, *t_.FindNode(f.node), f.report);
  }
  void operator()(const fact::NodeSettled& f) {
    FailMissingRanks(t_, f.node);
    LoseMissingActors(t_, f.node);
  }
  void operator()(const fact::NodeLost& f) {
    FailLaunchesOn(t_, f.node, f.why, f.verdict);
    LoseActorsOn(t_, f.node, f.why, f.verdict);
    const auto kind =
        f.verdict ? wire::FailureKind::kNodeLost : wire::FailureKind::kNodeUnreachable;
    for (const GroupId& group : f.groups) LoseBundles(t_, group, kind, f.why);
    // Launches that go on lose what their ranks and actors had there; a launch that fails with the
    // node ends them itself.
    for (const GroupId& id : f.inside) {
      const Group* group = t_.FindGroup(id);
      const Launch* launch = group == nullptr ? nullptr : t_.FindLaunch(group->spec.launch);
      if (launch != nullptr && GoesOnAfterDeaths(*launch)) LoseBundles(t_, id, kind, f.why);
    }
  }
  void operator()(const fact::OwnerGone& f) { EndOwned(t_, f.owner, f.why); }
  void operator()(const fact::WatchersBack& f) {
    for (const auto& [id, launch] : t_.state.launches) {
      if (Watches(launch.watchers, f.session)) PushLaunch(t_, launch);
    }
    for (const auto& [id, group] : t_.state.groups) {
      if (Watches(group.watchers, f.session)) PushGroup(t_, group);
    }
    for (const auto& [id, actor] : t_.state.actors) {
      if (Watches(actor.watchers, f.session)) PushActor(t_, actor);
    }
  }
  void operator()(const fact::SessionEnded&) { TellWatchersLeft(t_); }

  void operator()(const fact::PassBegins&) { CountNodesOfRuns(t_); }
  void operator()(const fact::GroupPlaced& f) {
    if (f.group.spec.gang) {
      BeginEpoch(t_, f.group);
    } else if (!f.group.spec.replaces.empty()) {
      OnSparePlaced(t_, f.group);
    } else if (!f.group.spec.actor.IsNil()) {
      StartActorIn(t_, f.group);
    } else {
      PushGroup(t_, f.group);
    }
  }
  void operator()(const fact::GangLost& f) { LoseGang(t_, f.launch, f.why); }
  void operator()(const fact::SpareLost& f) { LoseSpare(t_, f.spare, f.why); }
  void operator()(const fact::PlacesLost& f) {
    LoseActorsWithPlaces(t_, f.group, f.kind, f.why);
  }
  void operator()(const fact::GroupEnds& f) { EndActorsIn(t_, f.group, f.why); }
  void operator()(const fact::EpochPreempted& f) { PreemptEpoch(t_, f.launch, f.why); }

  void operator()(const fact::EpochGoesOn& f) { RegroupAfter(t_, f.launch); }
  void operator()(const fact::LaunchEnded& f) {
    ArchiveEnded(t_);
    OnJobMarker(t_, f.launch);
  }

 private:
  Turn& t_;
};

}  // namespace

void FollowUpFact(Turn& turn, const Fact& fact) { std::visit(FollowUps(turn), fact); }

}  // namespace troupe::head
