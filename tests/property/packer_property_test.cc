// Method: random small clusters and requests; a brute-force oracle says whether any placement
// exists. If the oracle fits it, so must the packer, and what the packer returns must hold (P5). As
// many cases as TROUPE_CASES says, 20,000 otherwise; a failure names its seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "placement/explain.h"
#include "placement/packer.h"
#include "runtime/base/random.h"

namespace troupe::placement {
namespace {

std::uint64_t Cases(std::uint64_t bounded) {
  const char* asked = std::getenv("TROUPE_CASES");
  return asked == nullptr ? bounded : std::strtoull(asked, nullptr, 10);
}

struct Case {
  std::vector<NodeView> nodes;
  Request request;
};

Selector DrawSelector(Prng& random) {
  static const char* const kTerms[] = {"a", "!a", "in(a,b)", "!in(a,b)", "exists()", "!exists()"};
  if (random.Chance(600)) return {};
  return {{"zone", kTerms[random.Below(6)]}};
}

Case Draw(Prng& random) {
  Case out;
  const std::size_t nodes = 1 + random.Below(5);
  for (std::size_t i = 0; i < nodes; ++i) {
    NodeView node;
    node.id = NodeId(7, i + 1);
    node.name = "node-" + std::to_string(random.Below(100));
    node.total =
        Resources::Of({{"CPU", random.Below(9) * kUnit / 2}, {"GPU", random.Below(5) * kUnit}});
    node.free = node.total;
    node.free.Subtract(Resources::Of({{"CPU", random.Below(4) * kUnit / 2}}));
    if (random.Chance(100)) node.closed = "draining";
    if (random.Chance(700)) node.labels["zone"] = random.Chance(500) ? "a" : "b";
    if (random.Chance(800)) node.labels["rack"] = random.Chance(500) ? "r1" : "r2";
    if (random.Chance(500)) node.labels["block"] = random.Chance(500) ? "b1" : "b2";
    out.nodes.push_back(node);
  }
  const std::size_t bundles = 1 + random.Below(5);
  const bool equal = random.Chance(500);
  for (std::size_t i = 0; i < bundles; ++i) {
    if (i > 0 && equal) {
      out.request.bundles.push_back(out.request.bundles[0]);
      continue;
    }
    out.request.bundles.push_back(Resources::Of(
        {{"CPU", (1 + random.Below(4)) * kUnit / 2}, {"GPU", random.Below(3) * kUnit}}));
  }
  out.request.strategy = static_cast<Strategy>(random.Below(4));
  out.request.labels = DrawSelector(random);
  if (random.Chance(200)) out.request.fallbacks = {DrawSelector(random), DrawSelector(random)};
  if (random.Chance(200)) {
    for (std::size_t i = 0; i < bundles; ++i)
      out.request.bundle_labels.push_back(DrawSelector(random));
  }
  if (random.Chance(300)) out.request.level = random.Chance(700) ? "rack" : "block";
  out.request.level_required = random.Chance(500);
  if (random.Chance(100)) out.request.node = NodeId(7, 1 + random.Below(6));
  out.request.node_soft = random.Chance(500);
  return out;
}

// Returns the node's place at the level asked for; empty: it lacks the label.
std::string DomainOf(const NodeView& node, const std::string& level) {
  const auto value = [&node](const char* key) {
    const auto found = node.labels.find(key);
    return found == node.labels.end() ? std::string() : found->second;
  };
  if (value(level.c_str()).empty()) return {};
  return level == "rack" ? value("block") + "/" + value("rack") : value("block");
}

bool LabelsAllow(const Case& c, std::size_t bundle, const Selector& labels, const NodeView& node) {
  return Holds(labels, node.labels) &&
         (c.request.bundle_labels.empty() || Holds(c.request.bundle_labels[bundle], node.labels));
}

// Returns true if a choice of nodes satisfies the request, in the plainest code possible.
bool KeepsTheRules(const Case& c, const std::vector<std::size_t>& choice, const Selector& labels,
                   bool named) {
  std::map<std::size_t, Resources> sums;
  std::set<std::string> domains;
  for (std::size_t b = 0; b < choice.size(); ++b) {
    const NodeView& node = c.nodes[choice[b]];
    sums[choice[b]].Add(c.request.bundles[b]);
    if (!node.closed.empty() || !LabelsAllow(c, b, labels, node)) return false;
    if (named && node.id != c.request.node) return false;
    domains.insert(c.request.level.empty() ? "anywhere" : DomainOf(node, c.request.level));
  }
  for (const auto& [node, sum] : sums) {
    if (!sum.FitsIn(c.nodes[node].free)) return false;
  }
  const bool required = !c.request.level.empty() && c.request.level_required;
  if (required && (domains.size() != 1 || domains.count("") > 0)) return false;
  if (c.request.strategy == Strategy::kStrictPack) return sums.size() == 1;
  if (c.request.strategy == Strategy::kStrictSpread) return sums.size() == choice.size();
  return true;
}

std::vector<Selector> Alternatives(const Case& c) {
  std::vector<Selector> all = {c.request.labels};
  all.insert(all.end(), c.request.fallbacks.begin(), c.request.fallbacks.end());
  return all;
}

bool Keeps(const Case& c, const std::vector<std::size_t>& choice) {
  const bool named = !c.request.node.IsNil() && !c.request.node_soft;
  const auto all = Alternatives(c);
  return std::any_of(all.begin(), all.end(), [&](const Selector& labels) {
    return KeepsTheRules(c, choice, labels, named);
  });
}

// Every choice, bundle by bundle, as long as each bundle alone fits; the whole is judged at the
// end.
bool OracleFits(const Case& c, std::vector<std::size_t>& choice) {
  if (choice.size() == c.request.bundles.size()) return true;
  for (std::size_t node = 0; node < c.nodes.size(); ++node) {
    choice.push_back(node);
    const Resources& bundle = c.request.bundles[choice.size() - 1];
    const bool whole = choice.size() == c.request.bundles.size();
    if (bundle.FitsIn(c.nodes[node].free) && (whole ? Keeps(c, choice) : OracleFits(c, choice)))
      return true;
    choice.pop_back();
  }
  return false;
}

TEST(PackerProperty, P5_AgreesWithTheOracle) {
  const std::uint64_t cases = Cases(20'000);
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Prng random(seed);
    const Case c = Draw(random);
    const auto plan = Pack(c.nodes, c.request);
    std::vector<std::size_t> choice;
    ASSERT_EQ(plan.has_value(), OracleFits(c, choice)) << "seed " << seed;
    if (!plan) {
      EXPECT_FALSE(Explain(c.nodes, c.request).text.empty());
      continue;
    }
    choice.clear();
    for (const NodeId& node : plan->nodes) choice.push_back(static_cast<std::size_t>(node.lo - 1));
    ASSERT_TRUE(Keeps(c, choice)) << "seed " << seed;
  }
}

TEST(PackerProperty, P5_PackOfEqualBundlesUsesAsFewNodesAsAny) {
  const std::uint64_t cases = Cases(5'000);
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Prng random(seed);
    Case c = Draw(random);
    c.request.strategy = Strategy::kPack;
    c.request.bundles.assign(c.request.bundles.size(), c.request.bundles[0]);
    c.request.bundle_labels.clear();
    c.request.level.clear();
    c.request.fallbacks.clear();
    c.request.node = NodeId();
    const auto plan = Pack(c.nodes, c.request);
    if (!plan) continue;
    const std::size_t used = std::set<NodeId>(plan->nodes.begin(), plan->nodes.end()).size();
    for (unsigned subset = 0; subset < 1u << c.nodes.size(); ++subset) {
      std::vector<NodeView> fewer;
      for (std::size_t i = 0; i < c.nodes.size(); ++i) {
        if ((subset >> i & 1u) != 0) fewer.push_back(c.nodes[i]);
      }
      if (fewer.size() >= used) continue;
      ASSERT_FALSE(Pack(fewer, c.request)) << "seed " << seed;
    }
  }
}

TEST(PackerProperty, OrderOfNodesDoesNotMatter) {
  const std::uint64_t cases = Cases(5'000);
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Prng random(seed);
    Case c = Draw(random);
    const auto before = Pack(c.nodes, c.request);
    for (std::size_t i = c.nodes.size(); i > 1; --i)
      std::swap(c.nodes[i - 1], c.nodes[random.Below(i)]);
    const auto after = Pack(c.nodes, c.request);
    ASSERT_EQ(after.has_value(), before.has_value()) << "seed " << seed;
    if (!before) continue;
    ASSERT_EQ(after->nodes, before->nodes) << "seed " << seed;
  }
}

TEST(PackerProperty, MoreCapacityNeverHurts) {
  const std::uint64_t cases = Cases(5'000);
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Prng random(seed);
    Case c = Draw(random);
    if (!Pack(c.nodes, c.request)) continue;
    NodeView& node = c.nodes[random.Below(c.nodes.size())];
    node.free.Add(Resources::Of({{"CPU", kUnit}, {"GPU", kUnit}}));
    node.total.Add(Resources::Of({{"CPU", kUnit}, {"GPU", kUnit}}));
    ASSERT_TRUE(Pack(c.nodes, c.request)) << "seed " << seed;
    NodeView more = node;
    more.id = NodeId(7, c.nodes.size() + 1);
    c.nodes.push_back(more);
    ASSERT_TRUE(Pack(c.nodes, c.request)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace troupe::placement
