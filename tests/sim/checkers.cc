#include "tests/sim/checkers.h"

#include <algorithm>
#include <cstdio>
#include <variant>

#include "head/core/machine/job_terms.h"
#include "head/core/nodes/node_views.h"

namespace troupe::sim {
namespace {

// Parent -> what actors, groups and ranks' shares inside it hold on this node. Of a parent that is
// on its way out only what is left counts: its children end with it.
std::map<GroupId, head::Resources> InsideOf(const head::Node& node) {
  std::map<GroupId, head::Resources> inside;
  for (const auto& [lease, holding] : node.holdings) {
    if (!holding.parent.IsNil()) inside[holding.parent].Add(holding.amount);
  }
  return inside;
}

// All attempts: one that drains still holds its children's amounts.
head::Resources ReservedBy(const head::Node& node, const GroupId& group) {
  head::Resources reserved;
  for (const auto& [lease, holding] : node.holdings) {
    if (lease.first == group) reserved.Add(holding.amount);
  }
  return reserved;
}

head::Resources TakenFrom(const head::Node& node) {
  head::Resources taken;
  for (const auto& [lease, holding] : node.holdings) {
    if (holding.parent.IsNil()) taken.Add(holding.takes());
  }
  return taken;
}

// Returns true if placement knows a node as it is, or knows that it must look again.
bool IsKnown(const head::State& state, const head::Node& node) {
  if (state.changed_nodes.count(node.id) > 0) return true;
  const placement::Host* host = state.cluster.Find(node.id);
  if (node.dead || host == nullptr) return node.dead && host == nullptr;
  const bool open =
      node.reported && !node.draining && !node.leaving && !node.suspect && !node.session.IsNil();
  return host->view.total == node.total && host->view.free == head::FreeOf(node) &&
         host->view.closed.empty() == open;
}

// Returns true for a launch that does not say over how many nodes, or is on that many evenly.
bool IsEven(const wire::LaunchSpec& spec, const std::vector<wire::RankPlacement>& ranks) {
  if (spec.nodes == 0) return true;
  std::map<NodeId, std::uint32_t> counts;
  for (const wire::RankPlacement& rank : ranks) ++counts[rank.node];
  const std::uint32_t least = spec.ranks / spec.nodes;
  const auto larger = [&](const auto& node) { return node.second == least + 1; };
  return counts.size() == spec.nodes &&
         std::count_if(counts.begin(), counts.end(), larger) == spec.ranks % spec.nodes &&
         std::all_of(counts.begin(), counts.end(), [&](const auto& node) {
           return node.second == least || larger(node);
         });
}

}  // namespace

void Checker::Fail(const std::string& what) {
  if (!failure_.empty()) return;
  char time[32];
  std::snprintf(time, sizeof time, "%.6f s: ", Seconds(loop_.Now() - Instant{}) - 1000);
  failure_ = time + what;
}

void Checker::Note(std::string_view what, std::string_view detail) {
  if (!verbose_) return;
  std::printf("%10.6f  %-10.*s %.*s\n", Seconds(loop_.Now() - Instant{}) - 1000,
              static_cast<int>(what.size()), what.data(), static_cast<int>(detail.size()),
              detail.data());
}

void Checker::OnDurable(const head::Row& row) {
  Note("durable", wire::NameOf(row.event.body));
  Expect(row.sequence == durable_ + 1, "the journal has a gap");
  durable_ = row.sequence;
  const wire::EventBody& body = row.event.body;
  if (const auto* submitted = wire::GetIf<wire::LaunchSubmitted>(&body)) {
    submitted_.specs[submitted->launch] = submitted->spec;
    Expect(submitted_.requests.insert(submitted->request).second,
           "AR-4: a submission made two launches");
  } else if (const auto* begun = wire::GetIf<wire::EpochBegun>(&body)) {
    Expect(begun->epoch - preempted_[begun->launch] <= submitted_.specs[begun->launch].attempts_max,
           "a launch had more attempts than it may have");
    Expect(begun->epoch > epochs_[begun->launch], "S8: an epoch began twice");
    Expect(markers_.count(begun->launch) == 0, "S4: an epoch began after the marker");
    epochs_[begun->launch] = begun->epoch;
    Expect(IsEven(submitted_.specs[begun->launch], begun->ranks),
           "P8: a launch's ranks are not over as many nodes as it said, as evenly as can be");
  } else if (const auto* finished = wire::GetIf<wire::RankFinished>(&body)) {
    OnFinished(finished->done);
  } else if (const auto* roster = wire::GetIf<wire::RosterPublished>(&body)) {
    groups_.rosters.insert({roster->launch, roster->epoch});
  } else if (const auto* formed = wire::GetIf<wire::GroupReformed>(&body)) {
    OnReformed(*formed);
  } else if (const auto* replaced = wire::GetIf<wire::RankReplaced>(&body)) {
    OnReplaced(*replaced);
  } else if (const auto* acquired = wire::GetIf<wire::DriverAcquired>(&body)) {
    Expect(
        acquired->epoch == epochs_[acquired->launch] && acquired->epoch > over_[acquired->launch],
        "S3: an epoch that is over got a driver");
  } else if (const auto* failed = wire::GetIf<wire::EpochFailed>(&body)) {
    Expect(failed->epoch == epochs_[failed->launch],
           "S3: an epoch that is not the current one failed");
    over_[failed->launch] = failed->epoch;
    Expect(!failed->failure.symptom,
           "E2: the blame is on a rank whose collective failed since another rank ended");
    if (failed->preempted) {
      Expect(preempts_, "a launch was preempted without a policy that says so");
      Expect(submitted_.specs[failed->launch].attempts_max > 1,
             "a launch was preempted that may start only once");
      ++preempted_[failed->launch];
    }
  } else if (const auto* written = wire::GetIf<wire::MarkerWritten>(&body)) {
    const wire::Marker& marker = written->marker;
    Expect(markers_.count(marker.launch) == 0, "S6: a second marker for one launch");
    if (!marker.request.IsNil()) {
      Expect(completing_[marker.request] == epochs_[marker.launch],
             "S2, S3: the marker is of a driver whose epoch is over");
    }
    if (marker.outcome == wire::Outcome::kFailed) {
      Expect(!marker.failure.symptom,
             "E2: the blame is on a rank whose collective failed since another rank ended");
    }
    if (marker.outcome == wire::Outcome::kSucceeded) {
      Expect(failed_[marker.launch] != marker.epoch, "E1: success after the failure of a rank");
      const std::size_t died = groups_.died[{marker.launch, marker.epoch}].size();
      const wire::LaunchSpec& spec = submitted_.specs[marker.launch];
      Expect(died == 0 || spec.ranks - died >= std::max(1u, spec.ranks_min),
             "R5: success with fewer ranks than there must be");
      groups_.outlived += died > 0 ? 1 : 0;
      Expect(marker.epoch == epochs_[marker.launch] && marker.epoch > over_[marker.launch],
             "S2: success by an epoch that is not the current one");
    }
    markers_.emplace(marker.launch, marker);
  }
}

void Checker::OnFinished(const wire::RankDone& done) {
  const bool failed = done.outcome == wire::Outcome::kFailed;
  if (failed && done.failure.kind == wire::FailureKind::kHung) {
    ++groups_.hung;
    Expect(submitted_.specs[done.launch].hang_ms > 0,
           "H1: a rank of a launch without hang_timeout was ended");
    Expect(groups_.late[{done.launch, done.epoch}].count(done.rank) > 0,
           "H2: a rank was ended that had said that it is no later than others");
  }
  if (MayDie(done)) {
    groups_.died[{done.launch, done.epoch}].insert(done.rank);
  } else if (done.outcome == wire::Outcome::kFailed) {
    failed_[done.launch] = done.epoch;
  }
  Expect(done.epoch == epochs_[done.launch] && done.epoch > over_[done.launch],
         "S3: a rank's end of an epoch that is over was counted");
  Expect(markers_.count(done.launch) == 0, "S4: a rank's end was counted after the marker");
}

void Checker::OnReplaced(const wire::RankReplaced& replaced) {
  Expect(submitted_.specs[replaced.launch].on_rank_death == wire::RankDeath::kReplace,
         "RP1: a process took the place of a rank of a launch that does not want that");
  ++groups_.replaced;
  groups_.moved += replaced.node.IsNil() ? 0 : 1;
  groups_.late[{replaced.launch, replaced.epoch}].erase(replaced.rank);
  Expect(groups_.died[{replaced.launch, replaced.epoch}].erase(replaced.rank) == 1,
         "R6: a process took the place of a rank that had not died");
}

// As the protocol says it, told here from the journal alone: a death, of a launch that goes on.
bool Checker::MayDie(const wire::RankDone& done) const {
  const auto spec = submitted_.specs.find(done.launch);
  if (spec == submitted_.specs.end()) return false;
  if (spec->second.on_rank_death == wire::RankDeath::kFail) return false;
  if (groups_.rosters.count({done.launch, done.epoch}) == 0) return false;
  const bool raised = !done.failure.exception_type.empty() && done.failure.signal == 0;
  return done.outcome == wire::Outcome::kFailed && !done.failure.symptom && !raised;
}

void Checker::OnReformed(const wire::GroupReformed& formed) {
  const EpochKey key{formed.launch, formed.epoch};
  ++groups_.reforms;
  Expect(formed.epoch == epochs_[formed.launch] && formed.epoch > over_[formed.launch],
         "R2: a group of an epoch of its launch that is over was formed");
  Expect(markers_.count(formed.launch) == 0, "S4: a group was formed after the marker");
  Expect(formed.group_epoch > std::max<std::uint64_t>(groups_.formed[key].group_epoch, 1),
         "R2: an epoch of a group was formed twice, or after a later one");
  const std::set<std::uint32_t>& came = groups_.joined[key][formed.group_epoch];
  for (const std::uint32_t rank : formed.members) {
    Expect(came.count(rank) > 0, "R3: a group was formed with a rank that had not come to it");
    Expect(groups_.died[key].count(rank) == 0, "R3: a group was formed with a rank that had died");
  }
  if (submitted_.specs[formed.launch].on_rank_death == wire::RankDeath::kReplace)
    Expect(groups_.died[key].empty(),
           "RP2: a group was formed while the place of a rank was empty");
  groups_.formed[key] = formed;
}

void Checker::OnFormed(const LaunchId& launch, std::uint64_t epoch, std::uint32_t rank,
                       const wire::GroupFormed& told) {
  const wire::GroupReformed& formed = groups_.formed[{launch, epoch}];
  if (told.group_epoch < formed.group_epoch) return;  // late: another death was journaled since
  Expect(told.group_epoch == formed.group_epoch, "S5: a group was told before it was durable");
  Expect(told.world_size == formed.members.size() && told.rank < formed.members.size() &&
             formed.members[told.rank] == rank && told.master_port == formed.store_port,
         "R3: two ranks of a group were told different things of it");
}

std::uint64_t Checker::preemptions() const {
  std::uint64_t sum = 0;
  for (const auto& [launch, count] : preempted_) sum += count;
  return sum;
}

void Checker::OnSent(const wire::Message& message) {
  if (!wire::Holds<wire::HeartbeatAck>(message.body)) {
    Note("head says", wire::NameOf(message.body));
  }
  const auto known = [this](const LaunchId& launch, wire::Outcome outcome) {
    const auto marker = markers_.find(launch);
    return marker != markers_.end() && marker->second.outcome == outcome;
  };
  if (const auto* reply = wire::GetIf<wire::MarkerReply>(&message.body)) {
    Expect(known(reply->marker.launch, reply->marker.outcome),
           "S5: a marker was told before it was durable");
  } else if (const auto* update = wire::GetIf<wire::LaunchUpdate>(&message.body)) {
    if (update->info.state == wire::LaunchState::kTerminal) {
      Expect(known(update->info.launch, update->info.outcome),
             "S5: an end was told before it was durable");
    }
  } else if (const auto* actor = wire::GetIf<wire::ActorUpdate>(&message.body)) {
    OnToldActor(actor->info);
  } else if (const auto* end = wire::GetIf<wire::EndEpoch>(&message.body)) {
    if (end->terminal)
      Expect(known(end->launch, end->outcome), "S5: ranks were told an end too early");
  } else if (const auto* start = wire::GetIf<wire::StartRanks>(&message.body)) {
    Expect(epochs_[start->launch] >= start->epoch,
           "S5: ranks were started before their epoch was durable");
  }
}

void Checker::OnToldActor(const wire::ActorInfo& info) {
  const ProcessId& process = info.address.process;
  if (process.IsNil()) {
    Expect(info.state != wire::ActorState::kAlive,
           "A1: an actor is told to be alive, and not where");
    return;
  }
  const auto life = lives_.find(process);
  Expect(life != lives_.end() && life->second.actor == info.actor &&
             life->second.incarnation == info.address.incarnation,
         "A1: the address of a former life of an actor was told");
}

void Checker::OnActorProcess(const wire::ActorBegin& begin, const ProcessId& process) {
  const ActorId& actor = begin.actor;
  Note("life", actor.Short() + " " + std::to_string(begin.incarnation) + " " + begin.name);
  for (const auto& [id, life] : lives_) {
    Expect(life.actor != actor || !life.runs,
           "A2: two lives of actor " + actor.Short() + " run at once, " +
               std::to_string(life.incarnation) + " and " + std::to_string(begin.incarnation));
    Expect(begin.name.empty() || life.name != begin.name || !life.runs,
           "AN-4: two actors of one name run at once, " + life.actor.Short() + " and " +
               actor.Short());
  }
  lives_[process] = {actor, begin.name, begin.incarnation, true};
  if (begin.name.empty()) return;
  const auto [had, first] = had_name_.try_emplace(begin.name, actor);
  if (!first && had->second != actor) ++successions_;
  had->second = actor;
}

void Checker::OnActorProcessGone(const ProcessId& process) {
  const auto life = lives_.find(process);
  if (life == lives_.end() || !life->second.runs) return;
  Note("life over", life->second.actor.Short() + " " + std::to_string(life->second.incarnation));
  life->second.runs = false;
}

bool Checker::Runs(const ActorId& actor, std::uint64_t incarnation,
                   const ProcessId& process) const {
  const auto life = lives_.find(process);
  return life != lives_.end() && life->second.runs && life->second.actor == actor &&
         life->second.incarnation == incarnation;
}

void Checker::OnObserved(const wire::Marker& marker) {
  const auto seen = observed_.emplace(marker.launch, marker.outcome).first;
  Expect(seen->second == marker.outcome, "S1: two outcomes of one launch were seen");
}

void Checker::OnAcknowledged(const LaunchId& launch, const RequestId& request) {
  const auto marker = markers_.find(launch);
  Expect(marker != markers_.end() && marker->second.request == request,
         "S9: an acknowledged Complete is not the marker");
}

void Checker::OnState(const head::State& state) {
  for (const auto& [id, node] : state.nodes) {
    Expect(IsKnown(state, node), "placement plans with what node " + node.name + " no longer is");
    Expect(node.holdings.taken() == TakenFrom(node),
           "node " + node.name + ": the sum of what it holds is wrong");
    if (node.dead) continue;
    head::Resources held;
    for (const auto& [lease, holding] : node.holdings) {
      if (holding.parent.IsNil()) held.Add(holding.amount);
    }
    Expect(held.FitsIn(node.total), "P1: the head promised more of a node than it has");
    for (const auto& [parent, amount] : InsideOf(node)) {
      Expect(amount.FitsIn(ReservedBy(node, parent)),
             "P1: what is inside a reservation, its ranks' shares included, is more than it");
    }
  }
  CheckAfter(state);
  std::map<std::pair<NodeId, std::uint32_t>, GroupId> gpus;
  for (const auto& [id, group] : state.groups) {
    if (group.state != wire::GroupState::kCreated || !group.spec.parent.IsNil()) continue;
    for (const wire::BundlePlace& place : group.places) {
      // A launch that lost a node is ending, and has nothing there any more: its other ranks say
      // their last word.
      const auto node = state.nodes.find(place.node);
      if (node == state.nodes.end() || node->second.holdings.count({id, group.attempt}) == 0)
        continue;
      for (const std::uint32_t gpu : place.gpu_ids) {
        const auto entry = gpus.emplace(std::make_pair(place.node, gpu), id).first;
        Expect(entry->second == id, "P7: one GPU in two groups");
      }
    }
  }
}

void Checker::CheckAfter(const head::State& state) {
  for (const auto& [id, launch] : state.launches) {
    if (launch.job.after.empty()) continue;
    for (const LaunchId& before : launch.job.after) {
      const auto other = state.launches.find(before);
      if (other == state.launches.end()) continue;
      const bool ended = !other->second.open();
      const bool succeeded = ended && other->second.marker->outcome == wire::Outcome::kSucceeded;
      Expect(!launch.open() || !ended || succeeded,
             "JB-2: a launch is open whose predecessor has not succeeded");
      if (succeeded) continue;
      const auto group = state.groups.find(launch.group);
      Expect(launch.epoch == 0 && (group == state.groups.end() || group->second.places.empty()),
             "JB-1: a launch has a place before its predecessor has succeeded");
    }
  }
}

std::uint64_t Checker::followed() const {
  std::uint64_t count = 0;
  for (const auto& [id, marker] : markers_) {
    const auto spec = submitted_.specs.find(id);
    if (marker.outcome != wire::Outcome::kSucceeded || spec == submitted_.specs.end()) continue;
    for (const wire::EnvVar& each : spec->second.environment.env) {
      if (each.name == head::kJobAfter) ++count;
    }
  }
  return count;
}

void Checker::CheckValues(const head::State& state) {
  for (const auto& [client, asked] : writing_) {
    const auto value = state.values.find({"", "of " + std::to_string(client.lo)});
    const std::uint64_t version = value == state.values.end() ? 0 : value->second.version;
    Expect(version >= written_[client].size(), "S9: an acknowledged write is lost");
    Expect(version <= asked.size(), "a write counted twice");
  }
}

void Checker::OnReplay(std::uint64_t rows) {
  Expect(rows == durable_, "an acknowledged event did not survive a crash");
}

}  // namespace troupe::sim
