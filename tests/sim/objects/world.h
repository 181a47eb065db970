// The objects' simulation: processes on two nodes, their workers as keepers, a network that loses
// what is under way, deaths, forked children, and the truth about what every slot holds.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/objects/keeper.h"
#include "tests/sim/objects/link.h"
#include "tests/sim/objects/process.h"

namespace troupe::sim {

struct ObjectsResult {
  std::uint64_t events = 0;
  std::uint64_t trace = 0;
  std::string failure;  // "O1: ..." of the first invariant broken, or empty
  std::map<std::string, std::uint64_t> counts;
};

class ObjectsWorld {
 public:
  ObjectsWorld(std::uint64_t seed, bool trace);
  ObjectsResult Run();

  SimLoop& loop() { return loop_; }
  Instant now() const { return loop_.Now(); }
  Prng& random() { return loop_.random(); }
  ObjectsProcess* Find(const ProcessId& id);
  std::vector<ObjectsProcess*> Others(const ProcessId& id);

  /// Sends over the pair's connection, if there is one: `deliver(connection number)` runs at `to`.
  bool Send(const ProcessId& from, const ProcessId& to, std::function<void(std::uint64_t)> deliver);
  bool ConnectedPair(const ProcessId& a, const ProcessId& b) const;
  /// Dials, again and again while it does not work.
  void Dial(const ProcessId& a, const ProcessId& b);
  void Refuse(const ProcessId& by, const ProcessId& other);
  /// To the node's worker, in order, delivered also when the sender dies meanwhile.
  void ToKeeper(const ObjectsProcess& from, std::function<void(store::Keeper&)> deliver);
  /// From an owner to any node's worker.
  void OwnerToKeeper(const NodeId& node, std::function<void(store::Keeper&)> deliver);
  void Watch(const ProcessId& by, const ProcessId& whom);

  /// A step of a process that it may die at; true when it did.
  bool StepKills(const ProcessId& id);

  // -- the truth --
  void Written(const store::SlotId& slot, std::uint64_t generation);
  void Mapped(const ObjectsProcess& by, const store::ObjectId& object,
              const store::Location& location);
  void Forked(const ObjectsProcess& parent);
  void Lost(const ProcessId& by, const store::ObjectId& object, const ProcessId& lender);
  void Fail(std::string what);
  void Count(const std::string& what) { ++result_.counts[what]; }
  void Trace(const std::string& line);
  /// A Free that is said again, long after.
  void RememberFree(const ProcessId& maker, const store::FreeSlot& free);

 private:
  struct Child {
    store::SlotId slot;
    std::uint64_t generation = 0;
  };
  struct Node {
    NodeId id;
    store::Keeper keeper;
    Instant last_local{};
  };
  struct LostRef {
    ProcessId by;
    store::ObjectId object;
    ProcessId lender;
  };
  struct SlotAndGeneration {
    store::SlotId slot;
    std::uint64_t generation = 0;
  };
  using PairKey = std::pair<ProcessId, ProcessId>;
  static PairKey KeyOf(const ProcessId& a, const ProcessId& b) {
    return a < b ? PairKey{a, b} : PairKey{b, a};
  }

  void Spawn();
  void ScheduleActs(const ProcessId& id);
  void ScheduleFaults();
  void OneFault();
  void CutPair(bool for_long);
  void KillOne();
  void Kill(ObjectsProcess& victim);
  void Verdict(const ProcessId& by, const ProcessId& whom);
  void DoKeeper(Node& node);
  void Open(const ProcessId& a, const ProcessId& b);
  void RunUntil(Instant until);
  bool Lists(const store::ObjectId& object, const ProcessId& reader);
  void CheckLosses();
  void CheckQuiet();
  bool Struck(const ProcessId& a, const ProcessId& b);

  SimLoop loop_;
  bool trace_;
  bool healed_ = false;
  std::uint64_t next_process_ = 0;
  std::uint64_t next_connection_ = 0;
  std::map<ProcessId, std::unique_ptr<ObjectsProcess>> processes_;
  std::map<NodeId, Node> nodes_;
  std::size_t local_in_flight_ = 0;
  std::map<PairKey, std::shared_ptr<ObjectsLink>> links_;
  std::map<PairKey, Instant> partitioned_until_;
  std::map<PairKey, bool> dialling_;
  std::map<store::SlotId, std::uint64_t> content_;
  std::vector<Child> children_;
  std::vector<LostRef> losses_;
  std::set<std::pair<ProcessId, store::ObjectId>> lost_;
  std::set<PairKey> struck_;
  std::vector<std::pair<ProcessId, store::FreeSlot>> frees_;
  ObjectsResult result_;
};

ObjectsResult RunObjectsSeed(std::uint64_t seed, bool trace);

}  // namespace troupe::sim
