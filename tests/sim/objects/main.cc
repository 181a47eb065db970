// troupe_objects_sim: runs seeds of the objects' simulation, or shows that it catches the mutants.
// Usage: troupe_objects_sim [--seeds N] [--first S] [--trace] [--mutants] [--mutant NUMBER]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <string>

#include "tests/sim/objects/world.h"

namespace {

using troupe::store::Mutant;

// In the order of the enumeration, each with a seed from where it is caught soon.
struct Known {
  const char* name;
  std::uint64_t first;
};
constexpr Known kMutants[] = {{"none", 1},
                              {"eof_releases", 1},
                              {"timeout_forgets", 45},
                              {"death_releases", 1},
                              {"fork_clean", 1},
                              {"dup_drop", 244},
                              {"view_uncounted", 1},
                              {"map_after_release", 103},
                              {"stale_licence", 452},
                              {"recall_clean", 1},
                              {"no_resend", 1},
                              {"no_owner_verdict", 1},
                              {"no_borrower_verdict", 1},
                              {"no_loan_pin", 200},
                              {"settle_early", 110},
                              {"loan_forgotten", 1},
                              {"free_unfenced", 1},
                              {"owner_death_recycles", 1},
                              {"dup_reply", 1},
                              {"verdict_before_drain", 1},
                              {"no_adopt_answer", 1},
                              {"reply_before_assign", 83},
                              {"answer_before_close", 27},
                              {"drop_at_death", 1}};
static_assert(std::size(kMutants) == static_cast<std::size_t>(Mutant::kLast));

std::uint64_t RunSeeds(std::uint64_t first, std::uint64_t seeds, bool trace, bool stop_at_first) {
  std::uint64_t failures = 0;
  std::uint64_t events = 0;
  std::map<std::string, std::uint64_t> counts;
  for (std::uint64_t seed = first; seed < first + seeds && failures < 5; ++seed) {
    auto result = troupe::sim::RunObjectsSeed(seed, trace);
    events += result.events;
    for (const auto& [what, count] : result.counts) counts[what] += count;
    if (!trace && !stop_at_first && result.failure.empty()) {
      const auto again = troupe::sim::RunObjectsSeed(seed, false);
      if (again.trace != result.trace) result.failure = "two runs of the seed differ";
    }
    if (result.failure.empty()) continue;
    ++failures;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), result.failure.c_str());
    if (stop_at_first) return failures;
  }
  if (!stop_at_first) {
    std::printf("%llu seeds, %llu events", static_cast<unsigned long long>(seeds),
                static_cast<unsigned long long>(events));
    for (const auto& [what, count] : counts)
      std::printf(", %llu %s", static_cast<unsigned long long>(count), what.c_str());
    std::printf("\n");
  }
  return failures;
}

bool CatchesMutant(std::size_t number, std::uint64_t seeds) {
  troupe::store::active_mutant = static_cast<Mutant>(number);
  std::printf("%s: ", kMutants[number].name);
  const bool caught = RunSeeds(kMutants[number].first, seeds, false, /*stop_at_first=*/true) != 0;
  if (!caught) std::printf("NOT caught in %llu seeds\n", static_cast<unsigned long long>(seeds));
  troupe::store::active_mutant = Mutant::kNone;
  return caught;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::uint64_t seeds = 300;
  std::uint64_t first = 1;
  bool trace = false;
  bool mutants = false;
  for (int i = 1; i < argc; ++i) {
    const auto number = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (std::strcmp(argv[i], "--seeds") == 0) {
      seeds = number();
    } else if (std::strcmp(argv[i], "--first") == 0) {
      first = number();
    } else if (std::strcmp(argv[i], "--trace") == 0) {
      trace = true;
    } else if (std::strcmp(argv[i], "--mutants") == 0) {
      mutants = true;
    } else if (std::strcmp(argv[i], "--mutant") == 0) {
      troupe::store::active_mutant = static_cast<Mutant>(number());
    } else {
      std::fprintf(
          stderr,
          "usage: troupe_objects_sim [--seeds N] [--first S] [--trace] [--mutants] [--mutant N]\n");
      return 2;
    }
  }
  if (!mutants) return RunSeeds(first, seeds, trace, false) == 0 ? 0 : 1;
  bool all = true;
  for (std::size_t n = 1; n < std::size(kMutants); ++n) all = CatchesMutant(n, seeds) && all;
  return all ? 0 : 1;
}
