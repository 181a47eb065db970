#include "actors/train/supervisor.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "runtime/base/signals_blocked.h"

namespace troupe::train {
namespace {

void Append(GroupEffects& effects, GroupEffects more) {
  effects.acts.insert(effects.acts.end(), more.acts.begin(), more.acts.end());
  if (!more.text.empty()) effects.text = std::move(more.text);
}

std::string WhyOf(const Status& status) { return status.ok() ? std::string() : MessageOf(status); }

}  // namespace

void EndThisProcess(const std::string& sentence) {
  std::fprintf(stderr, "troupe: %s\n", sentence.c_str());
  std::fflush(stderr);
  kill(getpid(), SIGKILL);
}

Supervisor::Supervisor(const Clock& clock, std::function<void(const std::string&)> end_process)
    : clock_(clock), end_process_(std::move(end_process)) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { Run(); });
}

Supervisor::~Supervisor() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    for (auto& [id, group] : groups_)
      if (!group.pending.stop) group.pending.stop = "its process ends";
    changed_.NotifyAll();
  }
  thread_.join();
}

Supervisor::Id Supervisor::Add(std::shared_ptr<Supervised> driven, GroupRules rules) {
  MutexLock lock(mutex_);
  Group group{std::move(driven), std::move(rules), {}, {}};
  group.pending.begin = true;
  groups_.emplace(++last_, std::move(group));
  changed_.NotifyAll();
  return last_;
}

void Supervisor::Post(Id group, const std::function<void(Pending&)>& change) {
  MutexLock lock(mutex_);
  const auto found = groups_.find(group);
  if (found == groups_.end()) return;
  change(found->second.pending);
  changed_.NotifyAll();
}

void Supervisor::Stop(std::span<const Id> groups, const std::string& reason) {
  MutexLock lock(mutex_);  // once for all: they are decided in one turn
  for (const Id id : groups) {
    const auto found = groups_.find(id);
    if (found != groups_.end() && !found->second.pending.stop) found->second.pending.stop = reason;
  }
  changed_.NotifyAll();
}

void Supervisor::SurvivorsStopped(Id group) {
  Post(group, [](Pending& pending) { pending.survivors = true; });
}

void Supervisor::Release(Id group) {
  Post(group, [](Pending& pending) { pending.release = true; });
}

void Supervisor::Running(Id group) {
  const Instant now = clock_.Now();
  MutexLock lock(mutex_);
  const auto found = groups_.find(group);
  if (found == groups_.end() || found->second.watch_at) return;
  found->second.watch_at = now;
  changed_.NotifyAll();
}

bool Supervisor::HasPending() const {
  return std::any_of(groups_.begin(), groups_.end(), [](const auto& each) {
    const Pending& p = each.second.pending;
    return p.begin || p.formed || p.stop || p.survivors || p.revoked || p.aborted || p.release ||
           p.finalized || p.destroyed;
  });
}

std::vector<Supervisor::Decided> Supervisor::Decide(Instant now) {
  std::vector<Decided> decided;
  for (auto& [id, group] : groups_) {
    const Pending happened = std::exchange(group.pending, {});
    GroupRules& rules = group.rules;
    GroupEffects effects;
    if (happened.begin) Append(effects, rules.OnBegin(now));
    if (happened.formed)
      Append(effects, happened.formed->ok() ? rules.OnFormed(now)
                                            : rules.OnFormFailed(now, WhyOf(*happened.formed)));
    if (happened.stop) Append(effects, rules.OnStop(now, *happened.stop));
    if (happened.survivors) Append(effects, rules.OnSurvivorsStopped(now));
    if (happened.revoked) Append(effects, rules.OnRevoked(now, happened.revoked->ok()));
    if (happened.finalized)
      Append(effects, rules.OnFinalized(now, happened.finalized->ok(), WhyOf(*happened.finalized)));
    if (happened.destroyed) Append(effects, rules.OnDestroyed(now));
    if (happened.aborted) Append(effects, rules.OnAborted(now));
    if (happened.release) Append(effects, rules.OnRelease(now));
    Append(effects, rules.OnTick(now));
    if (!effects.acts.empty())
      decided.push_back({id, group.driven, std::move(effects), rules.state(), rules.reason()});
  }
  for (const auto& one : decided)
    if (one.effects.Has(GroupAct::kTellReleased)) groups_.erase(one.id);
  return decided;
}

std::vector<Supervisor::Decided> Supervisor::DueWatches(Instant now) {
  std::vector<Decided> due;
  for (auto& [id, group] : groups_) {
    if (!group.watch_at || *group.watch_at > now) continue;
    group.watch_at.reset();
    if (group.rules.state() == GroupState::kReady)
      due.push_back({id, group.driven, {}, group.rules.state(), {}});
  }
  return due;
}

void Supervisor::WaitForMore(Instant now) {
  std::optional<Instant> next;
  const auto earlier = [&next](std::optional<Instant> at) {
    if (at && (!next || *at < *next)) next = at;
  };
  for (const auto& [id, group] : groups_) {
    earlier(group.rules.deadline());
    earlier(group.watch_at);
  }
  if (next)
    changed_.WaitFor(mutex_, std::max(*next - now, Duration::zero()));
  else
    changed_.Wait(mutex_);
}

void Supervisor::Run() {
  for (;;) {
    std::vector<Decided> decided, due;
    {
      MutexLock lock(mutex_);
      if (ending_ && groups_.empty()) return;
      const Instant now = clock_.Now();
      decided = Decide(now);
      due = DueWatches(now);
      if (decided.empty() && due.empty() && !HasPending()) {
        WaitForMore(now);
        continue;
      }
    }
    Perform(decided);
    Watch(due, clock_.Now());
  }
}

void Supervisor::Watch(const std::vector<Decided>& due, Instant now) {
  for (const auto& one : due) {
    std::optional<Instant> again;
    const Status status = one.driven->Watch(now, again);
    MutexLock lock(mutex_);
    const auto found = groups_.find(one.id);
    if (found == groups_.end()) continue;
    if (!status.ok() && !found->second.pending.stop) found->second.pending.stop = WhyOf(status);
    if (again && !found->second.watch_at) found->second.watch_at = again;
  }
}

void Supervisor::Perform(const std::vector<Decided>& decided) {
  // Waiters first, of all groups: no call of a library may stand before them.
  for (const auto& one : decided)
    if (one.effects.Has(GroupAct::kWake)) one.driven->Wake(one.effects.text);
  Abort(decided);
  for (const auto& one : decided) {
    for (const auto act : one.effects.acts) {
      switch (act) {
        case GroupAct::kWake:
        case GroupAct::kAbort:
          break;
        case GroupAct::kTellReady:
          one.driven->Tell(GroupState::kReady, {});
          break;
        case GroupAct::kTellFailed:
          one.driven->Tell(GroupState::kFailed, one.reason);
          break;
        case GroupAct::kTellStopped:
          one.driven->Tell(GroupState::kStopped, one.reason);
          break;
        case GroupAct::kTellReleased:
          one.driven->Tell(GroupState::kReleased, one.reason);
          break;
        case GroupAct::kEndProcess:
          end_process_(one.effects.text);
          break;
        default:
          Call(one, act);
      }
    }
  }
}

void Supervisor::Call(const Decided& one, GroupAct act) {
  reaper_.Start([this, id = one.id, driven = one.driven, act] {
    Status status;
    if (act == GroupAct::kInit) status = driven->Init();
    if (act == GroupAct::kRevoke) status = driven->Revoke();
    if (act == GroupAct::kFinalize) status = driven->Finalize();
    if (act == GroupAct::kDestroy) status = driven->Destroy();
    Post(id, [&](Pending& pending) {
      if (act == GroupAct::kInit) pending.formed = status;
      if (act == GroupAct::kRevoke) pending.revoked = status;
      if (act == GroupAct::kFinalize) pending.finalized = status;
      if (act == GroupAct::kDestroy) pending.destroyed = true;
    });
  });
}

void Supervisor::Abort(const std::vector<Decided>& decided) {
  std::map<int, std::vector<Decided>> by_device;
  int alone = -1;
  for (const auto& one : decided) {
    if (!one.effects.Has(GroupAct::kAbort)) continue;
    const int device = one.driven->device();
    by_device[device >= 0 ? device : alone--].push_back(one);
  }
  for (auto& [device, together] : by_device)
    reaper_.Start([this, together = std::move(together)] {
      std::vector<Supervised*> all;
      for (const auto& one : together) all.push_back(one.driven.get());
      all.front()->AbortTogether(all);
      for (const auto& one : together)
        Post(one.id, [](Pending& pending) { pending.aborted = true; });
    });
}

}  // namespace troupe::train
