// A simulated run: a head, workers, callers, faults drawn from a seed, checkers, healing.
//
// Two phases: safety while faults happen, then all is healed and progress is demanded: every caller
// learns its outcomes, and nothing of any launch is left on any node.
#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/fault_plan.h"

namespace troupe::sim {

struct RunResult {
  std::uint64_t seed = 0;
  std::uint64_t trace = 0;
  std::uint64_t events = 0;
  std::uint64_t markers = 0;
  std::uint64_t succeeded = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t lives = 0;        // the actors'
  std::uint64_t successions = 0;  // actors that began under the name of another one before
  std::uint64_t reforms = 0;      // groups formed after a death
  std::uint64_t outlived = 0;     // launches that succeeded without some rank
  std::uint64_t replaced = 0;     // processes in the places of ranks that died
  std::uint64_t moved = 0;        // to another node
  std::uint64_t hung = 0;         // ranks that were ended since others waited for them
  std::uint64_t followed = 0;     // launches that succeeded after others
  std::uint64_t cut_starts = 0;   // actors that were being started again when the head crashed
  std::string plan;
  std::string failure;  // empty: all held
};

/// `verbose`: every message of the head, every durable event and every fault is printed.
RunResult RunSeed(std::uint64_t seed, bool verbose = false);
/// Two runs of a seed; a difference is a failure by itself.
RunResult CheckDeterminism(std::uint64_t seed);
/// Returns the text of a failure, with how to repeat it.
std::string ReportOf(const RunResult& result);

}  // namespace troupe::sim
