// Method: random small clusters and requests; a brute-force oracle says whether any placement exists.
// If the oracle fits it, so must the packer, and what the packer returns must hold (P5).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "placement/explain.h"
#include "placement/packer.h"
#include "runtime/base/random.h"

namespace troupe::placement {
namespace {

struct Case {
  std::vector<NodeView> nodes;
  Request request;
};

Case Draw(Prng& random) {
  Case out;
  const std::size_t nodes = 1 + random.Below(5);
  for (std::size_t i = 0; i < nodes; ++i) {
    NodeView node;
    node.id = NodeId(7, i + 1);
    node.name = "node-" + std::to_string(random.Below(100));
    node.total = Resources::Of({{"CPU", random.Below(9) * kUnit / 2}, {"GPU", random.Below(5) * kUnit}});
    node.free = node.total;
    node.free.Subtract(Resources::Of({{"CPU", random.Below(4) * kUnit / 2}}));
    if (random.Chance(100)) node.closed = "draining";
    out.nodes.push_back(node);
  }
  const std::size_t bundles = 1 + random.Below(5);
  const bool equal = random.Chance(500);
  for (std::size_t i = 0; i < bundles; ++i) {
    if (i > 0 && equal) {
      out.request.bundles.push_back(out.request.bundles[0]);
      continue;
    }
    out.request.bundles.push_back(
        Resources::Of({{"CPU", (1 + random.Below(4)) * kUnit / 2}, {"GPU", random.Below(3) * kUnit}}));
  }
  out.request.strategy = static_cast<Strategy>(random.Below(4));
  return out;
}

bool Holds(const Case& c, const std::vector<std::size_t>& choice) {
  std::map<std::size_t, Resources> sums;
  for (std::size_t b = 0; b < choice.size(); ++b) sums[choice[b]].Add(c.request.bundles[b]);
  for (const auto& [node, sum] : sums) {
    if (!c.nodes[node].closed.empty() || !sum.FitsIn(c.nodes[node].free)) return false;
  }
  if (c.request.strategy == Strategy::kStrictPack) return sums.size() == 1;
  if (c.request.strategy == Strategy::kStrictSpread) return sums.size() == choice.size();
  return true;
}

bool OracleFits(const Case& c) {
  std::vector<std::size_t> choice(c.request.bundles.size(), 0);
  for (;;) {
    if (Holds(c, choice)) return true;
    std::size_t at = 0;
    while (at < choice.size() && ++choice[at] == c.nodes.size()) choice[at++] = 0;
    if (at == choice.size()) return false;
  }
}

TEST(PackerProperty, P5_AgreesWithTheOracle) {
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    Prng random(seed);
    const Case c = Draw(random);
    const auto plan = Pack(c.nodes, c.request);
    ASSERT_EQ(plan.has_value(), OracleFits(c)) << "seed " << seed;
    if (!plan) {
      EXPECT_FALSE(Explain(c.nodes, c.request).text.empty());
      continue;
    }
    std::vector<std::size_t> choice;
    for (const NodeId& node : plan->nodes) choice.push_back(static_cast<std::size_t>(node.lo - 1));
    EXPECT_TRUE(Holds(c, choice)) << "seed " << seed;
  }
}

TEST(PackerProperty, OrderOfNodesDoesNotMatter) {
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    Prng random(seed);
    Case c = Draw(random);
    const bool before = Pack(c.nodes, c.request).has_value();
    std::reverse(c.nodes.begin(), c.nodes.end());
    EXPECT_EQ(Pack(c.nodes, c.request).has_value(), before) << "seed " << seed;
  }
}

TEST(PackerProperty, MoreCapacityNeverHurts) {
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    Prng random(seed);
    Case c = Draw(random);
    if (!Pack(c.nodes, c.request)) continue;
    NodeView& node = c.nodes[random.Below(c.nodes.size())];
    node.free.Add(Resources::Of({{"CPU", kUnit}, {"GPU", kUnit}}));
    node.total.Add(Resources::Of({{"CPU", kUnit}, {"GPU", kUnit}}));
    EXPECT_TRUE(Pack(c.nodes, c.request)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace troupe::placement
