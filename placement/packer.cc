#include "placement/packer.h"

#include <algorithm>
#include <utility>

#include "placement/demand.h"
#include "placement/field.h"
#include "placement/mixed.h"
#include "placement/nested_fill.h"
#include "placement/spread.h"

namespace troupe::placement {
namespace {

class Planner {
 public:
  Planner(ClusterIndex& cluster, const Request& request, const Selector& labels, Using what)
      : cluster_(cluster),
        request_(request),
        demand_(cluster, request, labels),
        what_(what),
        levels_(cluster.levels().size()) {
    const auto& levels = cluster.levels();
    while (level_ < levels.size() && levels[level_] != request.level) ++level_;
  }

  std::optional<Plan> Run() {
    if (!demand_.known()) return std::nullopt;
    if (auto picks = OnNamedNode()) return PlanOf(std::move(*picks));
    if (!request_.node.IsNil() && !request_.node_soft) return std::nullopt;
    const bool one =
        request_.strategy == Strategy::kStrictPack || request_.strategy == Strategy::kPack;
    if (one) {
      if (const Host* host = OneNode()) return PlanOf(AllOn(host));
      if (request_.strategy == Strategy::kStrictPack || demand_.bundles() == 1) return std::nullopt;
    }
    if (!request_.level.empty()) {
      if (auto picks = InOneDomain()) return PlanOf(std::move(*picks));
      if (request_.level_required) return std::nullopt;
      if (level_ < levels_ && OnlyEqual() && request_.strategy == Strategy::kPack) {
        Measure();
        auto picks = FillNested({0, rows_.size(), 0});
        return picks ? std::optional(PlanOf(std::move(*picks))) : std::nullopt;
      }
    }
    auto picks = On(FieldOf(cluster_.pools(what_), demand_));
    return picks ? std::optional(PlanOf(std::move(*picks))) : std::nullopt;
  }

 private:
  bool OnlyEqual() const { return demand_.items().size() == 1; }
  bool Labelled(const Host* host) const {
    return !request_.level_required || request_.level.empty() ||
           (level_ < levels_ && host->domains[level_] != 0);
  }

  Picks AllOn(const Host* host) const {
    Picks picks;
    for (std::size_t i = 0; i < demand_.items().size(); ++i) {
      picks.push_back({i, host, demand_.items()[i].bundles.size()});
    }
    return picks;
  }

  std::optional<Picks> OnNamedNode() {
    const Host* host = request_.node.IsNil() ? nullptr : cluster_.Find(request_.node);
    const Pool* pool = host == nullptr ? nullptr : host->pools[static_cast<std::size_t>(what_)];
    if (pool == nullptr || !Labelled(host) || !demand_.AdmitsAll(*pool)) return std::nullopt;
    const bool apart = request_.strategy == Strategy::kStrictSpread && demand_.bundles() > 1;
    if (apart || !FitsIn(demand_.sum(), pool->amounts)) return std::nullopt;
    return AllOn(host);
  }

  // The tightest node that holds all.
  const Host* OneNode() const {
    return cluster_.pools(what_).Tightest(demand_.sum(), [this](const Pool& pool) -> const Host* {
      if (!demand_.AdmitsAll(pool)) return nullptr;
      const auto at = std::find_if(pool.hosts.begin(), pool.hosts.end(),
                                   [this](const Host* host) { return Labelled(host); });
      return at == pool.hosts.end() ? nullptr : *at;
    });
  }

  // Computes the room of each node, in the order of places.
  void Measure() {
    if (!rows_.empty()) return;
    const std::uint64_t most = request_.strategy == Strategy::kStrictSpread ? 1 : demand_.bundles();
    rows_.reserve(cluster_.in_place_order().size());
    for (const Host* host : cluster_.in_place_order()) {
      const Pool* pool = host->pools[static_cast<std::size_t>(what_)];
      std::uint64_t room = 0;
      if (pool != nullptr) {
        const auto [known, made] = rooms_.try_emplace(pool, 0);
        if (made) known->second = std::min(most, demand_.RoomIn(*pool));
        room = known->second;
      }
      rows_.push_back({room, host->domains.data()});
    }
  }

  // The narrowest domains first, up to the one asked for; at each level the one with least room
  // left.
  std::optional<Picks> InOneDomain() {
    if (level_ == levels_) return std::nullopt;
    Measure();
    for (std::size_t level = levels_; level-- > level_;) {
      std::vector<FillRun> runs = RunsOf(rows_, levels_, level, 0, rows_.size());
      const auto unfit = [&](const FillRun& run) {
        return run.room < demand_.bundles() || rows_[run.begin].domains[level] == 0 ||
               rows_[run.begin].domains[level_] == 0;
      };
      runs.erase(std::remove_if(runs.begin(), runs.end(), unfit), runs.end());
      std::stable_sort(runs.begin(), runs.end(),
                       [](const FillRun& a, const FillRun& b) { return a.room < b.room; });
      for (const FillRun& run : runs) {
        auto picks = OnlyEqual() && request_.strategy == Strategy::kPack ? FillNested(run)
                                                                         : On(FieldIn(run));
        if (picks) return picks;
      }
    }
    return std::nullopt;
  }

  Field FieldIn(const FillRun& run) const {
    const auto& order = cluster_.in_place_order();
    return FieldOf(order.data() + run.begin, order.data() + run.end, what_, demand_);
  }

  std::optional<Picks> FillNested(const FillRun& run) const {
    const std::vector<FillRow> rows(rows_.begin() + static_cast<std::ptrdiff_t>(run.begin),
                                    rows_.begin() + static_cast<std::ptrdiff_t>(run.end));
    return Filled(rows, levels_,
                  [&](std::size_t row) { return cluster_.in_place_order()[run.begin + row]; });
  }

  // Equal bundles, PACK, anywhere: nodes are all that counts.
  std::optional<Picks> FillFlat(const Field& field) const {
    std::vector<FillRow> rows;
    std::vector<const Host*> hosts;
    for (const Lot& lot : field) {
      const std::uint64_t room = demand_.RoomIn(*lot.pool);
      rows.resize(rows.size() + lot.hosts.size(), {room, nullptr});
      hosts.insert(hosts.end(), lot.hosts.begin(), lot.hosts.end());
    }
    return Filled(rows, 0, [&](std::size_t row) { return hosts[row]; });
  }

  template <class HostOf>
  std::optional<Picks> Filled(const std::vector<FillRow>& rows, std::size_t levels,
                              HostOf host) const {
    std::uint64_t room = 0;
    for (const FillRow& row : rows) room += row.room;
    if (room < demand_.bundles()) return std::nullopt;
    const auto taken = NestedFill(rows, levels, demand_.bundles());
    Picks picks;
    for (std::size_t i = 0; i < taken.size(); ++i) {
      if (taken[i] > 0) picks.push_back({0, host(i), taken[i]});
    }
    return picks;
  }

  std::optional<Picks> On(Field field) const {
    switch (request_.strategy) {
      case Strategy::kStrictPack:
        return std::nullopt;  // OneNode is exact
      case Strategy::kStrictSpread:
        return OnDistinctNodes(field, demand_);
      case Strategy::kSpread:
        std::stable_sort(field.begin(), field.end(), [this](const Lot& a, const Lot& b) {
          return demand_.Emptier(a.pool->amounts, b.pool->amounts);
        });
        if (auto picks = OnDistinctNodes(field, demand_)) return picks;
        return Mixed(field, demand_, Prefer::kManyNodes);
      case Strategy::kPack:
        return OnlyEqual() ? FillFlat(field) : Mixed(field, demand_, Prefer::kFewNodes);
    }
    return std::nullopt;
  }

  // Equal bundles in the order of ranks: by domain, in one the fullest nodes first, then by name.
  Plan PlanOf(Picks picks) const {
    std::stable_sort(picks.begin(), picks.end(), [](const Pick& a, const Pick& b) {
      return a.item != b.item ? a.item < b.item : a.host->place < b.host->place;
    });
    for (auto run = picks.begin(); run != picks.end();) {
      const auto end = std::find_if(run, picks.end(), [&](const Pick& p) {
        return p.item != run->item || p.host->domains != run->host->domains;
      });
      std::map<const Host*, std::uint64_t> counts;
      for (auto at = run; at != end; ++at) counts[at->host] += at->count;
      std::stable_sort(run, end, [&](const Pick& a, const Pick& b) {
        return counts.at(a.host) > counts.at(b.host);
      });
      run = end;
    }
    Plan plan;
    plan.nodes.resize(demand_.bundles());
    std::size_t next = 0;
    for (std::size_t i = 0; i < picks.size(); ++i) {
      if (i > 0 && picks[i].item != picks[i - 1].item) next = 0;
      const auto& bundles = demand_.items()[picks[i].item].bundles;
      for (std::uint64_t n = 0; n < picks[i].count; ++n)
        plan.nodes[bundles[next++]] = picks[i].host->view.id;
    }
    return plan;
  }

  ClusterIndex& cluster_;
  const Request& request_;
  Demand demand_;
  const Using what_;
  const std::size_t levels_;
  std::size_t level_ = 0;  // the one asked for; levels_: none the cluster has
  std::vector<FillRow> rows_;
  std::unordered_map<const Pool*, std::uint64_t> rooms_;
};

}  // namespace

const char* NameOf(Strategy strategy) {
  switch (strategy) {
    case Strategy::kPack:
      return "PACK";
    case Strategy::kSpread:
      return "SPREAD";
    case Strategy::kStrictPack:
      return "STRICT_PACK";
    case Strategy::kStrictSpread:
      return "STRICT_SPREAD";
  }
  return "?";
}

std::optional<Plan> PackOn(ClusterIndex& cluster, const Request& request, Using what) {
  if (request.bundles.empty()) return Plan{};
  auto plan = Planner(cluster, request, request.labels, what).Run();
  for (auto at = request.fallbacks.begin(); !plan && at != request.fallbacks.end(); ++at) {
    plan = Planner(cluster, request, *at, what).Run();
  }
  return plan;
}

std::optional<Plan> Pack(ClusterIndex& cluster, const Request& request) {
  return PackOn(cluster, request, Using::kFree);
}

bool EverFits(ClusterIndex& cluster, const Request& request) {
  return PackOn(cluster, request, Using::kTotal).has_value();
}

std::optional<Plan> Pack(const std::vector<NodeView>& nodes, const Request& request) {
  ClusterIndex cluster(nodes);
  return Pack(cluster, request);
}

bool EverFits(const std::vector<NodeView>& nodes, const Request& request) {
  ClusterIndex cluster(nodes);
  return EverFits(cluster, request);
}

Gang GangOf(const Plan& plan) {
  Gang gang;
  for (const NodeId& node : plan.nodes) {
    if (gang.parts.empty() || gang.parts.back().node != node) gang.parts.push_back({node, 0});
    ++gang.parts.back().count;
  }
  return gang;
}

}  // namespace troupe::placement
