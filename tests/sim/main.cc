// troupe_sim: runs seeds of the simulator. Usage: troupe_sim [--seeds N] [--first S] [--trace] [--once]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/sim/cluster.h"

int main(int argc, char** argv) {
  std::uint64_t seeds = 1000;
  std::uint64_t first = 1;
  bool trace = false;
  bool once = false;
  for (int i = 1; i < argc; ++i) {
    const auto number = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (std::strcmp(argv[i], "--seeds") == 0) {
      seeds = number();
    } else if (std::strcmp(argv[i], "--first") == 0) {
      first = number();
    } else if (std::strcmp(argv[i], "--trace") == 0) {
      trace = true;
    } else if (std::strcmp(argv[i], "--once") == 0) {
      once = true;  // without the second run that checks determinism
    } else {
      std::fprintf(stderr, "usage: troupe_sim [--seeds N] [--first S] [--trace] [--once]\n");
      return 2;
    }
  }
  std::uint64_t events = 0;
  std::uint64_t markers = 0;
  std::uint64_t succeeded = 0;
  std::uint64_t failures = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t seed = first; seed < first + seeds && failures < 5; ++seed) {
    const auto result = once || trace ? troupe::sim::RunSeed(seed, trace) : troupe::sim::CheckDeterminism(seed);
    events += result.events * (once || trace ? 1 : 2);
    markers += result.markers;
    succeeded += result.succeeded;
    if (trace) {
      std::printf("seed %llu: %llu events, trace %016llx, %llu markers\n%s",
                  static_cast<unsigned long long>(seed), static_cast<unsigned long long>(result.events),
                  static_cast<unsigned long long>(result.trace),
                  static_cast<unsigned long long>(result.markers), result.plan.c_str());
    }
    if (result.failure.empty()) continue;
    ++failures;
    std::fputs(troupe::sim::ReportOf(result).c_str(), stdout);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%llu seeds, %llu events, %llu launches ended (%llu succeeded), %.2f s, %.0f events/s\n",
              static_cast<unsigned long long>(seeds), static_cast<unsigned long long>(events),
              static_cast<unsigned long long>(markers), static_cast<unsigned long long>(succeeded),
              seconds, static_cast<double>(events) / seconds);
  return failures == 0 ? 0 : 1;
}
