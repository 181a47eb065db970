#include "tests/sim/people/people_checker.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "head/core/machine/lived_time.h"
#include "head/core/machine/wire_convert.h"

namespace troupe::sim {
namespace {

using head::Of;
using wire::CapKind;

constexpr double kDayS = 24.0 * 3600;
constexpr double kNotedEveryS = 300;
constexpr double kSpreadMost = 0.05;

head::Resources TotalOf(const head::State& state) {
  head::Resources total;
  for (const auto& [id, node] : state.nodes) {
    if (!node.dead) total.Add(node.total);
  }
  return total;
}

head::CapAmounts UseOf(const head::Account& account) {
  head::CapAmounts use{};
  Of(use, CapKind::kGpus) = account.held.Get("GPU");
  Of(use, CapKind::kCpus) = account.held.Get("CPU");
  Of(use, CapKind::kRunning) = account.running;
  return use;
}

double LargestOf(const std::map<std::string, double>& seconds) {
  double most = 0;
  for (const auto& [name, value] : seconds) most = std::max(most, value);
  return most;
}

}  // namespace

void PeopleChecker::OnCrash() {
  counted_.reset();
  ++changes_;
}

void PeopleChecker::OnState(const head::State& state, std::uint64_t life) {
  if (counted_) AddHeld(state);
  CheckAccounts(state);
  // A head that starts knows what was durable: less, perhaps, than at the step before.
  const bool starts = std::exchange(life_, life) != life;
  if (starts) {
    launches_.clear();
    for (const auto& [id, launch] : state.launches) launches_.insert(id);
  } else {
    CheckSubmitted(state);
  }
  orders_ = state.orders;
  for (const auto& [name, user] : state.users.by_name) {
    Owner& owner = owners_[name];
    if (!starts) CheckCaps(user, name, owner);
    owner.account = user.account;
  }
  CheckWaits(state);
  head::Resources total = TotalOf(state);
  if (!(total == total_)) ++changes_;
  total_ = std::move(total);
  counted_ = loop_.Now();
}

void PeopleChecker::AddHeld(const head::State& state) {
  const double seconds = Seconds(loop_.Now() - *counted_);
  for (auto& [name, owner] : owners_) {
    for (const auto& [resource, part] : placement::PartsOf(owner.account.held, total_)) {
      owner.seconds[resource] += part * seconds;
      owner.part_max = std::max(owner.part_max, part);
    }
    // Forgotten by the head: they hold nothing.
    if (state.users.by_name.count(name) == 0) owner.account = head::Account();
  }
}

void PeopleChecker::CheckAccounts(const head::State& state) const {
  std::map<std::string, head::Account> kept;
  for (const auto& [name, user] : state.users.by_name) {
    if (user.account != head::Account()) kept[name] = user.account;
  }
  checker_.Expect(kept == head::AccountsOf(state),
                  "PE-2: an owner's account is not what a count over all reservations gives");
}

void PeopleChecker::CheckCaps(const head::User& user, const std::string& name,
                              const Owner& before) {
  head::CapAmounts was = UseOf(before.account);
  head::CapAmounts is = UseOf(user.account);
  for (const auto& [kind, most] : user.caps) {
    checker_.Expect(Of(is, kind) <= Of(was, kind) || Of(is, kind) <= most,
                    "PE-1: " + name + " was granted something that takes them over the cap on " +
                        wire::NameOf(kind));
  }
}

void PeopleChecker::CheckSubmitted(const head::State& state) {
  if (state.orders == orders_) return;
  for (const auto& [id, launch] : state.launches) {
    if (!launches_.insert(id).second) continue;
    const auto user = state.users.by_name.find(launch.user);
    if (user == state.users.by_name.end()) continue;
    const head::Resources wanted =
        head::FromWire(launch.spec.per_rank).Times(launch.spec.ranks);
    for (const auto& [kind, most] : user->second.caps) {
      const char* resource = kind == CapKind::kGpus ? "GPU" : kind == CapKind::kCpus ? "CPU" : "";
      checker_.Expect(wanted.Get(resource) <= most,
                      "PE-1: a launch of " + launch.user + " was taken that is over a cap");
      checker_.Expect(kind != CapKind::kQueued || owners_[launch.user].account.queued < most,
                      "PE-1: a launch of " + launch.user + " was taken when no more may wait");
    }
  }
}

void PeopleChecker::CheckWaits(const head::State& state) {
  std::set<std::string> waiting, begins;
  std::set<GroupId> known;
  for (const auto& [id, group] : state.groups) {
    if (!group.live() || !group.spec.gang) continue;
    const std::string& user = state.users.Named(group.spec.user);
    if (group.state != wire::GroupState::kCreated) {
      waiting.insert(user);
      if (granted_.count(id) > 0) begins.insert(user);  // the node is lost: another first request
      continue;
    }
    known.insert(id);
    if (granted_.count(id) > 0) continue;
    begins.insert(user);
    ++grants_;
    checker_.Note("granted", user + " " + id.Short());
  }
  granted_ = std::move(known);
  for (auto& [name, owner] : owners_) {
    if (waiting.count(name) == 0 || begins.count(name) > 0 || owner.since == Instant{})
      owner.since = waiting.count(name) == 0 ? Instant{} : loop_.Now();
    if (owner.since == Instant{}) continue;
    longest_wait_ = std::max(longest_wait_, loop_.Now() - owner.since);
    checker_.Expect(!granted_within_ || loop_.Now() - owner.since <= *granted_within_,
                    "PE-3: " + name + " starves: none of their requests was granted for " +
                        std::to_string(Millis(loop_.Now() - owner.since) / 1000) + " s");
  }
}

double PeopleChecker::SpreadOf(const std::set<std::string>& equals) const {
  double least = kDayS, most = 0;
  for (const std::string& name : equals) {
    const auto owner = owners_.find(name);
    const double share = owner == owners_.end() ? 0 : LargestOf(owner->second.seconds);
    least = std::min(least, share);
    most = std::max(most, share);
  }
  return most == 0 ? 0 : (most - least) / most;
}

void PeopleChecker::CheckShares(const std::set<std::string>& equals) {
  const double spread = SpreadOf(equals);
  std::string text = "PE-4: over a day the shares of equals differ by " +
                     std::to_string(100 * spread) + " %:";
  for (const std::string& name : equals) {
    text += " " + name + " " + std::to_string(LargestOf(owners_[name].seconds) / kDayS);
  }
  checker_.Expect(spread <= kSpreadMost, text);
}

void PeopleChecker::CheckUsage(const head::State& state) {
  const std::uint64_t now_us = head::LivedUs(state, loop_.Now());
  for (const auto& [name, owner] : owners_) {
    const auto user = state.users.by_name.find(name);
    // Current holdings are added to `used` when somebody asks, and every five minutes.
    const double said =
        user == state.users.by_name.end() ? 0 : user->second.used.DominantShare(now_us) * kDayS;
    const double held = LargestOf(owner.seconds);
    const double apart = kNotedEveryS * owner.part_max * static_cast<double>(changes_ + 1);
    checker_.Expect(std::abs(said - held) <= apart,
                    "PE-5: " + name + " has held all of the cluster for " + std::to_string(held) +
                        " s, and the head says " + std::to_string(said));
  }
}

}  // namespace troupe::sim
