#include "placement/queue.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "placement/demand.h"
#include "placement/trial.h"

namespace troupe::placement {
namespace {

// True for groups of which an idle node of a pool could hold a bundle.
class Useful {
 public:
  Useful(ClusterIndex& cluster, const Request& request) {
    demands_.emplace_back(cluster, request, request.labels);
    for (const Selector& labels : request.fallbacks)
      demands_.emplace_back(cluster, request, labels);
  }
  bool operator()(const Host* host) const {
    const Pool& idle = *host->pools[static_cast<std::size_t>(Using::kTotal)];
    return std::any_of(demands_.begin(), demands_.end(), [&](const Demand& demand) {
      return demand.known() && demand.RoomIn(idle) > 0;
    });
  }

 private:
  std::vector<Demand> demands_;
};

// Open nodes that could be of use to the request and are not idle, those with least in use first.
std::vector<const Host*> Busy(ClusterIndex& cluster, const Request& request) {
  std::vector<std::pair<Amounts, const Host*>> busy;
  const Useful useful(cluster, request);
  for (const Host* host : cluster.in_place_order()) {
    const Pool* free = host->pools[static_cast<std::size_t>(Using::kFree)];
    const Pool* total = host->pools[static_cast<std::size_t>(Using::kTotal)];
    if (free == nullptr || free->amounts == total->amounts) continue;
    if (!useful(host)) continue;
    Amounts in_use(total->amounts);
    for (std::size_t i = 0; i < in_use.size(); ++i)
      in_use[i] -= std::min(in_use[i], free->amounts[i]);
    busy.emplace_back(std::move(in_use), host);
  }
  std::stable_sort(busy.begin(), busy.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const Host*> hosts;
  for (const auto& entry : busy) hosts.push_back(entry.second);
  return hosts;
}

}  // namespace

void TakePlan(ClusterIndex& cluster, const Request& request, const Plan& plan) {
  std::map<NodeId, Resources> amounts;
  for (std::size_t i = 0; i < plan.nodes.size();) {
    std::size_t same = i + 1;
    while (same < plan.nodes.size() && plan.nodes[same] == plan.nodes[i] &&
           request.bundles[same] == request.bundles[i]) {
      ++same;
    }
    amounts[plan.nodes[i]].Add(request.bundles[i].Times(same - i));
    i = same;
  }
  for (const auto& [node, amount] : amounts) cluster.Take(node, amount);
}

std::optional<Plan> PlanAhead(ClusterIndex& cluster, const Request& request) {
  const std::vector<const Host*> busy = Busy(cluster, request);
  Trial trial(cluster);
  std::size_t idle = 0;
  const auto with_idle = [&](std::size_t count) {  // so many of the busy ones idle
    for (; idle < count; ++idle) trial.SetFree(busy[idle]->view.id, busy[idle]->view.total);
    for (; idle > count; --idle) trial.Restore(busy[idle - 1]->view.id);
    return Pack(cluster, request);
  };
  std::size_t too_few = 0;
  std::size_t enough = std::min<std::size_t>(1, busy.size());
  std::optional<Plan> plan = with_idle(enough);
  while (!plan && enough < busy.size()) {
    too_few = enough;
    enough = std::min(enough * 2, busy.size());
    plan = with_idle(enough);
  }
  if (!plan) return std::nullopt;
  while (enough - too_few > 1) {
    const std::size_t middle = too_few + (enough - too_few) / 2;
    if (auto fewer = with_idle(middle)) {
      plan = std::move(fewer);
      enough = middle;
    } else {
      too_few = middle;
    }
  }
  return plan;
}

bool Pass::Shape::operator()(const Request& a, const Request& b) const {
  const auto fields = [](const Request& r) {
    return std::tie(r.bundles, r.strategy, r.labels, r.fallbacks, r.bundle_labels, r.level,
                    r.level_required, r.node, r.node_soft);
  };
  return fields(a) < fields(b);
}

std::optional<Plan> Pass::Try(const Request& request, bool ready, bool urgent) {
  if (ready) {
    if (auto plan = Place(request)) return plan;
  }
  if (keeps_) return std::nullopt;
  if (!urgent) {
    Keep(request);
  } else if (PlanAhead(cluster_, request)) {
    KeepAll(request);
  }
  return std::nullopt;
}

std::optional<Plan> Pass::Place(const Request& request) {
  if (failed_.count(request) > 0) return std::nullopt;
  auto plan = Pack(cluster_, request);
  if (plan) {
    TakePlan(cluster_, request, *plan);
  } else {
    failed_.insert(request);
  }
  return plan;
}

Pass::~Pass() {
  for (const auto& [node, amount] : kept_) {
    const Host* host = cluster_.Find(node);
    if (host == nullptr) continue;
    Resources free = host->view.free;
    free.Add(amount);
    cluster_.SetFree(node, std::move(free));
  }
}

std::optional<Plan> Pass::Keep(const Request& request) {
  auto plan = PlanAhead(cluster_, request);
  if (plan) KeepPlan(request, *plan);
  return plan;
}

void Pass::KeepAll(const Request& request) {
  keeps_ = true;
  const Useful useful(cluster_, request);
  for (const Host* host : cluster_.in_place_order()) {
    if (useful(host)) KeepOf(host->view.id, host->view.free);
  }
}

void Pass::KeepPlan(const Request& request, const Plan& plan) {
  keeps_ = true;
  std::map<NodeId, Resources> amounts;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i)
    amounts[plan.nodes[i]].Add(request.bundles[i]);
  for (const auto& [node, amount] : amounts) KeepOf(node, amount);
}

void Pass::KeepOf(const NodeId& node, const Resources& amount) {
  const Host* host = cluster_.Find(node);
  if (host == nullptr) return;
  const Resources kept = Resources::Least(amount, host->view.free);
  kept_[node] = kept;
  cluster_.Take(node, kept);
}

}  // namespace troupe::placement
