#include "head/core/people/accounts.h"

#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "head/core/lived_time.h"
#include "head/core/wire_convert.h"

namespace troupe::head {
namespace {

constexpr Duration kNoteUsageEvery = std::chrono::minutes(5);
constexpr double kSecondUs = 1e6;

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

void Settle(State& state, User& user, std::uint64_t now_us) {
  if (user.counted_us < now_us && !user.counted.empty()) {
    user.used.Add(user.counted_us, now_us, placement::PartsOf(user.counted, TotalOf(state)));
    user.unnoted = true;
  }
  user.counted = user.account.held;
  user.counted_us = now_us;
}

wire::UserUsage RowOf(Turn& turn, const std::string& name) {
  wire::UserUsage row;
  row.user = name;
  const auto known = turn.state.users.by_name.find(name);
  if (known == turn.state.users.by_name.end()) return row;
  const User& user = known->second;
  row.held = ToWire(user.account.held);
  row.running = user.account.running;
  row.queued = user.account.queued;
  for (const auto& [kind, most] : user.caps) row.caps.push_back({kind, most});
  row.share = ShareOf(turn, name);
  return row;
}

bool IsForgotten(const User& user) {
  return user.caps.empty() && user.used.empty() && user.account == Account() &&
         user.counted.empty();
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

void CountAccounts(Turn& turn) {
  Users& users = turn.state.users;
  users.total_stale = true;
  users.noted_at = turn.now;
  const std::uint64_t now_us = LivedUs(turn.state, turn.now);
  for (auto& [name, account] : AccountsOf(turn.state))
    users.by_name[name].account = account;
  for (auto& [name, user] : users.by_name) {
    user.counted = user.account.held;
    user.counted_us = now_us;
    if (!user.used.empty()) user.noted_hour = user.used.hours().rbegin()->first;
  }
}

void SettleUsage(Turn& turn) {
  Users& users = turn.state.users;
  if (users.changed.empty()) return;
  const std::uint64_t now_us = LivedUs(turn.state, turn.now);
  for (const std::string& name : std::exchange(users.changed, {}))
    Settle(turn.state, users.by_name[name], now_us);
}

void NoteUsage(Turn& turn) {
  Users& users = turn.state.users;
  if (turn.state.read_only || turn.now - users.noted_at < kNoteUsageEvery) return;
  users.noted_at = turn.now;
  const std::uint64_t now_us = LivedUs(turn.state, turn.now);
  std::vector<wire::UsageNoted> notes;
  for (auto& [name, user] : users.by_name) {
    Settle(turn.state, user, now_us);
    user.used.Forget(now_us);
    if (!std::exchange(user.unnoted, false)) continue;
    const auto& hours = user.used.hours();
    for (auto hour = hours.lower_bound(user.noted_hour); hour != hours.end(); ++hour) {
      notes.push_back(NoteOf(name, hour->first, hour->second));
    }
    if (!hours.empty()) user.noted_hour = hours.rbegin()->first;
  }
  std::erase_if(users.by_name, [](const auto& each) { return IsForgotten(each.second); });
  for (wire::UsageNoted& note : notes) turn.Append(std::move(note));
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

double ShareOf(Turn& turn, const std::string& name, double ahead_s) {
  const auto known = turn.state.users.by_name.find(name);
  if (known == turn.state.users.by_name.end()) return 0;
  const User& user = known->second;
  const Resources& total = TotalOf(turn.state);
  const std::uint64_t now_us = LivedUs(turn.state, turn.now);
  placement::UsageWindow::Sums more;
  const double since_s = static_cast<double>(now_us - user.counted_us) / kSecondUs;
  for (const auto& [resource, part] : placement::PartsOf(user.counted, total))
    more[resource] += part * since_s;
  for (const auto& [resource, part] : placement::PartsOf(user.account.held, total))
    more[resource] += part * ahead_s;
  return user.used.DominantShare(now_us, std::move(more));
}

wire::UsageList UsageOf(Turn& turn, const Request& request, const std::string& user) {
  wire::UsageList list;
  list.asker = request.user;
  list.total = ToWire(TotalOf(turn.state));
  list.users.push_back(RowOf(turn, user));
  return list;
}

void OnGetUsage(Turn& turn, const Request& request, const wire::GetUsage& message) {
  if (message.mine || !message.user.empty()) {
    turn.Reply(request, UsageOf(turn, request, message.mine ? request.user : message.user));
    return;
  }
  wire::UsageList list;
  list.asker = request.user;
  list.total = ToWire(TotalOf(turn.state));
  for (const auto& [name, user] : turn.state.users.by_name) list.users.push_back(RowOf(turn, name));
  turn.Reply(request, std::move(list));
}

}  // namespace troupe::head
