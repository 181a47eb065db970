// Method: nodes with ports in networks, as labels tell them; the value of NCCL_IB_HCA of each.
#include "placement/fabric.h"

#include <gtest/gtest.h>

namespace troupe::placement {
namespace {

using Values = std::vector<std::string>;

Values Reaching(std::initializer_list<const char*> labels) {
  std::vector<Fabric> nodes;
  for (const char* label : labels) nodes.push_back(ParseFabric(label));
  return ReachingPorts(nodes);
}

TEST(FabricText, IsReadAgainAsItWas) {
  const std::string text =
      "if eth0 up 1000 10.0.0.1/24 fd00::2/64;if ib0 down 0;"
      "rdma mlx5_0:1 InfiniBand ACTIVE 400000 4X_NDR ib0 fe80000000000000;"
      "rdma mlx5_1:1 Ethernet DOWN 100000 - -;nvlink 0-7 18 26562;gpudirect nvidia_peermem;";
  const Fabric fabric = ParseFabric(text);
  EXPECT_EQ(FabricText(fabric), text);
  ASSERT_EQ(fabric.interfaces.size(), 2u);
  EXPECT_EQ(fabric.interfaces[0].mbit_s, 1000u);
  EXPECT_EQ(fabric.interfaces[0].addresses, (Values{"10.0.0.1/24", "fd00::2/64"}));
  ASSERT_EQ(fabric.ports.size(), 2u);
  EXPECT_EQ(fabric.ports[0].networks, Values{"fe80000000000000"});
  EXPECT_EQ(fabric.ports[1].interface, "");
  EXPECT_EQ(fabric.nvlinks.at(0).links, 18u);
  EXPECT_EQ(FabricText(Fabric()), "");
}

TEST(FabricText, WhatASystemCallsThingsEndsNoRecord) {
  Fabric fabric;
  fabric.ports.push_back({"a b;c,d=e", "InfiniBand", "ACTIVE", 1, "", "", {}});
  EXPECT_EQ(FabricText(fabric), "rdma a_b_c_d_e InfiniBand ACTIVE 1 - -;");
}

TEST(FabricText, OfAnotherOriginDoesNoHarm) {
  EXPECT_TRUE(ParseFabric("").ports.empty());
  EXPECT_TRUE(ParseFabric(";; ;rdma;if eth0;later x y z;nvlink 0").ports.empty());
  EXPECT_EQ(ParseFabric("if eth0 up many 10.0.0.1/24").interfaces.at(0).mbit_s, 0u);
  std::string long_text;
  for (int i = 0; i < 1000; ++i) long_text += "if eth up 1;";
  EXPECT_EQ(ParseFabric(long_text).interfaces.size(), kFabricRecordsMax);
}

constexpr char kTwoIb[] =
    "rdma mlx5_0:1 InfiniBand ACTIVE 400000 4X_NDR ib0 fe80000000000000;"
    "rdma mlx5_1:1 InfiniBand ACTIVE 400000 4X_NDR ib1 fe80000000000000;";

TEST(ReachingPorts, AreTheActiveOnesInANetworkOfAllNodes) {
  EXPECT_EQ(Reaching({kTwoIb, kTwoIb}), (Values{"=mlx5_0:1,mlx5_1:1", "=mlx5_0:1,mlx5_1:1"}));
  EXPECT_EQ(Reaching({kTwoIb,
                      "rdma mlx5_0:1 InfiniBand DOWN 400000 - ib0 fe80000000000000;"
                      "rdma mlx5_4:1 InfiniBand ACTIVE 400000 - ib4 fe80000000000000;"}),
            (Values{"=mlx5_0:1,mlx5_1:1", "=mlx5_4:1"}));
}

TEST(ReachingPorts, AreNoneWhereOneNodeIsInNoCommonNetwork) {
  EXPECT_EQ(Reaching({kTwoIb, kTwoIb, "if eth0 up 1000 10.0.0.3/24;"}), (Values{"", "", ""}));
  EXPECT_EQ(Reaching({kTwoIb, "rdma mlx5_0:1 InfiniBand ACTIVE 1 - ib0 fe80000000000001;"}),
            (Values{"", ""}))
      << "two fabrics with subnet managers of their own";
  EXPECT_EQ(Reaching({kTwoIb, "rdma mlx5_0:1 Ethernet ACTIVE 1 - eth1 10.1.0.0/24;"}),
            (Values{"", ""}));
  EXPECT_EQ(Reaching({kTwoIb}), Values{""}) << "within one node nothing is reached by it";
  EXPECT_EQ(Reaching({}), Values());
}

// A storage network beside that for training: NCCL would use both.
TEST(ReachingPorts, AreOfTheLayerThatTheNodeWithLeastHasMostOf) {
  const std::string storage = "rdma mlx5_9:1 Ethernet ACTIVE 100000 - ens9 10.9.0.0/24;";
  const std::string both = kTwoIb + storage;
  EXPECT_EQ(Reaching({both.c_str(), both.c_str()}),
            (Values{"=mlx5_0:1,mlx5_1:1", "=mlx5_0:1,mlx5_1:1"}));
  EXPECT_EQ(Reaching({both.c_str(), storage.c_str()}), (Values{"=mlx5_9:1", "=mlx5_9:1"}));
}

TEST(ReachingPorts, OfRailsAreThoseOfTheRailsThatAllHave) {
  const char* const rails =
      "rdma mlx5_0:1 Ethernet ACTIVE 400000 - ens0 10.1.0.0/24;"
      "rdma mlx5_1:1 Ethernet ACTIVE 400000 - ens1 10.2.0.0/24;";
  const char* const one = "rdma mlx5_3:1 Ethernet ACTIVE 400000 - ens3 10.2.0.0/24;";
  EXPECT_EQ(Reaching({rails, rails}), (Values{"=mlx5_0:1,mlx5_1:1", "=mlx5_0:1,mlx5_1:1"}));
  EXPECT_EQ(Reaching({rails, one}), (Values{"=mlx5_1:1", "=mlx5_3:1"}));
}

}  // namespace
}  // namespace troupe::placement
