#include "placement/nested_fill.h"

#include <algorithm>

namespace troupe::placement {
namespace {

struct Filler {
  const std::vector<FillRow>& rows;
  std::size_t levels;
  std::vector<std::uint64_t> taken;

  // `wanted` fit in the run.
  void Fill(const FillRun& run, std::size_t level, std::uint64_t wanted) {
    if (level > levels) {
      taken[run.begin] = wanted;
      return;
    }
    std::vector<FillRun> parts = RunsOf(rows, levels, level, run.begin, run.end);
    std::stable_sort(parts.begin(), parts.end(),
                     [](const FillRun& a, const FillRun& b) { return a.room > b.room; });
    for (auto part = parts.begin(); wanted > 0; ++part) {
      if (part->room < wanted) {
        Fill(*part, level + 1, part->room);
        wanted -= part->room;
        continue;
      }
      // All from here to the last that holds the rest do; of the tightest, the first.
      auto after =
          std::find_if(part, parts.end(), [&](const FillRun& p) { return p.room < wanted; });
      while (part->room != (after - 1)->room) ++part;
      Fill(*part, level + 1, wanted);
      return;
    }
  }
};

}  // namespace

std::vector<FillRun> RunsOf(const std::vector<FillRow>& rows, std::size_t levels, std::size_t level,
                            std::size_t begin, std::size_t end) {
  std::vector<FillRun> runs;
  for (std::size_t i = begin; i < end; ++i) {
    const bool same =
        i > begin && level < levels && rows[i].domains[level] == rows[i - 1].domains[level];
    if (!same) runs.push_back({i, i, 0});
    runs.back().end = i + 1;
    runs.back().room += rows[i].room;
  }
  return runs;
}

std::vector<std::uint64_t> NestedFill(const std::vector<FillRow>& rows, std::size_t levels,
                                      std::uint64_t wanted) {
  Filler filler{rows, levels, std::vector<std::uint64_t>(rows.size(), 0)};
  filler.Fill({0, rows.size(), 0}, 0, wanted);
  return filler.taken;
}

}  // namespace troupe::placement
