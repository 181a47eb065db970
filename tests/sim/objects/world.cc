#include "tests/sim/objects/world.h"

#include <algorithm>
#include <cstdio>

namespace troupe::sim {
namespace {

constexpr Duration kChaos = std::chrono::seconds(12);
constexpr Duration kHealing = std::chrono::seconds(6);
constexpr std::size_t kProcessesMost = 12;  // over a run; 3 to 8 live at a time

}  // namespace

ObjectsWorld::ObjectsWorld(std::uint64_t seed, bool trace) : loop_(seed), trace_(trace) {
  for (std::uint64_t n = 1; n <= 2; ++n) {
    const NodeId id(9, n);
    nodes_[id].id = id;
  }
}

ObjectsResult ObjectsWorld::Run() {
  for (std::uint64_t n = 3 + random().Below(4); n > 0; --n) Spawn();
  ScheduleFaults();
  RunUntil(now() + kChaos);
  healed_ = true;
  partitioned_until_.clear();
  RunUntil(now() + kHealing);
  for (const auto& [id, process] : processes_) {
    if (!process->alive) continue;
    const std::string unended = process->Unended();
    if (!unended.empty()) Fail("O3: " + id.Short() + ": " + unended);
  }
  for (const auto& [id, process] : processes_) {
    if (process->alive) process->LetGo();
  }
  RunUntil(now() + kHealing);
  CheckLosses();
  CheckQuiet();
  result_.events = loop_.events();
  result_.trace = loop_.trace();
  return result_;
}

void ObjectsWorld::RunUntil(Instant until) {
  while (result_.failure.empty() && loop_.Step(until)) {
  }
}

void ObjectsWorld::Spawn() {
  const ProcessId id(++next_process_ << 32, random().Next() | 1);
  const NodeId node(9, 1 + random().Below(2));
  processes_[id] = std::make_unique<ObjectsProcess>(*this, id, node);
  ScheduleActs(id);
}

void ObjectsWorld::ScheduleActs(const ProcessId& id) {
  loop_.In(loop_.Between(Duration(1), std::chrono::milliseconds(60)), "act", [this, id] {
    ObjectsProcess& process = *Find(id);
    if (!process.alive || healed_) return;
    process.Act();
    ScheduleActs(id);
  });
}

ObjectsProcess* ObjectsWorld::Find(const ProcessId& id) { return processes_.at(id).get(); }

std::vector<ObjectsProcess*> ObjectsWorld::Others(const ProcessId& id) {
  std::vector<ObjectsProcess*> others;
  for (const auto& [other, process] : processes_) {
    if (other != id && process->alive) others.push_back(process.get());
  }
  return others;
}

// -- connections --

bool ObjectsWorld::ConnectedPair(const ProcessId& a, const ProcessId& b) const {
  const auto link = links_.find(KeyOf(a, b));
  return link != links_.end() && link->second->open();
}

bool ObjectsWorld::Send(const ProcessId& from, const ProcessId& to,
                        std::function<void(std::uint64_t)> deliver) {
  if (!ConnectedPair(from, to)) return false;
  auto link = links_[KeyOf(from, to)];
  const std::uint64_t number = link->number();
  link->Send(from < to ? 1 : 0, [this, from, to, number, deliver = std::move(deliver)] {
    ObjectsProcess& there = *Find(to);
    const bool fenced = links_[KeyOf(from, to)]->number() != number;
    if (!there.alive || there.closed.count(from) != 0) return;
    if (fenced && !Is(store::Mutant::kDupDrop)) return;
    deliver(number);
  });
  return true;
}

void ObjectsWorld::Dial(const ProcessId& a, const ProcessId& b) {
  const PairKey key = KeyOf(a, b);
  if (dialling_[key] || struck_.count(key) != 0) return;
  dialling_[key] = true;
  loop_.In(loop_.Between(std::chrono::milliseconds(2), std::chrono::milliseconds(200)), "dial",
           [this, key] {
             dialling_[key] = false;
             if (!Find(key.first)->alive || !Find(key.second)->alive ||
                 ConnectedPair(key.first, key.second))
               return;
             if (partitioned_until_.count(key) != 0 && now() < partitioned_until_[key]) {
               return Dial(key.first, key.second);
             }
             Open(key.first, key.second);
           });
}

void ObjectsWorld::Open(const ProcessId& a, const ProcessId& b) {
  ObjectsProcess& one = *Find(a);
  ObjectsProcess& two = *Find(b);
  const std::uint64_t number = ++next_connection_;
  const std::uint64_t applied_by_one = one.table.AppliedOf(b);
  const std::uint64_t applied_by_two = two.table.AppliedOf(a);
  links_[KeyOf(a, b)] = std::make_shared<ObjectsLink>(loop_, number);
  const auto first = one.table.Connected(b, number, applied_by_two, now());
  const auto second = two.table.Connected(a, number, applied_by_one, now());
  if (first == store::Greeting::kRefused) two.table.Refused(a, now());
  if (second == store::Greeting::kRefused) one.table.Refused(b, now());
  one.DoEffects();
  two.DoEffects();
  if (first != store::Greeting::kResumed || second != store::Greeting::kResumed) return;
  Count("connections");
  const std::uint64_t got_by_two = two.CallsReceivedFrom(a);
  const std::uint64_t got_by_one = one.CallsReceivedFrom(b);
  const bool remembered = !random().Chance(150);
  one.OnResumed(b, got_by_two, remembered);
  two.OnResumed(a, got_by_one, remembered);
}

void ObjectsWorld::Refuse(const ProcessId& by, const ProcessId& other) {
  Count("strikes");
  Trace(by.Short() + " strikes " + other.Short());
  const PairKey key = KeyOf(by, other);
  struck_.insert(key);
  if (links_.count(key) != 0) links_[key]->Cut();
  // The other side learns of it by being refused.
  loop_.In(loop_.Between(Duration(1), std::chrono::milliseconds(900)), "refused",
           [this, by, other] {
             ObjectsProcess& there = *Find(other);
             if (!there.alive) return;
             there.table.Refused(by, now());
             there.DoEffects();
           });
}

bool ObjectsWorld::Struck(const ProcessId& a, const ProcessId& b) {
  return struck_.count(KeyOf(a, b)) != 0;
}

// -- workers --

void ObjectsWorld::ToKeeper(const ObjectsProcess& from,
                            std::function<void(store::Keeper&)> deliver) {
  Node& node = nodes_.at(from.node);
  node.last_local = std::max(node.last_local + Duration(1),
                             now() + loop_.Between(Duration(1), std::chrono::milliseconds(3)));
  ++local_in_flight_;
  loop_.At(node.last_local, "local", [this, &node, deliver = std::move(deliver)] {
    --local_in_flight_;
    deliver(node.keeper);
    DoKeeper(node);
  });
}

void ObjectsWorld::OwnerToKeeper(const NodeId& id, std::function<void(store::Keeper&)> deliver) {
  Node& node = nodes_.at(id);
  loop_.In(loop_.Between(Duration(1), std::chrono::milliseconds(20)), "to keeper",
           [this, &node, deliver = std::move(deliver)] {
             deliver(node.keeper);
             DoKeeper(node);
           });
}

void ObjectsWorld::DoKeeper(Node& node) {
  for (const store::KeeperAction& action : node.keeper.TakeActions()) {
    const auto* ask = std::get_if<store::AskAdopt>(&action);
    if (ask == nullptr) continue;
    Count("adoptions asked");
    loop_.In(loop_.Between(Duration(1), std::chrono::milliseconds(20)), "adopt?",
             [this, &node, q = *ask] {
               ObjectsProcess& owner = *Find(q.object.owner);
               const SlotAndGeneration what{q.slot, q.generation};
               if (!owner.alive) {
                 return OwnerToKeeper(
                     node.id, [dead = owner.id](store::Keeper& keeper) { keeper.OwnerDied(dead); });
               }
               if (Is(store::Mutant::kNoAdoptAnswer)) return;
               if (!Is(store::Mutant::kAnswerBeforeClose)) {
                 if (q.maker_dead) {
                   owner.OnDead(q.slot.maker);
                 } else {
                   owner.table.Refused(q.slot.maker, now());
                   owner.DoEffects();
                 }
               }
               const bool keep = owner.table.Adopt(q.object, q.slot, q.generation, now());
               if (keep) Count("adopted");
               owner.DoEffects();
               OwnerToKeeper(node.id, [what, keep](store::Keeper& keeper) {
                 keeper.Answer(what.slot, what.generation, keep);
               });
             });
  }
}

void ObjectsWorld::Watch(const ProcessId& by, const ProcessId& whom) {
  Find(by)->watched.insert(whom);
  if (!Find(whom)->alive) Verdict(by, whom);
}

void ObjectsWorld::Verdict(const ProcessId& by, const ProcessId& whom) {
  loop_.In(loop_.Between(Duration(1), std::chrono::milliseconds(200)), "verdict", [this, by, whom] {
    if (Find(by)->alive) Find(by)->OnDead(whom);
  });
}

// -- faults --

void ObjectsWorld::ScheduleFaults() {
  loop_.In(loop_.Between(std::chrono::milliseconds(20), std::chrono::milliseconds(700)), "fault",
           [this] {
             if (healed_) return;
             OneFault();
             ScheduleFaults();
           });
}

void ObjectsWorld::OneFault() {
  const std::uint64_t draw = random().Below(100);
  if (draw < 70) return CutPair(draw < 14);
  if (draw < 82) return KillOne();
  if (draw < 90 && processes_.size() < kProcessesMost && Others(ProcessId()).size() < 8)
    return Spawn();
  if (frees_.empty()) return;
  // An owner says an old Free again.
  const auto& [maker, free] = frees_[random().Below(frees_.size())];
  ObjectsProcess& there = *Find(maker);
  if (there.alive) {
    there.slots.Free(free.owner, {free.slot.segment, free.slot.slot}, free.generation, free.clean);
  }
}

void ObjectsWorld::CutPair(bool for_long) {
  std::vector<PairKey> open;
  for (const auto& [key, link] : links_) {
    if (link->open()) open.push_back(key);
  }
  if (open.empty()) return;
  const PairKey key = open[random().Below(open.size())];
  auto link = links_[key];
  link->Cut();
  Count("cuts");
  Trace("cut " + key.first.Short() + " - " + key.second.Short() + (for_long ? " for long" : ""));
  if (for_long)
    partitioned_until_[key] =
        now() + loop_.Between(std::chrono::milliseconds(300), std::chrono::milliseconds(3500));
  for (const bool first : {true, false}) {
    const ProcessId by = first ? key.first : key.second;
    const ProcessId other = first ? key.second : key.first;
    loop_.In(loop_.Between(Duration(1), std::chrono::milliseconds(300)), "closed",
             [this, by, other, link] {
               ObjectsProcess& process = *Find(by);
               if (!process.alive) return;
               process.table.Disconnected(other, link->number(), now());
               process.DoEffects();
               Dial(by, other);
             });
  }
}

bool ObjectsWorld::StepKills(const ProcessId& id) {
  if (healed_ || !random().Chance(6) || Others(ProcessId()).size() < 3) return false;
  Kill(*Find(id));
  if (processes_.size() < kProcessesMost) Spawn();
  return true;
}

void ObjectsWorld::KillOne() {
  std::vector<ObjectsProcess*> alive = Others(ProcessId());
  if (alive.size() >= 3) Kill(*alive[random().Below(alive.size())]);
}

void ObjectsWorld::Kill(ObjectsProcess& victim) {
  Count("kills");
  Trace("kill " + victim.id.Short());
  victim.alive = false;
  victim.views.clear();
  for (auto& [key, link] : links_) {
    if (key.first == victim.id || key.second == victim.id) link->Cut();
  }
  for (const auto& [id, process] : processes_) {
    if (process->watched.count(victim.id) != 0) Verdict(id, victim.id);
  }
  for (auto& [id, node] : nodes_) {
    OwnerToKeeper(id, [dead = victim.id](store::Keeper& keeper) { keeper.OwnerDied(dead); });
  }
  const auto died = [dead = victim.id](store::Keeper& keeper) { keeper.MakerDied(dead); };
  if (Is(store::Mutant::kVerdictBeforeDrain)) {
    died(nodes_.at(victim.node).keeper);
    DoKeeper(nodes_.at(victim.node));
  } else {
    ToKeeper(victim, died);
  }
}

ObjectsResult RunObjectsSeed(std::uint64_t seed, bool trace) {
  return ObjectsWorld(seed, trace).Run();
}

}  // namespace troupe::sim
