// Method: random calls and ends against a model that keeps the order of each group.
#include "actors/core/policy/concurrency_groups.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "runtime/base/random.h"

namespace troupe::actors {
namespace {

TEST(ConcurrencyGroups, CG1_CG2_CG3_LimitsAndOrderHold) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Prng random(seed);
    const std::vector<int> limits = {1, 3, 1 + static_cast<int>(random.Below(5))};
    ConcurrencyGroups<int> groups(limits);
    std::vector<std::deque<int>> waiting(limits.size());
    std::vector<std::vector<int>> running(limits.size());
    for (int job = 0; job < 3000; ++job) {
      const std::size_t at = random.Below(limits.size());
      if (random.Chance(500)) {
        const bool room = static_cast<int>(running[at].size()) < limits[at];
        const std::optional<int> now = groups.Begin(at, job);
        ASSERT_EQ(now.has_value(), room);
        if (room) {
          ASSERT_EQ(*now, job);
          running[at].push_back(job);
        } else {
          waiting[at].push_back(job);
        }
      } else if (!running[at].empty()) {
        running[at].pop_back();
        const std::optional<int> next = groups.End(at);
        ASSERT_EQ(next.has_value(), !waiting[at].empty());
        if (next) {
          ASSERT_EQ(*next, waiting[at].front());
          waiting[at].pop_front();
          running[at].push_back(*next);
        }
      }
      for (std::size_t i = 0; i < limits.size(); ++i) {
        ASSERT_EQ(groups.running(i), static_cast<int>(running[i].size()));
        ASSERT_EQ(groups.waiting(i), waiting[i].size());
        ASSERT_LE(groups.running(i), limits[i]);
      }
    }
  }
}

TEST(ConcurrencyGroups, AWithdrawnJobLeavesItsLine) {
  ConcurrencyGroups<int> groups({1});
  ASSERT_TRUE(groups.Begin(0, 1));
  ASSERT_FALSE(groups.Begin(0, 2));
  ASSERT_FALSE(groups.Begin(0, 3));
  EXPECT_EQ(groups.Withdraw([](int job) { return job == 2; }), 2);
  EXPECT_FALSE(groups.Withdraw([](int job) { return job == 2; }));
  EXPECT_FALSE(groups.Withdraw([](int job) { return job == 1; }));  // the job runs
  EXPECT_EQ(groups.End(0), 3);
  EXPECT_FALSE(groups.End(0));
  EXPECT_EQ(groups.running(0), 0);
}

}  // namespace
}  // namespace troupe::actors
