#include "head/core/machine/apply.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

#include "head/core/machine/accounts.h"
#include "head/core/machine/snapshot.h"
#include "head/core/machine/verdict.h"
#include "head/core/machine/wire_convert.h"

namespace troupe::head {

namespace {

constexpr std::size_t kEndedGroupsMax = 1000;

// The fold of events into the state: one overload per kind of event.
class Folder {
 public:
  Folder(State& state, const std::string& attachment) : s_(state), attachment_(attachment) {}

  void operator()(const wire::HeadStarted& e) { s_.incarnation = e.incarnation; }

  void operator()(const wire::NodeJoined& e) {
    s_.changed_nodes.insert(e.registration.node);
    s_.users.total_stale = true;
    Node& node = s_.nodes[e.registration.node];
    FreeName(node);
    if (node.dead) std::erase(s_.dead_nodes, node.id);
    s_.node_names[e.name] = e.registration.node;
    // A worker that registers again still drains; one that was started anew does not.
    node.draining = node.draining && !node.dead && node.info.pid == e.registration.pid;
    if (!node.draining) node.why.clear();
    node.id = e.registration.node;
    node.name = e.name;
    node.incarnation = e.incarnation;
    node.info = e.registration;
    node.total = FromWire(e.registration.resources);
    node.dead = false;
    node.ended = false;
  }
  void operator()(const wire::NodeDied& e) {
    Node* node = ChangeNode(e.node);
    if (node == nullptr || node->incarnation != e.incarnation) return;
    if (!node->dead) s_.dead_nodes.push_back(e.node);
    node->dead = true;
    s_.users.total_stale = true;
    FreeName(*node);
    node->why = e.cause;
    node->ended = e.ended;
    node->heard_at = Instant(Duration(static_cast<Duration::rep>(e.heard_ns)));
    node->heard_boot = e.boot_id;
    node->holdings.clear();
  }
  void operator()(const wire::NodeKeyed& e) {
    if (!e.key_hash.empty()) {
      s_.node_keys[e.node] = e.key_hash;
      return;
    }
    s_.node_keys.erase(e.node);  // without a key: it is forgotten
    const auto node = s_.nodes.find(e.node);
    if (node == s_.nodes.end() || !node->second.dead) return;
    s_.changed_nodes.insert(e.node);
    s_.nodes.erase(node);
    std::erase(s_.dead_nodes, e.node);
  }
  void operator()(const wire::NodeDrained& e) {
    Node* node = ChangeNode(e.node);
    if (node == nullptr) return;
    node->draining = true;
    node->why = e.reason;
  }

  void operator()(const wire::GroupSubmitted& e) {
    const Recount recount(s_, e.group);
    Group group;
    group.spec = e;
    group.order = ++s_.orders;
    group.waits_since_us = e.submitted_us;
    s_.Enqueue(group);
    s_.groups.emplace(e.group, std::move(group));
  }
  void operator()(const wire::GroupAttempted& e) {
    const Recount recount(s_, e.group);
    Group* group = FindGroup(e.group);
    if (group == nullptr) return;
    group->attempt = e.attempt;
    group->attempting = true;
    s_.Dequeue(*group);
    group->places = e.places;
    for (const wire::BundlePlace& place : e.places) {
      Node* node = ChangeNode(place.node);
      if (node == nullptr) continue;
      node->holdings.Add({e.group, e.attempt}, group->spec.parent, FromWire(place.resources));
    }
  }
  void operator()(const wire::GroupPlaced& e) {
    Group* group = FindGroup(e.group);
    if (group == nullptr || group->attempt != e.attempt) return;
    group->attempting = false;
    group->state = wire::GroupState::kCreated;
    group->places = e.places;
    group->reason.clear();
    Mark(*group, HoldingState::kHeld);
  }
  void operator()(const wire::GroupUnplaced& e) {
    const Recount recount(s_, e.group);
    Group* group = FindGroup(e.group);
    if (group == nullptr || group->attempt != e.attempt) return;
    if (group->state == wire::GroupState::kCreated) {
      group->state = wire::GroupState::kRescheduling;
      group->waits_since_us = e.wall_us;
    }
    Mark(*group, HoldingState::kReleasing);
    group->attempting = false;
    s_.Enqueue(*group);
    group->places.clear();
    group->reason = e.reason;
  }
  void operator()(const wire::GroupEnded& e) {
    const Recount recount(s_, e.group);
    Group* group = FindGroup(e.group);
    if (group == nullptr) return;
    Mark(*group, HoldingState::kReleasing);
    s_.Dequeue(*group);
    group->state = wire::GroupState::kRemoved;
    group->attempting = false;
    group->places.clear();
    group->reason = e.reason;
    // A launch's group or one actor's is asked for by nobody else.
    if (group->spec.gang || !group->spec.actor.IsNil()) {
      s_.groups.erase(e.group);
      return;
    }
    s_.ended_groups.push_back(e.group);
    if (s_.ended_groups.size() <= kEndedGroupsMax) return;
    s_.groups.erase(s_.ended_groups.front());
    s_.ended_groups.pop_front();
  }

  void operator()(const wire::LaunchSubmitted& e) {
    Launch launch;
    launch.id = e.launch;
    launch.spec = e.spec;
    NoteJob(s_, launch);
    launch.payload = attachment_;
    launch.request = e.request;
    launch.owner = e.owner;
    launch.line = e.line;
    launch.token = e.token;
    launch.user = s_.users.Named(e.user);
    launch.nested = e.nested;
    launch.group = e.group;
    launch.submitted_us = e.submitted_us;
    launch.order = ++s_.orders;
    if (!e.request.IsNil()) s_.requests[e.request] = e.launch;
    s_.launches.emplace(e.launch, std::move(launch));
  }
  void operator()(const wire::EpochBegun& e) {
    Launch* launch = FindLaunch(e.launch);
    if (launch == nullptr) return;
    launch->epoch = e.epoch;
    launch->attempt = e.attempt;
    launch->phase = wire::LaunchState::kStarting;
    launch->nodes = e.nodes;
    launch->driver = RequestId();
    launch->roster = wire::RosterPublished();
    if (launch->spec.mode == wire::LaunchMode::kCommand) s_.waiting_runs.insert(e.launch);
    ForgetProcesses(*launch);
    launch->ranks.assign(e.ranks.size(), Rank());
    for (const wire::RankPlacement& place : e.ranks) {
      if (place.rank >= launch->ranks.size()) continue;
      launch->ranks[place.rank].node = place.node;
      launch->ranks[place.rank].local_rank = place.local_rank;
    }
    launch->regroup = Regroup();
  }
  void operator()(const wire::RosterPublished& e) {
    Launch* launch = FindLaunch(e.launch);
    if (launch == nullptr || launch->epoch != e.epoch) return;
    launch->roster = e;
    launch->phase = wire::LaunchState::kRunning;
    s_.waiting_runs.erase(e.launch);
  }
  void operator()(const wire::DriverAcquired& e) {
    Launch* launch = FindLaunch(e.launch);
    if (launch != nullptr && launch->epoch == e.epoch) launch->driver = e.nonce;
  }
  void operator()(const wire::RankFinished& e) {
    Launch* launch = FindLaunch(e.done.launch);
    if (launch == nullptr || launch->epoch != e.done.epoch) return;
    if (e.done.rank >= launch->ranks.size()) return;
    launch->ranks[e.done.rank].done = e.done;
    launch->ranks[e.done.rank].value = attachment_;
  }
  void operator()(const wire::GroupReformed& e) {
    Launch* launch = FindLaunch(e.launch);
    if (launch == nullptr || launch->epoch != e.epoch) return;
    launch->regroup.formed = e;
    for (Rank& rank : launch->ranks) {
      rank.absorbed = rank.absorbed || rank.done.outcome == wire::Outcome::kFailed;
      if (Replaced(rank)) rank.done = wire::RankDone();
    }
  }
  void operator()(const wire::RankReplaced& e) {
    Launch* launch = FindLaunch(e.launch);
    if (launch == nullptr || launch->epoch != e.epoch || e.rank >= launch->ranks.size()) return;
    Rank& rank = launch->ranks[e.rank];
    s_.rank_processes.erase(rank.process);
    Rank next;
    const bool moves = !e.node.IsNil();
    next.node = moves ? e.node : rank.node;
    next.local_rank = moves ? e.local_rank : rank.local_rank;
    next.group = moves ? e.group : rank.group;
    next.attempt = moves ? e.attempt : rank.attempt;
    next.life = e.group_epoch;
    next.deaths = rank.deaths + 1;
    next.unborn = UnbornOf(*launch, rank);
    next.done = rank.done;
    next.done.outcome = wire::Outcome::kNone;
    rank = std::move(next);
    if (std::find(launch->nodes.begin(), launch->nodes.end(), rank.node) == launch->nodes.end())
      launch->nodes.push_back(rank.node);
  }
  void operator()(const wire::EpochFailed& e) {
    Launch* launch = FindLaunch(e.launch);
    if (launch == nullptr || launch->epoch != e.epoch) return;
    launch->last_failure = e.failure;
    launch->preemptions += e.preempted ? 1 : 0;
    launch->phase = wire::LaunchState::kQueued;
    launch->driver = RequestId();
  }
  void operator()(const wire::CancelRequested& e) {
    Launch* launch = FindLaunch(e.launch);
    if (launch == nullptr) return;
    if (e.hard) {
      if (!launch->stop_asked) launch->stop_asked = e;
      return;
    }
    launch->cancel_requested = true;
    launch->cancel_reason = e.reason;
  }
  void operator()(const wire::MarkerWritten& e) {
    Launch* launch = FindLaunch(e.marker.launch);
    if (launch == nullptr || launch->marker) return;  // S6: the first one stands
    launch->marker = e.marker;
    launch->marker_lived_us = e.lived_us;
    s_.ended.Add(e.lived_us, launch->id);
    ForgetProcesses(*launch);
    launch->phase = wire::LaunchState::kTerminal;
    s_.waiting_runs.erase(e.marker.launch);
    DropJob(s_, *launch);
    launch->value = attachment_;
    launch->payload.clear();
  }
  void operator()(const wire::LaunchRetired& e) {
    // A snapshot has the tombstone alone.
    if (const Launch* launch = FindLaunch(e.launch)) {
      s_.requests.erase(launch->request);
      s_.ended.Remove(launch->marker_lived_us, e.launch);
    }
    s_.launches.erase(e.launch);
    const bool is_new =
        s_.tombstones.insert_or_assign(e.launch, Tombstone{e.outcome, e.exit_code}).second;
    if (is_new) s_.tombstone_order.push_back(e.launch);
    if (s_.tombstone_order.size() <= kTombstonesMax) return;
    s_.tombstones.erase(s_.tombstone_order.front());
    s_.tombstone_order.pop_front();
  }
  void operator()(const wire::LaunchDisowned& e) {
    Launch* launch = FindLaunch(e.launch);
    if (launch == nullptr) return;
    launch->owner = e.owner;
    launch->token = e.token;
  }

  void operator()(const wire::ActorCreated& e) {
    Actor actor;
    actor.spec = e.spec;
    actor.payload = attachment_;
    actor.owner = e.owner;
    actor.line = e.line;
    actor.token = e.token;
    actor.user = s_.users.Named(e.user);
    actor.root = e.root;
    actor.launch = e.launch;
    actor.epoch = e.epoch;
    actor.own_group = e.group;
    actor.incarnation = 1;
    if (!e.spec.name.empty()) s_.names[{e.launch, e.spec.namespace_, e.spec.name}] = e.spec.actor;
    if (e.group.IsNil()) s_.pending_actors.insert(e.spec.actor);
    if (e.spec.leased) s_.leased_actors.emplace(e.owner, e.spec.actor);
    s_.actors.emplace(e.spec.actor, std::move(actor));
  }
  void operator()(const wire::ActorPlaced& e) {
    Actor* actor = FindActor(e.actor);
    if (actor == nullptr) return;
    actor->state = wire::ActorState::kStarting;
    actor->incarnation = e.incarnation;
    actor->place = e;
    actor->former = FormerLife();
    s_.pending_actors.erase(e.actor);
  }
  void operator()(const wire::ActorLive& e) {
    Actor* actor = FindActor(e.actor);
    if (actor == nullptr || actor->incarnation != e.incarnation) return;
    actor->state = wire::ActorState::kAlive;
    actor->address = e.address;
  }
  void operator()(const wire::ActorDoomed& e) {
    Actor* actor = FindActor(e.actor);
    if (actor == nullptr) return;
    actor->doomed = true;
    FreeName(*actor);
    s_.ListFormerName(*actor);
  }
  void operator()(const wire::ActorDied& e) {
    Actor* actor = FindActor(e.actor);
    if (actor == nullptr || actor->incarnation != e.incarnation || !actor->live()) return;
    actor->failure = e.failure;
    actor->exception = attachment_;
    if (!actor->place.node.IsNil()) {
      actor->former = {actor->place.node, actor->incarnation, e.ended};
    } else if (e.ended) {  // a life that never began says nothing of the one before it
      actor->former.ended = true;
    }
    actor->place = wire::ActorPlaced();
    if (e.restart) {
      actor->state = wire::ActorState::kPending;
      ++actor->incarnation;
      ++actor->restarts;
      if (actor->own_group.IsNil()) s_.pending_actors.insert(e.actor);
      return;
    }
    actor->state = wire::ActorState::kDead;
    s_.pending_actors.erase(e.actor);
    s_.leased_actors.erase({actor->owner, e.actor});
    actor->payload.clear();
    FreeName(*actor);
    s_.ListFormerName(*actor);
    s_.dead_actors.push_back(e.actor);
  }
  void operator()(const wire::ActorHandles& e) {
    Actor* actor = FindActor(e.actor);
    if (actor == nullptr) return;
    actor->uncounted = e.uncounted;
    actor->unwanted = e.unwanted;
    if (!actor->unwanted) return;
    FreeName(*actor);
    s_.ListFormerName(*actor);
  }
  void operator()(const wire::ActorForgotten& e) {
    if (const Actor* actor = FindActor(e.actor)) s_.DropFormerName(*actor);
    s_.actors.erase(e.actor);
    auto& dead = s_.dead_actors;
    dead.erase(std::remove(dead.begin(), dead.end(), e.actor), dead.end());
  }

  void operator()(const wire::ValueWritten& e) {
    const auto [value, fresh] = s_.values.try_emplace({e.scope, e.key});
    if (!fresh) s_.values_bytes -= BytesOf(value->first, value->second.bytes);
    value->second = {e.version, attachment_, e.line};
    s_.values_bytes += BytesOf(value->first, value->second.bytes);
    s_.recent_writes.Note(e.request);
  }
  void operator()(const wire::ValueErased& e) {
    const auto value = s_.values.find({e.scope, e.key});
    if (value != s_.values.end()) {
      s_.values_bytes -= BytesOf(value->first, value->second.bytes);
      s_.values.erase(value);
    }
    s_.recent_writes.Note(e.request);
  }
  void operator()(const wire::TokenWritten& e) {
    if (e.role == wire::Role::kNone) {  // forgotten: no token is without a role
      s_.tokens.erase(e.id);
    } else {
      s_.tokens[e.id] = e;
    }
  }

  void operator()(const wire::TimePassed& e) {
    s_.lived_us = e.lived_us;
    s_.seen_wall_us = e.wall_us;
  }

  // Events that a snapshot is made of.
  template <class Kept>
  void operator()(const Kept& e) {
    Restore(s_, e, attachment_);
  }

 private:
  Group* FindGroup(const GroupId& id) {
    const auto found = s_.groups.find(id);
    return found == s_.groups.end() ? nullptr : &found->second;
  }
  Launch* FindLaunch(const LaunchId& id) {
    const auto found = s_.launches.find(id);
    return found == s_.launches.end() ? nullptr : &found->second;
  }
  Actor* FindActor(const ActorId& id) {
    const auto found = s_.actors.find(id);
    return found == s_.actors.end() ? nullptr : &found->second;
  }
  Node* ChangeNode(const NodeId& id) {
    const auto found = s_.nodes.find(id);
    if (found == s_.nodes.end()) return nullptr;
    s_.changed_nodes.insert(id);
    return &found->second;
  }
  void ForgetProcesses(const Launch& launch) {
    for (const Rank& rank : launch.ranks) s_.rank_processes.erase(rank.process);
  }
  void FreeName(const Actor& actor) {
    const auto found = s_.names.find(ActorNameOf(actor));
    if (found != s_.names.end() && found->second == actor.spec.actor) s_.names.erase(found);
  }
  void FreeName(const Node& node) {
    const auto found = s_.node_names.find(node.name);
    if (found != s_.node_names.end() && found->second == node.id) s_.node_names.erase(found);
  }
  void Mark(const Group& group, HoldingState state) {
    for (const wire::BundlePlace& place : group.places) {
      Node* node = ChangeNode(place.node);
      if (node == nullptr) continue;
      const auto holding = node->holdings.find({group.spec.group, group.attempt});
      if (holding == node->holdings.end()) continue;
      // In replay what was released is gone: nodes report what they still hold.
      if (s_.replaying && state == HoldingState::kReleasing) {
        node->holdings.erase(holding);
      } else {
        node->holdings.SetState(holding->first, state);
      }
    }
  }

  State& s_;
  const std::string& attachment_;
};

}  // namespace

void Apply(State& state, const wire::Event& event) {
  wire::Visit(Folder(state, event.attachment), event.body);
}

}  // namespace troupe::head
