#include "head/core/placed/people/usage.h"

#include <chrono>
#include <utility>
#include <vector>

#include "head/core/machine/accounts.h"
#include "head/core/machine/lived_time.h"
#include "head/core/machine/wire_convert.h"

namespace troupe::head {
namespace {

constexpr Duration kNoteUsageEvery = std::chrono::minutes(5);
constexpr double kUsPerSecond = 1e6;

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

double ShareOf(Turn& turn, const std::string& name, double ahead_s) {
  const auto known = turn.state.users.by_name.find(name);
  if (known == turn.state.users.by_name.end()) return 0;
  const User& user = known->second;
  const Resources& total = TotalOf(turn.state);
  const std::uint64_t now_us = LivedUs(turn.state, turn.now);
  placement::UsageWindow::Sums more;
  const double since_s = static_cast<double>(now_us - user.counted_us) / kUsPerSecond;
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
