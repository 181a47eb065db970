// A training loop over NcclCommunicator whose ranks die, stop, hang or never come, and which goes
// on without them: one process per rank, the test as the head that gives the verdict.
//
// The ranks all-reduce until one fails; survivors are told of the verdict, get the error, report
// that they stopped, form the group anew under the next epoch and all-reduce again.
#pragma once

#include <string>
#include <vector>

#include "tests/actors/train/gpu_ranks.h"

namespace troupe::train {

enum class Fate {
  kKilled,      // SIGKILL inside an all-reduce
  kStopped,     // SIGSTOP: silent, and alive
  kHangs,       // an operation that never ends on that rank
  kNeverForms,  // does not come to the initialisation
};
const char* NameOf(Fate fate);

struct Scenario {
  std::string library = "2.28";
  Fate fate = Fate::kKilled;
  int ranks = 4, victim = 2;
  std::size_t count = 1 << 20;  // floats
  Environments environments;    // faults of single ranks
  bool second_group = false;    // another group of the same ranks is stopped with the first
  double form_max_s = 60;
  double call_max_s = 60;
};

/// When things happened on each survivor, in seconds since the fault.
struct Times {
  std::vector<double> verdict, raised, stopped, formed, next;
};

struct Outcome {
  std::vector<RankEnd> ends;
  Times times;
};

Outcome RunScenario(const Scenario& scenario);
/// The survivors have succeeded; the victim ended as its fate says.
void ExpectSurvived(const Scenario& scenario, const Outcome& outcome);

}  // namespace troupe::train
