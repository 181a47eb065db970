#include "placement/explain.h"

#include <algorithm>
#include <map>

#include "placement/packer.h"

namespace troupe::placement {
namespace {

constexpr std::size_t kNodesNamedMax = 32;

std::string Asked(const Request& request) {
  std::map<Resources, std::size_t> kinds;
  for (const Resources& bundle : request.bundles) ++kinds[bundle];
  std::string out;
  for (const auto& [bundle, count] : kinds) {
    if (!out.empty()) out += " + ";
    out += count > 1 ? std::to_string(count) + " x " + bundle.Text() : bundle.Text();
  }
  for (const auto& [key, value] : request.labels) out += " with " + key + "=" + value;
  if (request.strategy != Strategy::kPack) out += std::string(", ") + NameOf(request.strategy);
  return out;
}

// The resources a request is about, of one node: "4 CPU, 0 of 8 GPU free".
std::string Have(const NodeView& node, const Request& request) {
  Resources names;
  for (const Resources& bundle : request.bundles) names.Add(bundle);
  std::string out;
  for (const auto& entry : names.amounts()) {
    if (!out.empty()) out += ", ";
    const std::uint64_t free = node.free.Get(entry.first);
    const std::uint64_t total = node.total.Get(entry.first);
    out += AmountText(free);
    if (free != total) out += " of " + AmountText(total);
    out += " " + entry.first;
  }
  return out.empty() ? "nothing asked of it" : out + " free";
}

std::string Verdict(const NodeView& node, const Request& request) {
  for (const auto& [key, value] : request.labels) {
    const auto found = node.labels.find(key);
    if (found == node.labels.end()) return "has no label " + key;
    Request only;
    only.labels = {{key, value}};
    only.bundles = {Resources{}};
    if (!EverFits({node}, only)) return key + " is " + found->second + ", not " + value;
  }
  if (!request.node.IsNil() && !request.node_soft && node.id != request.node) {
    return "not the node asked for";
  }
  const Resources least = *std::min_element(
      request.bundles.begin(), request.bundles.end(),
      [](const Resources& a, const Resources& b) { return a.FitsIn(b) && !(b.FitsIn(a)); });
  const std::uint64_t limit = request.bundles.size();
  const std::uint64_t ever = least.TimesIn(node.total, limit);
  const std::uint64_t now = node.closed.empty() ? least.TimesIn(node.free, limit) : 0;
  if (ever == 0) return "too small for one";
  if (!node.closed.empty()) return node.closed;
  if (now == 0) return "in use";
  return "fits " + std::to_string(now) + (now == ever ? "" : " now, " + std::to_string(ever) + " when idle");
}

}  // namespace

Refusal Explain(const std::vector<NodeView>& nodes, const Request& request) {
  Refusal refusal;
  refusal.never = !EverFits(nodes, request);
  const std::string asked = Asked(request);
  refusal.text = asked + (refusal.never ? " can never be placed" : " must wait");
  refusal.summary = asked;
  if (nodes.empty()) {
    refusal.text += "\n  the cluster has no nodes; join one with: troupe start --address";
    refusal.summary += ": the cluster has no nodes";
    return refusal;
  }
  std::string parts;
  std::size_t named = 0;
  for (const NodeView& node : nodes) {
    if (named++ == kNodesNamedMax) {
      refusal.text += "\n  and " + std::to_string(nodes.size() - kNodesNamedMax) + " more nodes";
      break;
    }
    const std::string verdict = Verdict(node, request);
    refusal.text += "\n  " + node.name + ": " + Have(node, request) + "; " + verdict;
    if (named <= 4) parts += (parts.empty() ? ": " : "; ") + node.name + " " + verdict;
  }
  refusal.summary += parts;
  if (request.strategy == Strategy::kStrictSpread && request.bundles.size() > nodes.size()) {
    refusal.text += "\n  needs " + std::to_string(request.bundles.size()) +
                    " different nodes, the cluster has " + std::to_string(nodes.size());
  }
  return refusal;
}

}  // namespace troupe::placement
