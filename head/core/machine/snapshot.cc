#include "head/core/machine/snapshot.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "head/core/machine/accounts.h"
#include "head/core/machine/wire_convert.h"

namespace troupe::head {
namespace {

constexpr std::size_t kIdsPerEvent = 4096;

class Writer {
 public:
  void Put(wire::EventBody body, std::string attachment = {}) {
    events.push_back({std::move(body), std::move(attachment)});
  }
  std::vector<wire::Event> events;
};

void WriteNode(Writer& out, const Node& node) {
  wire::NodeKept kept;
  kept.registration = node.info;
  kept.registration.node = node.id;
  kept.name = node.name;
  kept.incarnation = node.incarnation;
  kept.dead = node.dead;
  kept.draining = node.draining;
  kept.why = node.why;
  kept.ended = node.ended;
  kept.heard_ns = static_cast<std::uint64_t>(node.heard_at.time_since_epoch().count());
  kept.boot_id = node.heard_boot;
  for (const auto& [lease, holding] : node.holdings) {
    if (holding.state == HoldingState::kReleasing) continue;
    wire::HoldingKept item;
    item.group = lease.first;
    item.attempt = lease.second;
    item.parent = holding.parent;
    item.held = holding.state == HoldingState::kHeld;
    item.amount = ToWire(holding.amount);
    kept.holdings.push_back(std::move(item));
  }
  out.Put(std::move(kept));
}

void WriteGroup(Writer& out, const Group& group) {
  wire::GroupKept kept;
  kept.spec = group.spec;
  kept.order = group.order;
  kept.state = group.state;
  kept.attempt = group.attempt;
  kept.attempting = group.attempting;
  kept.places = group.places;
  kept.reason = group.reason;
  kept.waits_since_us = group.waits_since_us;
  out.Put(std::move(kept));
}

void WriteLaunch(Writer& out, const Launch& launch) {
  wire::LaunchKept kept;
  kept.submitted.launch = launch.id;
  kept.submitted.spec = launch.spec;
  kept.submitted.request = launch.request;
  kept.submitted.owner = launch.owner;
  kept.submitted.line = launch.line;
  kept.submitted.token = launch.token;
  kept.submitted.user = launch.user;
  kept.submitted.nested = launch.nested;
  kept.submitted.group = launch.group;
  kept.submitted.submitted_us = launch.submitted_us;
  kept.order = launch.order;
  kept.phase = launch.phase;
  kept.epoch = launch.epoch;
  kept.attempt = launch.attempt;
  for (const Rank& rank : launch.ranks) {
    wire::RankKept item;
    item.node = rank.node;
    item.local_rank = rank.local_rank;
    item.done = rank.done;
    item.absorbed = rank.absorbed;
    item.life = rank.life;
    item.deaths = rank.deaths;
    item.unborn = rank.unborn;
    item.group = rank.group;
    item.attempt = rank.attempt;
    kept.ranks.push_back(std::move(item));
  }
  kept.nodes = launch.nodes;
  kept.roster = launch.roster;
  kept.reformed = launch.regroup.formed;
  kept.driver = launch.driver;
  kept.cancel_requested = launch.cancel_requested;
  kept.cancel_reason = launch.cancel_reason;
  if (launch.stop_asked) kept.cancel = *launch.stop_asked;
  kept.last_failure = launch.last_failure;
  kept.preemptions = launch.preemptions;
  kept.ended = launch.marker.has_value();
  if (launch.marker) kept.marker = *launch.marker;
  kept.marker_lived_us = launch.marker_lived_us;
  out.Put(std::move(kept), launch.marker ? launch.value : launch.payload);
  for (std::uint32_t r = 0; r < launch.ranks.size(); ++r) {
    if (launch.ranks[r].value.empty()) continue;
    wire::RankValueKept value;
    value.launch = launch.id;
    value.rank = r;
    out.Put(value, launch.ranks[r].value);
  }
}

void WriteActor(Writer& out, const Actor& actor) {
  wire::ActorKept kept;
  kept.created.spec = actor.spec;
  kept.created.owner = actor.owner;
  kept.created.line = actor.line;
  kept.created.token = actor.token;
  kept.created.user = actor.user;
  kept.created.root = actor.root;
  kept.created.launch = actor.launch;
  kept.created.epoch = actor.epoch;
  kept.created.group = actor.own_group;
  kept.state = actor.state;
  kept.incarnation = actor.incarnation;
  kept.place = actor.place;
  if (actor.place.node.IsNil()) {
    kept.place.node = actor.former.node;
    kept.place.incarnation = actor.former.incarnation;
  }
  kept.address = actor.address;
  kept.failure = actor.failure;
  kept.restarts = actor.restarts;
  kept.doomed = actor.doomed;
  kept.uncounted = actor.uncounted;
  kept.unwanted = actor.unwanted;
  kept.former_ended = actor.former.ended;
  out.Put(std::move(kept), actor.live() ? actor.payload : actor.exception);
}

void WriteRecentWrites(Writer& out, const RecentWrites& recent) {
  wire::RecentWritesKept kept;
  for (const RequestId& request : recent.in_order()) {
    kept.requests.push_back(request);
    if (kept.requests.size() == kIdsPerEvent) out.Put(std::exchange(kept, {}));
  }
  if (!kept.requests.empty()) out.Put(std::move(kept));
}

// Many in an event: a start reads all of them.
void WriteTombstones(Writer& out, const State& state) {
  wire::TombstonesKept kept;
  for (const LaunchId& id : state.tombstone_order) {
    const Tombstone& stone = state.tombstones.at(id);
    kept.launches.push_back({id, stone.outcome, stone.exit_code});
    if (kept.launches.size() == kIdsPerEvent) out.Put(std::exchange(kept, {}));
  }
  if (!kept.launches.empty()) out.Put(std::move(kept));
}

void WriteUser(Writer& out, const std::string& name, const User& user) {
  if (!user.caps.empty()) out.Put(QuotaOf(name, user.caps));
  for (const auto& [hour, sums] : user.used.hours()) out.Put(NoteOf(name, hour, sums));
}

}  // namespace

std::vector<wire::Event> EventsOf(const Launch& launch) {
  Writer out;
  WriteLaunch(out, launch);
  return std::move(out.events);
}

std::vector<wire::Event> SnapshotOf(const State& state) {
  Writer out;
  wire::SnapshotBegun begun;
  begun.incarnation = state.incarnation;
  begun.orders = state.orders;
  begun.lived_us = state.lived_us;
  begun.wall_us = state.seen_wall_us;
  out.Put(begun);
  for (const auto& [id, node] : state.nodes) WriteNode(out, node);
  for (const auto& [id, hash] : state.node_keys) {
    wire::NodeKeyed keyed;
    keyed.node = id;
    keyed.key_hash = hash;
    out.Put(std::move(keyed));
  }
  for (const auto& [id, group] : state.groups) {
    if (group.live()) WriteGroup(out, group);
  }
  for (const GroupId& id : state.ended_groups) WriteGroup(out, state.groups.at(id));
  for (const auto& [id, launch] : state.launches) WriteLaunch(out, launch);
  WriteTombstones(out, state);
  for (const auto& [id, actor] : state.actors) {
    if (actor.live()) WriteActor(out, actor);
  }
  for (const ActorId& id : state.dead_actors) {
    const auto dead = state.actors.find(id);
    if (dead != state.actors.end()) WriteActor(out, dead->second);
  }
  for (const auto& [key, value] : state.values) {
    wire::ValueWritten written;
    written.scope = key.first;
    written.key = key.second;
    written.version = value.version;
    written.line = value.line;
    out.Put(std::move(written), value.bytes);
  }
  WriteRecentWrites(out, state.recent_writes);
  for (const auto& [id, token] : state.tokens) out.Put(token);
  for (const auto& [name, user] : state.users.by_name) WriteUser(out, name, user);
  return std::move(out.events);
}

void Restore(State& state, const wire::SnapshotBegun& event, const std::string&) {
  state.incarnation = event.incarnation;
  state.orders = event.orders;
  state.lived_us = event.lived_us;
  state.seen_wall_us = event.wall_us;
}

void Restore(State& state, const wire::NodeKept& event, const std::string&) {
  state.changed_nodes.insert(event.registration.node);
  Node& node = state.nodes[event.registration.node];
  node.id = event.registration.node;
  node.name = event.name;
  node.incarnation = event.incarnation;
  node.info = event.registration;
  node.total = FromWire(event.registration.resources);
  node.dead = event.dead;
  if (node.dead) state.dead_nodes.push_back(node.id);
  if (!node.dead) state.node_names[node.name] = node.id;
  node.draining = event.draining;
  node.why = event.why;
  node.ended = event.ended;
  node.heard_at = Instant(Duration(static_cast<Duration::rep>(event.heard_ns)));
  node.heard_boot = event.boot_id;
  for (const wire::HoldingKept& item : event.holdings) {
    const Lease lease{item.group, item.attempt};
    node.holdings.Add(lease, item.parent, FromWire(item.amount));
    node.holdings.SetState(lease, item.held ? HoldingState::kHeld : HoldingState::kAsked);
  }
}

void Restore(State& state, const wire::GroupKept& event, const std::string&) {
  Group& group = state.groups[event.spec.group];
  group.spec = event.spec;
  group.order = event.order;
  group.state = event.state;
  group.attempt = event.attempt;
  group.attempting = event.attempting;
  group.places = event.places;
  group.reason = event.reason;
  group.waits_since_us = event.waits_since_us;
  if (group.waiting()) state.Enqueue(group);
  if (!group.live()) state.ended_groups.push_back(event.spec.group);
}

void Restore(State& state, const wire::LaunchKept& event, const std::string& attachment) {
  Launch& launch = state.launches[event.submitted.launch];
  launch.id = event.submitted.launch;
  launch.spec = event.submitted.spec;
  launch.request = event.submitted.request;
  launch.owner = event.submitted.owner;
  launch.line = event.submitted.line;
  launch.token = event.submitted.token;
  launch.user = state.users.Named(event.submitted.user);
  launch.nested = event.submitted.nested;
  launch.group = event.submitted.group;
  launch.submitted_us = event.submitted.submitted_us;
  launch.order = event.order;
  launch.phase = event.phase;
  launch.epoch = event.epoch;
  launch.attempt = event.attempt;
  launch.ranks.assign(event.ranks.size(), Rank());
  for (std::size_t r = 0; r < event.ranks.size(); ++r) {
    launch.ranks[r].node = event.ranks[r].node;
    launch.ranks[r].local_rank = event.ranks[r].local_rank;
    launch.ranks[r].done = event.ranks[r].done;
    launch.ranks[r].absorbed = event.ranks[r].absorbed;
    launch.ranks[r].life = event.ranks[r].life;
    launch.ranks[r].deaths = event.ranks[r].deaths;
    launch.ranks[r].unborn = event.ranks[r].unborn;
    launch.ranks[r].group = event.ranks[r].group;
    launch.ranks[r].attempt = event.ranks[r].attempt;
  }
  launch.nodes = event.nodes;
  launch.roster = event.roster;
  launch.regroup.formed = event.reformed;
  launch.driver = event.driver;
  launch.cancel_requested = event.cancel_requested;
  launch.cancel_reason = event.cancel_reason;
  if (event.cancel.hard) launch.stop_asked = event.cancel;
  launch.last_failure = event.last_failure;
  launch.preemptions = event.preemptions;
  launch.marker_lived_us = event.marker_lived_us;
  if (event.ended) {
    launch.marker = event.marker;
    state.ended.Add(launch.marker_lived_us, launch.id);
  }
  (event.ended ? launch.value : launch.payload) = attachment;
  NoteJob(state, launch);
  if (!launch.request.IsNil()) state.requests[launch.request] = launch.id;
  const bool run = launch.spec.mode == wire::LaunchMode::kCommand;
  if (run && launch.phase == wire::LaunchState::kStarting) state.waiting_runs.insert(launch.id);
}

void Restore(State& state, const wire::TombstonesKept& event, const std::string&) {
  for (const wire::LaunchRetired& each : event.launches) {
    const Tombstone stone{each.outcome, each.exit_code};
    if (state.tombstones.emplace(each.launch, stone).second)
      state.tombstone_order.push_back(each.launch);
  }
}

void Restore(State& state, const wire::RankValueKept& event, const std::string& attachment) {
  const auto launch = state.launches.find(event.launch);
  if (launch == state.launches.end() || event.rank >= launch->second.ranks.size()) return;
  launch->second.ranks[event.rank].value = attachment;
}

void Restore(State& state, const wire::ActorKept& event, const std::string& attachment) {
  const wire::ActorSpec& spec = event.created.spec;
  Actor& actor = state.actors[spec.actor];
  actor.spec = spec;
  actor.owner = event.created.owner;
  actor.line = event.created.line;
  actor.token = event.created.token;
  actor.user = state.users.Named(event.created.user);
  actor.root = event.created.root;
  actor.launch = event.created.launch;
  actor.epoch = event.created.epoch;
  actor.own_group = event.created.group;
  actor.state = event.state;
  actor.incarnation = event.incarnation;
  actor.address = event.address;
  actor.failure = event.failure;
  actor.restarts = event.restarts;
  actor.doomed = event.doomed;
  actor.uncounted = event.uncounted;
  actor.unwanted = event.unwanted;
  if (actor.state == wire::ActorState::kPending || !actor.live()) {
    actor.former = {event.place.node, event.place.incarnation, event.former_ended};
  } else {
    actor.place = event.place;
  }
  (actor.live() ? actor.payload : actor.exception) = attachment;
  if (!actor.live() || actor.ending()) state.ListFormerName(actor);
  if (!actor.live()) {
    state.dead_actors.push_back(spec.actor);
    return;
  }
  if (spec.leased) state.leased_actors.emplace(actor.owner, spec.actor);
  if (!spec.name.empty() && !actor.ending())
    state.names[ActorNameOf(actor)] = spec.actor;
  if (actor.state == wire::ActorState::kPending && actor.own_group.IsNil()) {
    state.pending_actors.insert(spec.actor);
  }
}

void Restore(State& state, const wire::QuotaWritten& event, const std::string&) {
  Caps caps;
  for (const wire::Cap& cap : event.caps) caps[cap.kind] = cap.most;
  state.users.by_name[event.user].caps = std::move(caps);
}

void Restore(State& state, const wire::UsageNoted& event, const std::string&) {
  placement::UsageWindow::Sums sums;
  for (const wire::Resource& each : event.held)
    sums[each.name] = static_cast<double>(each.ten_thousandths) / placement::kUnit;
  state.users.by_name[event.user].used.Set(event.hour, std::move(sums));
}

void Restore(State& state, const wire::RecentWritesKept& event, const std::string&) {
  for (const RequestId& request : event.requests) state.recent_writes.Note(request);
}

}  // namespace troupe::head
