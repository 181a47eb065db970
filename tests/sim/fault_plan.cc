#include "tests/sim/fault_plan.h"

#include <cstdio>

namespace troupe::sim {
namespace {

constexpr const char* kNames[] = {"head-crash", "worker-crash", "worker-stop", "reset",
                                  "partition",  "client-end",   "deaf",        "mute",
                                  "leave",      "isolate",      "head-cut"};

}  // namespace

FaultPlan DrawPlan(Prng& random, const Workload& workload) {
  FaultPlan plan;
  plan.commit_most = Ms(1 + random.Below(20));
  plan.latency_most = Ms(1 + random.Below(30));
  if (random.Chance(500)) plan.duplicate_permille = static_cast<unsigned>(random.Below(100));
  if (random.Chance(500)) plan.process_crash_permille = static_cast<unsigned>(random.Below(300));
  if (random.Chance(200)) plan.fork_failure_permille = static_cast<unsigned>(random.Below(100));
  if (random.Chance(300)) plan.stubborn_permille = static_cast<unsigned>(random.Below(500));
  const auto span = static_cast<std::uint64_t>(Millis(workload.chaos));
  if (random.Chance(500)) plan.snapshot_permille = static_cast<unsigned>(random.Below(300));
  if (random.Chance(300)) plan.join_most = Ms(random.Below(8000));
  for (std::size_t kind = 0; kind < kFaultKinds; ++kind) {
    if (random.Chance(500)) continue;
    const std::uint64_t count = 1 + random.Below(kind == 5 ? 1 : 4);
    for (std::uint64_t i = 0; i < count; ++i) {
      Fault fault{static_cast<FaultKind>(kind), Ms(random.Below(span)), Ms(50 + random.Below(9000)),
                  0};
      fault.target = random.Below(kind == 5 ? workload.clients : workload.workers);
      plan.faults.push_back(fault);
    }
  }
  return plan;
}

std::string TextOf(const FaultPlan& plan) {
  char line[160];
  std::snprintf(
      line, sizeof line,
      "commit <= %lld ms, latency <= %lld ms, per mille: duplicates %u, process crashes %u, "
      "fork failures %u, stubborn %u\n",
      static_cast<long long>(Millis(plan.commit_most)),
      static_cast<long long>(Millis(plan.latency_most)), plan.duplicate_permille,
      plan.process_crash_permille, plan.fork_failure_permille, plan.stubborn_permille);
  std::string out = line;
  for (const Fault& fault : plan.faults) {
    std::snprintf(line, sizeof line, "  %8.3f s  %-12s %zu for %.3f s\n", Seconds(fault.at),
                  kNames[static_cast<int>(fault.kind)], fault.target, Seconds(fault.lasts));
    out += line;
  }
  return out;
}

}  // namespace troupe::sim
