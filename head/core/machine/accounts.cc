#include "head/core/machine/accounts.h"

#include <cmath>
#include <utility>

#include "head/core/machine/wire_convert.h"

namespace troupe::head {
namespace {

// Returns false for groups inside another reservation, which take nothing more, and for a spare,
// which takes the place of ranks that the launch's own reservation still counts.
bool IsTopLevel(const Group& group) {
  return group.spec.parent.IsNil() && group.spec.replaces.empty();
}

// Returns one group's part of a user's account.
Account PartOf(const State& state, const Group& group) {
  Account part;
  if (!group.live() || !IsTopLevel(group)) return part;
  for (const wire::BundlePlace& place : group.places) part.held.Add(FromWire(place.resources));
  if (!CountsAsLaunch(state, group)) return part;
  (group.places.empty() ? part.queued : part.running) = 1;
  return part;
}

void Add(Account& to, const Account& part) {
  to.held.Add(part.held);
  to.running += part.running;
  to.queued += part.queued;
}

void Take(Account& from, const Account& part) {
  from.held.Subtract(part.held);
  from.running -= part.running;
  from.queued -= part.queued;
}

}  // namespace

Recount::Recount(State& state, const GroupId& group) : state_(state), group_(group) {
  if (state.replaying) return;
  const auto known = state.groups.find(group);
  if (known == state.groups.end()) return;
  user_ = state.users.Named(known->second.spec.user);
  before_ = PartOf(state, known->second);
}

Recount::~Recount() {
  if (state_.replaying) return;
  Account after;
  if (const auto known = state_.groups.find(group_); known != state_.groups.end()) {
    user_ = state_.users.Named(known->second.spec.user);
    after = PartOf(state_, known->second);
  }
  if (after == before_) return;
  User& user = state_.users.by_name[user_];
  Take(user.account, before_);
  Add(user.account, after);
  state_.users.changed.insert(user_);
  const bool less = after.running < before_.running || !before_.held.FitsIn(after.held);
  if (!less || user.caps.empty()) return;
  state_.users.freed = true;
  state_.dirty = true;
}

std::map<std::string, Account> AccountsOf(const State& state) {
  std::map<std::string, Account> accounts;
  for (const auto& [id, group] : state.groups) {
    const Account part = PartOf(state, group);
    if (part != Account()) Add(accounts[state.users.Named(group.spec.user)], part);
  }
  return accounts;
}

bool CountsAsLaunch(const State& state, const Group& group) {
  if (!group.spec.gang) return false;
  const auto launch = state.launches.find(group.spec.launch);
  return launch != state.launches.end() && !launch->second.nested;
}

CapAmounts NeedsOf(const State& state, const Group& group) {
  CapAmounts needs{};
  if (!IsTopLevel(group)) return needs;
  const auto launch = state.launches.find(group.spec.launch);
  const bool gang = group.spec.gang && launch != state.launches.end();
  const Resources wanted =
      gang ? FromWire(launch->second.spec.per_rank).Times(launch->second.spec.ranks)
           : WantedBy(group.spec);
  Of(needs, wire::CapKind::kGpus) = wanted.Get("GPU");
  Of(needs, wire::CapKind::kCpus) = wanted.Get("CPU");
  Of(needs, wire::CapKind::kRunning) = CountsAsLaunch(state, group) ? 1 : 0;
  return needs;
}

wire::QuotaWritten QuotaOf(const std::string& name, const Caps& caps) {
  wire::QuotaWritten written;
  written.user = name;
  for (const auto& [kind, most] : caps) written.caps.push_back({kind, most});
  return written;
}

wire::UsageNoted NoteOf(const std::string& name, std::uint64_t hour,
                        const placement::UsageWindow::Sums& sums) {
  wire::UsageNoted note;
  note.user = name;
  note.hour = hour;
  for (const auto& [resource, seconds] : sums) {
    const double amount = seconds * static_cast<double>(placement::kUnit);
    note.held.push_back({resource, static_cast<std::uint64_t>(std::llround(amount))});
  }
  return note;
}

Resources WantedBy(const wire::GroupSubmitted& spec) {
  Resources wanted;
  for (const wire::Bundle& bundle : spec.bundles) wanted.Add(FromWire(bundle.resources));
  return wanted;
}

const Resources& TotalOf(State& state) {
  Users& users = state.users;
  if (!std::exchange(users.total_stale, false)) return users.total;
  users.total = Resources();
  for (const auto& [id, node] : state.nodes) {
    if (!node.dead) users.total.Add(node.total);
  }
  return users.total;
}

}  // namespace troupe::head
