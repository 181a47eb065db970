// Method: an index that nodes join, change and leave in any order plans as one that is built at
// once; levels, selectors and the order of ranks by hand.
#include <gtest/gtest.h>

#include "placement/cluster_index.h"
#include "placement/explain.h"
#include "placement/packer.h"
#include "runtime/base/random.h"
#include "tests/placement/clusters.h"

namespace troupe::placement {
namespace {

std::vector<std::uint64_t> Numbers(const std::optional<Plan>& plan) {
  std::vector<std::uint64_t> numbers;
  if (plan) {
    for (const NodeId& node : plan->nodes) numbers.push_back(node.lo);
  }
  return numbers;
}
using Expected = std::vector<std::uint64_t>;

// Two racks of three nodes with 4 GPUs, in two blocks, told in no order.
std::vector<NodeView> Racks() {
  std::vector<NodeView> nodes;
  for (const std::uint64_t number : {5, 2, 6, 1, 4, 3}) {
    const std::string rack = number <= 3 ? "r1" : "r2";
    nodes.push_back(Node(number, 4, {{"rack", rack}, {"block", number <= 3 ? "b1" : "b2"}}));
  }
  return nodes;
}

TEST(Levels, RequiredIsOneDomainOrNone) {
  Request request = Ask(12, 1);
  request.level = "rack";
  request.level_required = true;
  EXPECT_EQ(Numbers(Pack(Racks(), request)), (Expected{1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}));
  request.bundles.push_back(Gpus(1));
  EXPECT_FALSE(Pack(Racks(), request));
  const Refusal refusal = Explain(Racks(), request);
  EXPECT_TRUE(refusal.never);
  EXPECT_NE(refusal.text.find("no rack holds all: the roomiest, r1, has room for 12 of 13"),
            std::string::npos)
      << refusal.text;
}

TEST(Levels, PreferredUsesAsFewDomainsAsItCan) {
  Request request = Ask(16, 1);
  request.level = "rack";
  const auto plan = Pack(Racks(), request);
  ASSERT_TRUE(plan);
  EXPECT_EQ(Numbers(plan), (Expected{1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4}));
}

TEST(Levels, OfDomainsThatHoldItTheOneWithLeastRoomLeft) {
  std::vector<NodeView> nodes = Racks();
  for (NodeView& node : nodes) {
    if (node.name == "node-4") node.free = Gpus(1);
  }
  Request request = Ask(8, 1);
  request.level = "rack";
  EXPECT_EQ(Numbers(Pack(nodes, request)), (Expected{5, 5, 5, 5, 6, 6, 6, 6}));
}

TEST(Levels, RanksOfNearNodesFollowEachOther) {
  std::vector<NodeView> nodes;
  for (std::uint64_t i = 1; i <= 6; ++i) {
    nodes.push_back(Node(i, 2, {{"rack", i % 2 == 0 ? "even" : "odd"}}));
  }
  Request request = Ask(12, 1);
  request.level = "rack";
  EXPECT_EQ(Numbers(Pack(nodes, request)), (Expected{2, 2, 4, 4, 6, 6, 1, 1, 3, 3, 5, 5}));
}

TEST(Levels, DifferentBundlesKeepToOneDomainToo) {
  Request request = Ask(2, 4);
  request.bundles.push_back(Gpus(2));
  request.level = "rack";
  request.level_required = true;
  std::vector<NodeView> nodes = Racks();
  nodes[3].free = Gpus(1);  // node-1
  EXPECT_EQ(Numbers(Pack(nodes, request)), (Expected{4, 5, 6}));
}

TEST(Levels, ALevelNoNodeHasIsSaid) {
  Request request = Ask(1, 1);
  request.level = "rack";
  request.level_required = true;
  EXPECT_FALSE(EverFits({Node(1, 8)}, request));
  EXPECT_NE(Explain({Node(1, 8)}, request).text.find("has no label rack"), std::string::npos);
}

TEST(Selectors, AsRayWritesThem) {
  const Labels labels = {{"zone", "a"}};
  const auto holds = [&](const char* term) { return Holds({{"zone", term}}, labels); };
  EXPECT_TRUE(holds("a"));
  EXPECT_TRUE(holds("A"));
  EXPECT_FALSE(holds("!a"));
  EXPECT_TRUE(holds("in(b, a)"));
  EXPECT_FALSE(holds("in(b,c)"));
  EXPECT_TRUE(holds("!in(b,c)"));
  EXPECT_FALSE(holds("!in(a)"));
  EXPECT_TRUE(Holds({{"disk", "!ssd"}}, labels)) << "a node without the label is not ssd";
  EXPECT_FALSE(Holds({{"disk", "ssd"}}, labels));
  EXPECT_TRUE(holds("exists()"));
  EXPECT_FALSE(holds("! exists()"));
  EXPECT_FALSE(TermHolds("exists()", nullptr));
  EXPECT_TRUE(TermHolds("!exists()", nullptr));
  const std::string value = "ssd";
  EXPECT_EQ(MismatchText("disk", "nvme", &value), "disk is ssd, not nvme");
  EXPECT_EQ(MismatchText("disk", "! exists()", &value), "disk is ssd");
  EXPECT_EQ(MismatchText("disk", "exists()", nullptr), "has no label disk");
  for (const char* bad : {"", "!", "in()", "in(a", "in(a,)", "!in("}) {
    EXPECT_FALSE(CheckSelector({{"zone", bad}}).ok()) << bad;
    EXPECT_FALSE(holds(bad)) << bad;
  }
  EXPECT_EQ(SelectorText({{"a", "x"},
                          {"b", "!y"},
                          {"c", "in(u,v)"},
                          {"d", "!in(u,v)"},
                          {"e", "exists()"},
                          {"f", "!exists()"}}),
            "a=x, b!=y, c in(u,v), d not in(u,v), e present, f missing");
}

TEST(Selectors, EachBundleHasItsOwn) {
  const std::vector<NodeView> nodes = {Node(1, 8, {{"zone", "a"}}), Node(2, 8, {{"zone", "b"}})};
  Request request = Ask(2, 1);
  request.bundle_labels = {{{"zone", "b"}}, {{"zone", "!b"}}};
  EXPECT_EQ(Numbers(Pack(nodes, request)), (Expected{2, 1}));
  request.strategy = Strategy::kStrictPack;
  EXPECT_FALSE(Pack(nodes, request));
  request.strategy = Strategy::kStrictSpread;
  EXPECT_EQ(Numbers(Pack(nodes, request)), (Expected{2, 1}));
}

TEST(Selectors, FallbacksAreTriedInOrder) {
  std::vector<NodeView> nodes = {Node(1, 8, {{"type", "H100"}}), Node(2, 8, {{"type", "A100"}}),
                                 Node(3, 8, {{"type", "L4"}})};
  Request request = Ask(1, 8);
  request.labels = {{"type", "H100"}};
  request.fallbacks = {{{"type", "A100"}}, {{"type", "L4"}}};
  EXPECT_EQ(Numbers(Pack(nodes, request)), Expected{1});
  nodes[0].free = Gpus(7);
  EXPECT_EQ(Numbers(Pack(nodes, request)), Expected{2});
  nodes[1].closed = "draining";
  EXPECT_EQ(Numbers(Pack(nodes, request)), Expected{3});
}

TEST(ClusterIndex, WorkWithoutGpusStaysOffNodesThatHaveThem) {
  NodeView gpu = Node(1, 8);
  gpu.total.Set("CPU", 4 * kUnit);
  NodeView cpu = Node(2, 0);
  cpu.total.Set("CPU", 64 * kUnit);
  gpu.free = gpu.total;
  cpu.free = cpu.total;
  Request request;
  request.bundles = {Resources::Of({{"CPU", kUnit}})};
  EXPECT_EQ(Numbers(Pack({gpu, cpu}, request)), Expected{2});
}

TEST(ClusterIndex, WhatNodesThatHaveLeftHadIsForgotten) {
  ClusterIndex index;
  index.Put(Node(1, 4, {{"rack", "r0"}, {"zone", "z0"}}));
  for (std::uint64_t number = 2; number < 2000; ++number) {
    const std::string text = std::to_string(number);
    NodeView node = Node(number, 4, {{"rack", "r" + text}, {"zone", text}, {"l" + text, "1"}});
    node.total = node.free = Resources::Of({{"GPU", 4 * kUnit}, {"node:" + text, kUnit}});
    index.Put(node);
    Request request = Ask(1, 1);
    request.labels = {{"zone", text}, {"l" + text, "1"}};
    const auto plan = Pack(index, request);
    ASSERT_TRUE(plan);
    EXPECT_EQ(Numbers(plan), Expected{number});
    index.Erase(node.id);
    ASSERT_LE(index.numbered(), 1000u) << "after " << number;
  }
  EXPECT_TRUE(Pack(index, Ask(4, 1)));
}

TEST(ClusterIndex, ChangedStepByStepPlansAsBuiltAtOnce) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Prng random(seed);
    ClusterIndex stepwise;
    std::map<NodeId, NodeView> now;
    for (int step = 0; step < 40; ++step) {
      const std::uint64_t number = 1 + random.Below(8);
      NodeView node = Node(number, 1 + random.Below(4));
      if (random.Chance(700)) node.labels["rack"] = "r" + std::to_string(random.Below(3));
      if (random.Chance(300)) node.labels["zone"] = "z" + std::to_string(random.Below(2));
      if (random.Chance(200)) node.total.Set("tpu-" + std::to_string(random.Below(3)), kUnit);
      if (random.Chance(100)) node.closed = "draining";
      if (random.Chance(200)) {
        stepwise.Erase(node.id);
        now.erase(node.id);
      } else if (random.Chance(300) && now.count(node.id) > 0) {
        stepwise.Take(node.id, Gpus(1));
        now[node.id].free.Subtract(Gpus(1));
      } else {
        stepwise.Put(node);
        now[node.id] = node;
      }
      std::vector<NodeView> nodes;
      for (const auto& [id, view] : now) nodes.push_back(view);
      Request request =
          Ask(1 + random.Below(4), 1 + random.Below(2), static_cast<Strategy>(random.Below(4)));
      if (random.Chance(300)) request.labels["zone"] = "!z0";
      if (random.Chance(300)) request.level = "rack";
      request.level_required = random.Chance(500);
      ASSERT_EQ(Numbers(Pack(stepwise, request)), Numbers(Pack(nodes, request)))
          << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace troupe::placement
