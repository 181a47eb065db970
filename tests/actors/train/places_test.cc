// Groups of ranks that share a node, and who serves whom, for layouts drawn at random and some by
// hand.
#include "actors/train/core/places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace troupe::train {
namespace {

std::vector<std::vector<std::string>> ManyLayouts() {
  std::vector<std::vector<std::string>> layouts = {
      {"a"}, {"a", "b"}, {"b", "a", "b"}, {"a", "a", "a", "b"}};
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::string> hosts(1 + random() % 12);
    for (auto& host : hosts) host = std::string(1, static_cast<char>('a' + random() % 5));
    layouts.push_back(std::move(hosts));
  }
  return layouts;
}

TEST(Places, PL1_EveryRankFindsTheSameNodes) {
  for (const auto& hosts : ManyLayouts()) {
    const Places first(hosts, 0);
    for (int rank = 0; rank < first.size(); ++rank) {
      const Places places(hosts, rank);
      EXPECT_EQ(places.nodes(), first.nodes());
      EXPECT_EQ(places.neighbours()[static_cast<std::size_t>(places.place())], rank);
      for (const int each : places.neighbours())
        EXPECT_EQ(hosts[static_cast<std::size_t>(each)], hosts[static_cast<std::size_t>(rank)]);
      for (int node = 0; node < places.nodes(); ++node) {
        EXPECT_EQ(places.ranks_of(node), first.ranks_of(node));
        EXPECT_TRUE(std::is_sorted(places.ranks_of(node).begin(), places.ranks_of(node).end()));
        EXPECT_TRUE(node == 0 || places.leader_of(node - 1) < places.leader_of(node));
      }
    }
  }
}

TEST(Places, PL2_EveryRailIsComplete) {
  for (const auto& hosts : ManyLayouts()) {
    const Places places(hosts, 0);
    EXPECT_GE(places.rails(), 1);
    for (int node = 0; node < places.nodes(); ++node) {
      const int ranks = static_cast<int>(places.ranks_of(node).size());
      EXPECT_GE(ranks, places.rails());
      EXPECT_LE(ranks, places.ranks_of_a_node_max());
    }
  }
}

TEST(Places, PL3_EveryNodeHasOneThatServesARankAndNeighboursShareIt) {
  for (const auto& hosts : ManyLayouts()) {
    const Places places(hosts, 0);
    for (int node = 0; node < places.nodes(); ++node) {
      std::set<int> serving;
      for (int rank = 0; rank < places.size(); ++rank) {
        const int who = places.Serving(node, rank);
        EXPECT_EQ(places.node_of(who), node);
        EXPECT_TRUE(places.node_of(rank) != node || who == rank);
        serving.insert(who);
      }
      EXPECT_EQ(serving.size(), places.ranks_of(node).size());
    }
  }
}

TEST(Places, PL4_WhatIsBroadcastComesToEachNodeOnce) {
  for (int nodes = 1; nodes < 7; ++nodes)
    for (int root = 0; root < nodes; ++root)
      for (const std::size_t bytes : {std::size_t{8}, kStarBytesMax, kStarBytesMax + 1}) {
        std::vector<int> came_from(static_cast<std::size_t>(nodes), -1);
        std::size_t most = 0;
        for (int node = 0; node < nodes; ++node) {
          const Route route = BroadcastRoute(root, node, nodes, bytes);
          most = std::max(most, route.to.size());
          for (const int to : route.to) {
            EXPECT_EQ(came_from[static_cast<std::size_t>(to)], -1) << to << " of " << nodes;
            came_from[static_cast<std::size_t>(to)] = node;
          }
        }
        for (int node = 0; node < nodes; ++node)
          EXPECT_EQ(BroadcastRoute(root, node, nodes, bytes).from,
                    came_from[static_cast<std::size_t>(node)]);
        EXPECT_EQ(came_from[static_cast<std::size_t>(root)], -1);
        EXPECT_TRUE(bytes <= kStarBytesMax || most <= 1) << "no node sends it twice";
      }
}

}  // namespace
}  // namespace troupe::train
