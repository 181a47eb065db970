#include "placement/packer.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <numeric>
#include <string>

namespace troupe::placement {
namespace {

bool SameText(const std::string& a, const std::string& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) ==
                  std::tolower(static_cast<unsigned char>(y));
         });
}

bool LabelsMatch(const NodeView& node, const Request& request) {
  return std::all_of(request.labels.begin(), request.labels.end(), [&node](const auto& wanted) {
    const auto found = node.labels.find(wanted.first);
    return found != node.labels.end() && SameText(found->second, wanted.second);
  });
}

// A node under consideration: what is left of it while a plan grows.
struct Slot {
  NodeId id;
  std::string name;
  Resources left;
  std::size_t used = 0;  // bundles given to it
};
using Slots = std::vector<Slot>;
using Choice = std::vector<std::size_t>;  // slot of each bundle

Slots SlotsOf(const std::vector<NodeView>& nodes, const Request& request, Using what) {
  Slots slots;
  for (const NodeView& node : nodes) {
    if (what == Using::kFree && !node.closed.empty()) continue;
    if (!LabelsMatch(node, request)) continue;
    slots.push_back({node.id, node.name, what == Using::kFree ? node.free : node.total, 0});
  }
  std::sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) {
    return a.name != b.name ? a.name < b.name : a.id < b.id;
  });
  return slots;
}

Resources Sum(const std::vector<Resources>& bundles) {
  Resources sum;
  for (const Resources& bundle : bundles) sum.Add(bundle);
  return sum;
}

// How full a node would be: the mean share left over of what is asked for; less is a better fit.
std::uint64_t Leftover(const Resources& left, const Resources& asked) {
  std::uint64_t sum = 0;
  for (const auto& [name, amount] : asked.amounts()) sum += left.Get(name) - amount;
  return sum;
}

std::optional<Choice> OneNode(const Slots& slots, const std::vector<Resources>& bundles) {
  const Resources all = Sum(bundles);
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!all.FitsIn(slots[i].left)) continue;
    if (!best || Leftover(slots[i].left, all) < Leftover(slots[*best].left, all)) best = i;
  }
  if (!best) return std::nullopt;
  return Choice(bundles.size(), *best);
}

// Maximum matching (Kuhn): exact, and near to linear for equal bundles.
std::optional<Choice> Distinct(const Slots& slots, const std::vector<Resources>& bundles) {
  if (bundles.size() > slots.size()) return std::nullopt;
  const std::size_t kNone = bundles.size();
  std::vector<std::size_t> owner(slots.size(), kNone);
  std::vector<char> seen;
  std::function<bool(std::size_t)> place = [&](std::size_t bundle) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (seen[i] || !bundles[bundle].FitsIn(slots[i].left)) continue;
      seen[i] = 1;
      if (owner[i] == kNone || place(owner[i])) {
        owner[i] = bundle;
        return true;
      }
    }
    return false;
  };
  for (std::size_t b = 0; b < bundles.size(); ++b) {
    seen.assign(slots.size(), 0);
    if (!place(b)) return std::nullopt;
  }
  Choice choice(bundles.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (owner[i] != kNone) choice[owner[i]] = i;
  }
  return choice;
}

bool AllEqual(const std::vector<Resources>& bundles) {
  return std::all_of(bundles.begin(), bundles.end(),
                     [&bundles](const Resources& b) { return b == bundles.front(); });
}

// Equal bundles under PACK: the fewest nodes, each taken in full, the last one the tightest fit.
std::optional<Choice> FillEqual(const Slots& slots, const std::vector<Resources>& bundles) {
  const std::size_t wanted = bundles.size();
  std::vector<std::size_t> room(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) room[i] = bundles[0].TimesIn(slots[i].left, wanted);
  Choice choice;
  std::vector<char> taken(slots.size(), 0);
  while (choice.size() < wanted) {
    const std::size_t rest = wanted - choice.size();
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (taken[i] || room[i] == 0) continue;
      if (!best) {
        best = i;
      } else if (room[*best] < rest) {
        if (room[i] > room[*best]) best = i;
      } else if (room[i] >= rest && Leftover(slots[i].left, bundles[0].Times(rest)) <
                                        Leftover(slots[*best].left, bundles[0].Times(rest))) {
        best = i;
      }
    }
    if (!best) return std::nullopt;
    taken[*best] = 1;
    choice.insert(choice.end(), std::min(rest, room[*best]), *best);
  }
  return choice;
}

// Largest bundle first, each to the slot `better` prefers among those that hold it.
using Better = bool (*)(const Slot&, const Slot&, const Resources&);
std::optional<Choice> Greedy(Slots slots, const std::vector<Resources>& bundles, Better better) {
  std::vector<std::size_t> order(bundles.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&bundles](std::size_t a, std::size_t b) {
    return Leftover(bundles[a], {}) > Leftover(bundles[b], {}) || bundles[b] < bundles[a];
  });
  Choice choice(bundles.size());
  for (const std::size_t b : order) {
    Slot* best = nullptr;
    for (Slot& slot : slots) {
      if (!bundles[b].FitsIn(slot.left)) continue;
      if (best == nullptr || better(slot, *best, bundles[b])) best = &slot;
    }
    if (best == nullptr) return std::nullopt;
    best->left.Subtract(bundles[b]);
    ++best->used;
    choice[b] = static_cast<std::size_t>(best - slots.data());
  }
  return choice;
}

bool Fuller(const Slot& a, const Slot& b, const Resources& bundle) {
  if ((a.used > 0) != (b.used > 0)) return a.used > 0;
  return Leftover(a.left, bundle) < Leftover(b.left, bundle);
}
bool Emptier(const Slot& a, const Slot& b, const Resources&) { return a.used < b.used; }

// What greed missed: every placement, largest bundles first, up to a bound of steps.
std::optional<Choice> Search(Slots slots, const std::vector<Resources>& bundles) {
  std::vector<std::size_t> order(bundles.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&bundles](std::size_t a, std::size_t b) {
    return bundles[b] < bundles[a];
  });
  Choice choice(bundles.size());
  std::size_t steps = 0;
  std::function<bool(std::size_t)> place = [&](std::size_t at) {
    if (at == order.size()) return true;
    const Resources& bundle = bundles[order[at]];
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (++steps > kSearchStepsMax) return false;
      if (!bundle.FitsIn(slots[i].left)) continue;
      slots[i].left.Subtract(bundle);
      choice[order[at]] = i;
      if (place(at + 1)) return true;
      slots[i].left.Add(bundle);
    }
    return false;
  };
  if (!place(0)) return std::nullopt;
  return choice;
}

std::optional<Choice> Choose(const Slots& slots, const Request& request) {
  const std::vector<Resources>& bundles = request.bundles;
  switch (request.strategy) {
    case Strategy::kStrictPack:
      return OneNode(slots, bundles);
    case Strategy::kStrictSpread:
      return Distinct(slots, bundles);
    case Strategy::kSpread: {
      if (auto choice = Distinct(slots, bundles)) return choice;
      if (auto choice = Greedy(slots, bundles, Emptier)) return choice;
      break;
    }
    case Strategy::kPack: {
      if (auto choice = OneNode(slots, bundles)) return choice;
      if (AllEqual(bundles)) return FillEqual(slots, bundles);
      if (auto choice = Greedy(slots, bundles, Fuller)) return choice;
      break;
    }
  }
  return Search(slots, bundles);
}

std::optional<Plan> PlanOn(const std::vector<NodeView>& nodes, const Request& request, Using what) {
  if (request.bundles.empty()) return Plan{};
  Slots slots = SlotsOf(nodes, request, what);
  std::optional<Choice> choice;
  if (!request.node.IsNil()) {
    Slots only;
    for (const Slot& slot : slots) {
      if (slot.id == request.node) only.push_back(slot);
    }
    choice = Choose(only, request);
    if (choice) slots = only;
    if (!choice && !request.node_soft) return std::nullopt;
  }
  if (!choice) choice = Choose(slots, request);
  if (!choice) return std::nullopt;
  Plan plan;
  for (const std::size_t slot : *choice) plan.nodes.push_back(slots[slot].id);
  return plan;
}

}  // namespace

const char* NameOf(Strategy strategy) {
  switch (strategy) {
    case Strategy::kPack: return "PACK";
    case Strategy::kSpread: return "SPREAD";
    case Strategy::kStrictPack: return "STRICT_PACK";
    case Strategy::kStrictSpread: return "STRICT_SPREAD";
  }
  return "?";
}

std::optional<Plan> Pack(const std::vector<NodeView>& nodes, const Request& request) {
  return PlanOn(nodes, request, Using::kFree);
}

bool EverFits(const std::vector<NodeView>& nodes, const Request& request) {
  return PlanOn(nodes, request, Using::kTotal).has_value();
}

std::optional<Plan> PackOnTotals(const std::vector<NodeView>& nodes, const Request& request) {
  return PlanOn(nodes, request, Using::kTotal);
}

Gang GangOf(const std::vector<NodeView>& nodes, const Plan& plan) {
  std::map<NodeId, std::uint32_t> counts;
  for (const NodeId& node : plan.nodes) ++counts[node];
  std::map<NodeId, std::string> names;
  for (const NodeView& node : nodes) names[node.id] = node.name;
  Gang gang;
  for (const auto& [node, count] : counts) gang.parts.push_back({node, count});
  std::sort(gang.parts.begin(), gang.parts.end(), [&names](const GangPart& a, const GangPart& b) {
    if (a.count != b.count) return a.count > b.count;
    return names[a.node] != names[b.node] ? names[a.node] < names[b.node] : a.node < b.node;
  });
  return gang;
}

}  // namespace troupe::placement
