#include "head/core/placed/people/quotas.h"

#include <algorithm>
#include <utility>

#include "head/core/machine/accounts.h"
#include "head/core/nodes/roles.h"
#include "head/core/placed/people/usage.h"

namespace troupe::head {
namespace {

using wire::CapKind;

constexpr std::size_t kUsersMax = 10'000;  // with a quota

constexpr CapKind kOfResources[] = {CapKind::kGpus, CapKind::kCpus};

const Caps& CapsOf(const Turn& turn, const std::string& name) {
  static const Caps none;
  const auto known = turn.state.users.by_name.find(name);
  return known == turn.state.users.by_name.end() ? none : known->second.caps;
}

Account AccountOf(const Turn& turn, const std::string& name) {
  const auto known = turn.state.users.by_name.find(name);
  return known == turn.state.users.by_name.end() ? Account() : known->second.account;
}

CapAmounts UseOf(const Account& account) {
  CapAmounts use{};
  Of(use, CapKind::kGpus) = account.held.Get("GPU");
  Of(use, CapKind::kCpus) = account.held.Get("CPU");
  Of(use, CapKind::kRunning) = account.running;
  Of(use, CapKind::kQueued) = account.queued;
  return use;
}

std::string Amount(CapKind kind, std::uint64_t amount) {
  switch (kind) {
    case CapKind::kGpus:
      return placement::AmountText(amount) + (amount == placement::kUnit ? " GPU" : " GPUs");
    case CapKind::kCpus:
      return placement::AmountText(amount) + (amount == placement::kUnit ? " CPU" : " CPUs");
    case CapKind::kRunning:
      return std::to_string(amount) + (amount == 1 ? " running launch" : " running launches");
    case CapKind::kQueued:
      break;
  }
  return std::to_string(amount) + (amount == 1 ? " waiting launch" : " waiting launches");
}

// "the quota of alice is 4 GPUs (3 in use)".
std::string CapAndUse(const std::string& user, CapKind kind, std::uint64_t cap,
                      const Account& account) {
  CapAmounts uses = UseOf(account);
  const std::uint64_t use = Of(uses, kind);
  const bool counts = kind == CapKind::kRunning || kind == CapKind::kQueued;
  return "the quota of " + user + " is " + Amount(kind, cap) + " (" +
         (counts ? std::to_string(use) + " now" : placement::AmountText(use) + " in use") + ")";
}

}  // namespace

void OnSetQuota(Turn& turn, const Request& request, const wire::SetQuota& message) {
  const bool own = message.user == turn.state.users.self;
  const std::string objection = own ? "" : ObjectionToUser(message.user);
  if (!objection.empty()) {
    turn.Refuse(request, ErrorCode::kInvalid, objection);
    return;
  }
  const auto& users = turn.state.users.by_name;
  const auto with_quota = static_cast<std::size_t>(std::count_if(
      users.begin(), users.end(), [](const auto& each) { return !each.second.caps.empty(); }));
  Caps caps = CapsOf(turn, message.user);
  if (caps.empty() && with_quota >= kUsersMax) {
    turn.Refuse(request, ErrorCode::kTooLarge,
                "there are quotas for " + std::to_string(kUsersMax) +
                    " owners, which is the limit\n  remove some: troupe quota remove OWNER");
    return;
  }
  for (const CapKind kind : message.lifted) caps.erase(kind);
  for (const wire::Cap& cap : message.caps) caps[cap.kind] = cap.most;
  if (caps != CapsOf(turn, message.user)) {
    turn.Append(QuotaOf(message.user, caps));
    turn.state.users.freed = true;
    turn.state.dirty = true;
  }
  turn.Reply(request, UsageOf(turn, request, message.user));
}

std::string OverQuota(const Turn& turn, const std::string& user, const Resources& wanted) {
  const Caps& caps = CapsOf(turn, user);
  if (caps.empty()) return {};
  const Account account = AccountOf(turn, user);
  CapAmounts needs{};
  Of(needs, CapKind::kGpus) = wanted.Get("GPU");
  Of(needs, CapKind::kCpus) = wanted.Get("CPU");
  for (const CapKind kind : kOfResources) {
    const auto cap = caps.find(kind);
    if (cap == caps.end() || Of(needs, kind) <= cap->second) continue;
    return "this asks for " + Amount(kind, Of(needs, kind)) + " and could never start: " +
           CapAndUse(user, kind, cap->second, account) +
           "\n  ask for less; the cluster's administrator sets quotas (troupe quota)";
  }
  return {};
}

std::string QueueFull(const Turn& turn, const std::string& user) {
  const Caps& caps = CapsOf(turn, user);
  const auto queued = caps.find(CapKind::kQueued);
  const Account account = AccountOf(turn, user);
  if (queued == caps.end() || account.queued < queued->second) return {};
  return "no more launches of " + user + " may wait: " +
         CapAndUse(user, CapKind::kQueued, queued->second, account) +
         "\n  submit again when some of them have started or were cancelled; the cluster's "
         "administrator sets quotas (troupe quota)";
}

std::string QuotaWaitedFor(const Turn& turn, const Group& group) {
  const std::string& user = turn.state.users.Named(group.spec.user);
  const Caps& caps = CapsOf(turn, user);
  if (caps.empty() || !group.waiting()) return {};
  const Account account = AccountOf(turn, user);
  CapAmounts use = UseOf(account);
  CapAmounts needs = NeedsOf(turn.state, group);
  for (const auto& [kind, most] : caps) {
    if (Of(needs, kind) == 0 || Of(use, kind) + Of(needs, kind) <= most) continue;
    return "quota: " + CapAndUse(user, kind, most, account) + "; this asks for " +
           Amount(kind, Of(needs, kind));
  }
  return {};
}

bool QuotaPass::Admits(const Turn& turn, Group& group, bool keeps) {
  const std::string& user = turn.state.users.Named(group.spec.user);
  const Caps& caps = CapsOf(turn, user);
  if (caps.empty()) return true;
  if (!group.needs) group.needs = NeedsOf(turn.state, group);
  CapAmounts& needs = *group.needs;
  CapAmounts use = UseOf(AccountOf(turn, user));
  CapAmounts& kept = kept_[user];
  bool admitted = true, ever = true;
  for (const auto& [kind, most] : caps) {
    const std::uint64_t need = Of(needs, kind);
    if (need == 0) continue;
    ever = ever && need <= most;
    admitted = admitted && Of(use, kind) + Of(kept, kind) + need <= most;
  }
  if (admitted || !ever || !keeps) return admitted;
  for (std::size_t kind = 0; kind < kept.size(); ++kind) kept[kind] += needs[kind];
  return false;
}

}  // namespace troupe::head
