// troupe_sim: runs seeds of the simulator.
// Usage: troupe_sim [--seeds N | --days N | --year DAYS] [--first S] [--file SEEDS] [--trace]
//                   [--once]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "tests/sim/cluster.h"
#include "tests/sim/people/day.h"
#include "tests/sim/year.h"

namespace {

// Reads a seed from each line; the rest of a line, and lines that begin with #, are for people.
std::vector<std::uint64_t> SeedsOf(const char* path) {
  std::vector<std::uint64_t> seeds;
  std::ifstream lines(path);
  if (!lines) {
    std::fprintf(stderr, "troupe_sim: %s cannot be read\n", path);
    std::exit(2);
  }
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != '#') seeds.push_back(std::strtoull(line.c_str(), nullptr, 10));
  }
  return seeds;
}

void Add(troupe::sim::RunResult* sum, const troupe::sim::RunResult& result, unsigned runs) {
  sum->events += result.events * runs;
  sum->markers += result.markers;
  sum->succeeded += result.succeeded;
  sum->preemptions += result.preemptions;
  sum->lives += result.lives;
  sum->successions += result.successions;
  sum->cut_starts += result.cut_starts;
  sum->reforms += result.reforms;
  sum->outlived += result.outlived;
  sum->replaced += result.replaced;
  sum->moved += result.moved;
  sum->hung += result.hung;
  sum->followed += result.followed;
}

void PrintSum(const troupe::sim::RunResult& sum, std::uint64_t seeds, double seconds) {
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "%llu seeds, %llu events, %llu launches ended (%llu succeeded, %llu of them without "
      "some rank, %llu after others), %llu groups formed after a death, %llu ranks replaced (%llu "
      "on other nodes), %llu hung, "
      "%llu preemptions, %llu lives of actors, %llu under the name of another one before, %llu "
      "starts "
      "cut by the head's end, %.2f s, %.0f events/s\n",
      number(seeds), number(sum.events), number(sum.markers), number(sum.succeeded),
      number(sum.outlived), number(sum.followed), number(sum.reforms), number(sum.replaced),
      number(sum.moved), number(sum.hung), number(sum.preemptions), number(sum.lives),
      number(sum.successions),
      number(sum.cut_starts), seconds,
      static_cast<double>(sum.events) / seconds);
}

// Days of several people (people/day.h); each twice, unless its messages are printed.
int RunDays(std::uint64_t days, std::uint64_t first, bool once, bool trace) {
  troupe::sim::DayResult sum;
  std::uint64_t failures = 0;
  for (std::uint64_t seed = first; seed < first + days && failures < 5; ++seed) {
    troupe::sim::DayResult day = troupe::sim::RunDay(seed, trace);
    if (!once && !trace && day.failure.empty() &&
        troupe::sim::RunDay(seed).trace != day.trace) {
      day.failure = "two runs of one seed differ";
    }
    sum.events += day.events;
    sum.grants += day.grants;
    sum.spread = std::max(sum.spread, day.spread);
    sum.longest_wait_s = std::max(sum.longest_wait_s, day.longest_wait_s);
    if (day.failure.empty()) continue;
    ++failures;
    std::printf("day %llu: %s\n%srepeat it with: troupe_sim --days 1 --first %llu --trace\n",
                static_cast<unsigned long long>(seed), day.failure.c_str(), day.plan.c_str(),
                static_cast<unsigned long long>(seed));
  }
  std::printf("%llu days, %llu events, %llu grants, shares of equals %.1f %% apart at most, "
              "an owner waited for %.1f h at most\n",
              static_cast<unsigned long long>(days), static_cast<unsigned long long>(sum.events),
              static_cast<unsigned long long>(sum.grants), 100 * sum.spread,
              sum.longest_wait_s / 3600);
  return failures == 0 ? 0 : 1;
}

// --year: a long time of use in place of seeds.
int RunYear(std::uint64_t seed, std::uint64_t days) {
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  const troupe::sim::YearResult year = troupe::sim::RunYear(seed, static_cast<int>(days));
  std::printf("%llu days: %llu launches, %llu actors, %llu nodes that came and went, %llu heads "
              "killed, %llu events; %llu launches in the archive\n",
              number(days), number(year.launches), number(year.actors), number(year.nodes),
              number(year.heads), number(year.events), number(year.archived));
  if (!year.failure.empty()) std::printf("%s\n", year.failure.c_str());
  return year.failure.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seeds = 1000;
  std::uint64_t days = 0;
  std::uint64_t year_days = 0;
  std::uint64_t first = 1;
  const char* file = nullptr;
  bool trace = false;
  bool once = false;
  for (int i = 1; i < argc; ++i) {
    const auto number = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (std::strcmp(argv[i], "--seeds") == 0) {
      seeds = number();
    } else if (std::strcmp(argv[i], "--days") == 0) {
      days = number();
    } else if (std::strcmp(argv[i], "--first") == 0) {
      first = number();
    } else if (std::strcmp(argv[i], "--file") == 0 && i + 1 < argc) {
      file = argv[++i];
    } else if (std::strcmp(argv[i], "--year") == 0) {
      year_days = number();
    } else if (std::strcmp(argv[i], "--trace") == 0) {
      trace = true;
    } else if (std::strcmp(argv[i], "--once") == 0) {
      once = true;  // without the second run that checks determinism
    } else {
      std::fprintf(stderr,
                   "usage: troupe_sim [--seeds N | --days N | --year DAYS] [--first S] "
                   "[--file SEEDS] [--trace] [--once]\n");
      return 2;
    }
  }
  if (days > 0) return RunDays(days, first, once, trace);
  if (year_days > 0) return RunYear(first, year_days);
  troupe::sim::RunResult sum;
  std::uint64_t failures = 0;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::uint64_t> listed;
  if (file != nullptr) {
    listed = SeedsOf(file);
    seeds = listed.size();
  }
  for (std::uint64_t n = 0; n < seeds && failures < 5; ++n) {
    const std::uint64_t seed = file == nullptr ? first + n : listed[n];
    const auto result =
        once || trace ? troupe::sim::RunSeed(seed, trace) : troupe::sim::CheckDeterminism(seed);
    Add(&sum, result, once || trace ? 1 : 2);
    if (trace) {
      std::printf("seed %llu: %llu events, trace %016llx, %llu markers\n%s",
                  static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(result.events),
                  static_cast<unsigned long long>(result.trace),
                  static_cast<unsigned long long>(result.markers), result.plan.c_str());
    }
    if (result.failure.empty()) continue;
    ++failures;
    std::fputs(troupe::sim::ReportOf(result).c_str(), stdout);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  PrintSum(sum, seeds, seconds);
  return failures == 0 ? 0 : 1;
}
