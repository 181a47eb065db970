// Method: small clusters by hand, one per strategy and per reason of a refusal.
#include "placement/packer.h"

#include <gtest/gtest.h>

#include <set>

#include "placement/explain.h"
#include "tests/placement/clusters.h"

namespace troupe::placement {
namespace {

const Labels kH100 = {{"gpu_type", "H100"}};

TEST(Resources, TenTenthsAreOne) {
  Resources sum;
  for (int i = 0; i < 10; ++i) sum.Add(Resources::Of({{"GPU", kUnit / 10}}));
  EXPECT_EQ(sum, Gpus(1));
  EXPECT_EQ(Resources::Of({{"GPU", 12'500}}).Text(), "{GPU: 1.25}");
}

TEST(Packer, PackTakesTheTightestNodeThatHoldsAll) {
  const std::vector<NodeView> nodes = {Node(1, 8), Node(2, 4), Node(3, 8)};
  const auto plan = Pack(nodes, Ask(4, 1));
  ASSERT_TRUE(plan);
  EXPECT_EQ(std::set<NodeId>(plan->nodes.begin(), plan->nodes.end()),
            std::set<NodeId>{nodes[1].id});
}

TEST(Packer, GangFillsNodesOneAfterTheOther) {
  const std::vector<NodeView> nodes = {Node(1, 8), Node(2, 8), Node(3, 4)};
  const auto plan = Pack(nodes, Ask(12, 1));
  ASSERT_TRUE(plan);
  const Gang gang = GangOf(*plan);
  ASSERT_EQ(gang.parts.size(), 2u);
  EXPECT_EQ(gang.parts[0].node, nodes[0].id);
  EXPECT_EQ(gang.parts[0].count, 8u);
  EXPECT_EQ(gang.parts[1].node, nodes[2].id);
}

TEST(Packer, P5_StrictSpreadUsesDistinctNodesOrNone) {
  const std::vector<NodeView> nodes = {Node(1, 8), Node(2, 8)};
  const auto plan = Pack(nodes, Ask(2, 1, Strategy::kStrictSpread));
  ASSERT_TRUE(plan);
  EXPECT_NE(plan->nodes[0], plan->nodes[1]);
  EXPECT_FALSE(Pack(nodes, Ask(3, 1, Strategy::kStrictSpread)));
}

TEST(Packer, P5_SpreadFallsBackEvenly) {
  const std::vector<NodeView> nodes = {Node(1, 8), Node(2, 8)};
  const auto plan = Pack(nodes, Ask(4, 1, Strategy::kSpread));
  ASSERT_TRUE(plan);
  EXPECT_EQ(GangOf(*plan).parts[0].count, 2u);
}

TEST(Packer, P5_StrictPackIsOneNodeOrNone) {
  const std::vector<NodeView> nodes = {Node(1, 2), Node(2, 2)};
  EXPECT_FALSE(Pack(nodes, Ask(3, 1, Strategy::kStrictPack)));
  EXPECT_TRUE(Pack(nodes, Ask(2, 1, Strategy::kStrictPack)));
}

TEST(Packer, LabelsCompareWithoutRegardToCase) {
  Request request = Ask(1, 1);
  request.labels["gpu_type"] = "h100";
  EXPECT_TRUE(Pack({Node(1, 1, kH100)}, request));
  request.labels["gpu_type"] = "A10";
  EXPECT_FALSE(EverFits({Node(1, 1, kH100)}, request));
}

TEST(Packer, ClosedNodesTakeNothingNewButCountForEver) {
  std::vector<NodeView> nodes = {Node(1, 8)};
  nodes[0].closed = "suspect: not heard of for 2.3 s";
  EXPECT_FALSE(Pack(nodes, Ask(1, 1)));
  EXPECT_TRUE(EverFits(nodes, Ask(1, 1)));
  const Refusal refusal = Explain(nodes, Ask(1, 1));
  EXPECT_FALSE(refusal.never);
  EXPECT_NE(refusal.summary.find("suspect"), std::string::npos);
}

TEST(Explain, NeverSaysItOncePerGroupOfEqualNodes) {
  Request request = Ask(3, 8);
  request.labels["gpu_type"] = "H100";
  const Refusal refusal =
      Explain({Node(1, 8, kH100), Node(2, 8, kH100), Node(3, 8, {{"gpu_type", "A10"}})}, request);
  EXPECT_TRUE(refusal.never);
  EXPECT_EQ(refusal.text,
            "3 x {GPU: 8} with gpu_type=H100 can never be placed\n"
            "  node-1, node-2: 8 GPU free; fits 1 each\n"
            "  node-3: 8 GPU free; gpu_type is A10, not H100");
}

TEST(Explain, NotNowSaysWhatIsInUse) {
  std::vector<NodeView> nodes = {Node(1, 8)};
  nodes[0].free = Resources();
  const Refusal refusal = Explain(nodes, Ask(4, 1));
  EXPECT_FALSE(refusal.never);
  EXPECT_EQ(refusal.text,
            "4 x {GPU: 1} must wait\n  node-1: 0 of 8 GPU free; in use: 1 more GPU needed");
}

}  // namespace
}  // namespace troupe::placement
