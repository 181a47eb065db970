// How quickly a training group is left and formed again when a rank dies: four processes over a
// fake NCCL (tests/fakes), the benchmark as the head. Prints for each fault the median over runs of
// the slowest survivor, in milliseconds since the fault.
//   build/dev/bin/train_groups [RUNS] [FLOATS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/actors/train/group_scenario.h"

namespace {

using namespace troupe::train;

double Slowest(const std::vector<double>& times) {
  return times.empty() ? 0 : *std::max_element(times.begin(), times.end());
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : 1e3 * values[values.size() / 2];
}

void Measure(const std::string& library, Fate fate, int runs, std::size_t count) {
  std::vector<double> verdict, raised, formed, next;
  int failed = 0;
  for (int run = 0; run < runs; ++run) {
    Scenario scenario;
    scenario.library = library;
    scenario.fate = fate;
    scenario.count = count;
    scenario.form_max_s = fate == Fate::kNeverForms ? 1 : 60;
    const auto outcome = RunScenario(scenario);
    for (const auto& end : outcome.ends)
      failed += end.index != scenario.victim && end.exit_code != 0;
    const bool told = fate != Fate::kNeverForms;
    verdict.push_back(told ? Slowest(outcome.times.verdict) : 0);
    raised.push_back(Slowest(outcome.times.raised));
    formed.push_back(Slowest(outcome.times.formed));
    next.push_back(Slowest(outcome.times.next));
  }
  std::printf("%-6s %-12s %8.1f %8.1f %8.1f %8.1f   %d\n", library.c_str(), NameOf(fate),
              Median(verdict), Median(raised), Median(formed), Median(next), failed);
}

}  // namespace

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::atoi(argv[1]) : 9;
  const std::size_t count = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1 << 20;
  std::printf("4 ranks, %zu floats, %d runs; ms since the fault, slowest survivor, median\n", count,
              runs);
  std::printf("%-6s %-12s %8s %8s %8s %8s   %s\n", "NCCL", "fault", "verdict", "raised", "formed",
              "next", "failed");
  for (const char* library : {"2.26", "2.28", "2.30"})
    for (const auto fate : {Fate::kKilled, Fate::kStopped, Fate::kHangs, Fate::kNeverForms})
      Measure(library, fate, runs, count);
}
