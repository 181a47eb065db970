// Method: clusters by hand, and a small simulation of a stream of small jobs against one large
// gang.
#include "placement/queue.h"

#include <gtest/gtest.h>

#include <deque>

#include "placement/preempt.h"
#include "runtime/base/random.h"
#include "tests/placement/clusters.h"

namespace troupe::placement {
namespace {

std::uint64_t Free(const ClusterIndex& cluster, std::uint64_t node) {
  return cluster.Find(NodeId(7, node))->view.free.Get("GPU") / kUnit;
}

TEST(Queue, P6_LaterOnesPassTheFirstOnlyBesideWhatItWillUse) {
  ClusterIndex cluster({Node(1, 8, 4), Node(2, 8, 2), Node(3, 8, 4)});
  Pass pass(cluster);
  EXPECT_FALSE(pass.Try(Ask(2, 8)));  // keeps nodes 1 and 3, which have least in use
  const auto small = pass.Try(Ask(1, 2));
  ASSERT_TRUE(small);
  EXPECT_EQ(small->nodes[0], NodeId(7, 2));
  EXPECT_FALSE(pass.Try(Ask(1, 1)));
}

TEST(Queue, WhatIsKeptGoesBackAndWhatIsGrantedStays) {
  ClusterIndex cluster({Node(1, 8, 6), Node(2, 8, 8)});
  {
    Pass pass(cluster);
    EXPECT_FALSE(pass.Try(Ask(3, 5)));  // never: keeps nothing
    EXPECT_FALSE(pass.Try(Ask(2, 7)));
    EXPECT_TRUE(pass.Try(Ask(1, 1))) << "beside it";
    EXPECT_EQ(Free(cluster, 1), 0u);
    EXPECT_EQ(Free(cluster, 2), 0u);
  }
  EXPECT_EQ(Free(cluster, 1), 6u);
  EXPECT_EQ(Free(cluster, 2), 7u);
}

TEST(Queue, P6_OneThatPausesKeepsItsTurn) {
  ClusterIndex cluster({Node(1, 8, 8)});
  Pass pass(cluster);
  EXPECT_FALSE(pass.Try(Ask(1, 8), false));
  EXPECT_FALSE(pass.Try(Ask(1, 1)));
}

TEST(Queue, ClosedNodesAreNotKept) {
  std::vector<NodeView> nodes = {Node(1, 8, 8), Node(2, 8, 1), Node(3, 8, 0)};
  nodes[0].closed = "draining";
  ClusterIndex cluster(nodes);
  EXPECT_FALSE(PlanAhead(cluster, Ask(3, 8)));
  const auto plan = PlanAhead(cluster, Ask(2, 8));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->nodes, (std::vector<NodeId>{NodeId(7, 2), NodeId(7, 3)}));
}

// Every node always has takers of one GPU for one to `longest` steps; the gang wants `nodes` whole
// ones. The step in which it is placed; 0: not within `steps`.
std::size_t StepsUntilPlaced(std::size_t nodes, std::size_t longest, std::size_t forever_on,
                             std::size_t urgent_after, std::size_t steps, std::uint64_t seed) {
  Prng random(seed);
  std::vector<NodeView> views;
  for (std::size_t i = 1; i <= nodes + 2; ++i) views.push_back(Node(i, 8, i <= forever_on ? 7 : 8));
  ClusterIndex cluster(views);
  struct Job {
    NodeId node;
    std::size_t ends = 0;
  };
  std::vector<Job> jobs;
  for (std::size_t step = 1; step <= steps; ++step) {
    std::vector<Job> left;
    for (const Job& job : jobs) {
      if (job.ends > step) {
        left.push_back(job);
      } else {
        cluster.SetFree(job.node, [&] {
          Resources free = cluster.Find(job.node)->view.free;
          free.Add(Gpus(1));
          return free;
        }());
      }
    }
    jobs = std::move(left);
    Pass pass(cluster);
    const bool arrived = step > 5;
    if (arrived && pass.Try(Ask(nodes, 8), true, step > urgent_after)) return step;
    while (const auto plan = pass.Try(Ask(1, 1))) {
      jobs.push_back({plan->nodes[0], step + 1 + random.Below(longest)});
    }
  }
  return 0;
}

TEST(Queue, P6_AGangIsPlacedHoweverManySmallOnesCome) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const std::size_t step = StepsUntilPlaced(3, 10, 0, 1'000, 100, seed);
    EXPECT_GT(step, 0u) << "seed " << seed;
    EXPECT_LE(step, 5 + 2 * 10u) << "seed " << seed;
  }
}

// Two nodes have something that never ends: only the others will do, and they look the busier ones.
TEST(Queue, P6_AnUrgentOneIsPlacedThoughTheNearestNodesNeverComeFree) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const std::size_t step = StepsUntilPlaced(3, 10, 2, 40, 100, seed);
    EXPECT_GT(step, 0u) << "seed " << seed;
    EXPECT_LE(step, 41 + 10u) << "seed " << seed;
  }
}

Running Group(std::uint64_t number, int priority, std::uint64_t node, std::uint64_t gpus) {
  Running group;
  group.group = GroupId(9, number);
  group.priority = priority;
  group.order = number;
  group.holds = {{NodeId(7, node), Gpus(gpus)}};
  return group;
}

TEST(Preempt, LowestPriorityThenYoungestAndNoMoreThanItTakes) {
  ClusterIndex cluster({Node(1, 8, 0), Node(2, 8, 0)});
  std::vector<Running> running = {Group(1, 0, 1, 8), Group(2, 0, 2, 4), Group(3, 1, 2, 4)};
  const auto one = WhomToPreempt(cluster, Ask(1, 8), 2, running);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->victims, std::vector<GroupId>{GroupId(9, 1)});
  EXPECT_EQ(one->plan.nodes[0], NodeId(7, 1));
  const auto small = WhomToPreempt(cluster, Ask(1, 4), 2, running);
  ASSERT_TRUE(small);
  EXPECT_EQ(small->victims, std::vector<GroupId>{GroupId(9, 2)}) << "the youngest of the lowest";
  EXPECT_FALSE(WhomToPreempt(cluster, Ask(2, 8), 1, running)) << "an equal is never ended";
  running[0].may_be_ended = false;
  EXPECT_EQ(WhomToPreempt(cluster, Ask(1, 8), 2, running)->victims.size(), 2u);
  EXPECT_EQ(Free(cluster, 1) + Free(cluster, 2), 0u) << "a decision, not the deed";
}

TEST(Preempt, EachVictimIsNeeded) {
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    Prng random(seed);
    std::vector<NodeView> nodes;
    std::vector<Running> running;
    for (std::uint64_t i = 1; i <= 4; ++i) {
      std::uint64_t free = 8;
      while (free > 0 && random.Chance(800)) {
        const std::uint64_t gpus = 1 + random.Below(free);
        running.push_back(Group(running.size() + 1, static_cast<int>(random.Below(3)), i, gpus));
        free -= gpus;
      }
      nodes.push_back(Node(i, 8, free));
    }
    ClusterIndex cluster(nodes);
    const Request request =
        Ask(1 + random.Below(4), 1 + random.Below(8), static_cast<Strategy>(random.Below(4)));
    const auto result = WhomToPreempt(cluster, request, 2, running);
    const auto fits_without = [&](const std::vector<GroupId>& ended) {
      std::vector<NodeView> after = nodes;
      for (const Running& group : running) {
        if (std::find(ended.begin(), ended.end(), group.group) == ended.end()) continue;
        after[group.holds[0].first.lo - 1].free.Add(group.holds[0].second);
      }
      return Pack(after, request).has_value();
    };
    if (!result) {
      std::vector<GroupId> all;
      for (const Running& group : running) {
        if (group.priority < 2) all.push_back(group.group);
      }
      ASSERT_FALSE(fits_without(all)) << "seed " << seed;
      continue;
    }
    ASSERT_TRUE(fits_without(result->victims)) << "seed " << seed;
    for (std::size_t i = 0; i < result->victims.size(); ++i) {
      std::vector<GroupId> fewer = result->victims;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      ASSERT_FALSE(fits_without(fewer)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace troupe::placement
