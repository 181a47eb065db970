#include "placement/explain.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "placement/demand.h"
#include "placement/nested_fill.h"
#include "placement/packer.h"

namespace troupe::placement {
namespace {

constexpr std::size_t kGroupsMax = 32;
constexpr std::size_t kGroupsInSummaryMax = 4;
constexpr std::size_t kNamesMax = 3;

std::string Asked(const Request& request) {
  std::map<Resources, std::size_t> kinds;
  for (const Resources& bundle : request.bundles) ++kinds[bundle];
  std::string out;
  for (const auto& [bundle, count] : kinds) {
    if (!out.empty()) out += " + ";
    out += count > 1 ? std::to_string(count) + " x " + bundle.Text() : bundle.Text();
  }
  if (!request.labels.empty()) out += " with " + SelectorText(request.labels);
  for (const Selector& other : request.fallbacks) out += ", or " + SelectorText(other);
  if (request.strategy != Strategy::kPack) out += std::string(", ") + NameOf(request.strategy);
  if (!request.level.empty() && request.level_required) out += ", in one " + request.level;
  return out;
}

// Nodes of which the same is to be said.
struct Group {
  std::vector<const Host*> hosts;
  std::string have;
  std::string verdict;
};

std::string NamesOf(const Group& group) {
  std::string out;
  const std::size_t shown = group.hosts.size() > kNamesMax + 1 ? kNamesMax : group.hosts.size();
  for (std::size_t i = 0; i < shown; ++i) out += (i > 0 ? ", " : "") + group.hosts[i]->view.name;
  if (shown == group.hosts.size()) return out;
  return out + " and " + std::to_string(group.hosts.size() - shown) + " more";
}

// "4 more GPU, 2 more CPU".
std::string Missing(const Resources& asked, const Resources& have) {
  std::string out;
  for (const auto& [name, amount] : asked.amounts()) {
    if (amount <= have.Get(name)) continue;
    out += (out.empty() ? "" : ", ") + AmountText(amount - have.Get(name)) + " more " + name;
  }
  return out;
}

std::string LabelMissing(const Selector& selector, const Labels& labels) {
  for (const auto& [key, term] : selector) {
    const auto found = labels.find(key);
    const std::string* const value = found == labels.end() ? nullptr : &found->second;
    if (!TermHolds(term, value)) return MismatchText(key, term, value);
  }
  return {};
}

class Explainer {
 public:
  Explainer(ClusterIndex& cluster, const Request& request)
      : cluster_(cluster),
        request_(request),
        demand_(cluster, request, request.labels),
        never_(!EverFits(cluster, request)),
        least_(request.bundles[0]) {
    for (const Resources& bundle : request.bundles) {
      asked_.Add(bundle);
      if (bundle != least_ && bundle.FitsIn(least_)) least_ = bundle;
    }
  }

  Refusal Run() {
    Refusal refusal;
    refusal.never = never_;
    const std::string asked = Asked(request_);
    refusal.text = asked + (never_ ? " can never be placed" : " must wait");
    refusal.summary = asked;
    if (cluster_.size() == 0) {
      refusal.text += "\n  the cluster has no nodes; join one with: troupe start --address";
      refusal.summary += ": the cluster has no nodes";
      return refusal;
    }
    const std::vector<Group> groups = Groups();
    std::size_t nodes = 0;
    for (std::size_t i = 0; i < groups.size() && i < kGroupsMax; ++i) {
      const std::string names = NamesOf(groups[i]);
      const bool each = groups[i].hosts.size() > 1 && groups[i].verdict.rfind("fits", 0) == 0;
      refusal.text +=
          "\n  " + names + ": " + groups[i].have + "; " + groups[i].verdict + (each ? " each" : "");
      if (i < kGroupsInSummaryMax)
        refusal.summary += (i == 0 ? ": " : "; ") + names + " " + groups[i].verdict;
      nodes += groups[i].hosts.size();
    }
    if (nodes < cluster_.size()) {
      refusal.text += "\n  and " + std::to_string(cluster_.size() - nodes) + " more nodes";
    }
    for (const std::string& line : Whole()) refusal.text += "\n  " + line;
    return refusal;
  }

 private:
  // Hosts of the same pools cannot be told apart; closed ones are by why.
  std::vector<Group> Groups() const {
    using Key = std::tuple<const Pool*, const Pool*, std::string, bool>;
    std::map<Key, std::pair<std::string, std::string>> said;
    std::map<std::pair<std::string, std::string>, std::size_t> places;
    std::vector<Group> groups;
    for (const Host* host : cluster_.in_place_order()) {
      const bool closed = !host->view.closed.empty();
      const Key key{host->pools[0], host->pools[1], closed ? host->view.id.Hex() : "",
                    Special(host)};
      auto known = said.find(key);
      if (known == said.end())
        known = said.emplace(key, std::make_pair(Have(*host), Verdict(*host))).first;
      const auto [place, made] = places.try_emplace(known->second, groups.size());
      if (made) groups.push_back({{}, known->second.first, known->second.second});
      groups[place->second].hosts.push_back(host);
    }
    return groups;
  }

  // Returns true if the host differs from those of equal amounts by facts that are not in its pool.
  bool Special(const Host* host) const {
    return host->view.id == request_.node ||
           (!Level().empty() && host->view.labels.count(Level()) == 0);
  }
  std::string Level() const { return request_.level_required ? request_.level : std::string(); }

  // Describes the amounts the request is about: "4 CPU, 0 of 8 GPU free".
  std::string Have(const Host& host) const {
    std::string out;
    for (const auto& entry : asked_.amounts()) {
      const std::uint64_t free = host.view.free.Get(entry.first);
      const std::uint64_t total = host.view.total.Get(entry.first);
      out += (out.empty() ? "" : ", ") + AmountText(free);
      if (free != total) out += " of " + AmountText(total);
      out += " " + entry.first;
    }
    return out.empty() ? "no resources are asked for" : out + " free";
  }

  std::string Verdict(const Host& host) const {
    const NodeView& node = host.view;
    std::string label = LabelMissing(request_.labels, node.labels);
    for (const Selector& other : request_.fallbacks) {
      if (!label.empty() && LabelMissing(other, node.labels).empty()) label.clear();
    }
    if (!label.empty()) return label;
    if (!Level().empty() && node.labels.count(Level()) == 0) return "has no label " + Level();
    if (!request_.node.IsNil() && !request_.node_soft && node.id != request_.node) {
      return "not the node asked for";
    }
    const bool some = request_.bundle_labels.empty() ||
                      std::any_of(request_.bundle_labels.begin(), request_.bundle_labels.end(),
                                  [&](const Selector& own) { return Holds(own, node.labels); });
    if (!some) return "no bundle: " + LabelMissing(request_.bundle_labels[0], node.labels);
    const std::uint64_t limit = request_.bundles.size();
    const std::uint64_t ever = least_.TimesIn(node.total, limit);
    const std::uint64_t now = node.closed.empty() ? least_.TimesIn(node.free, limit) : 0;
    if (ever == 0) return "too small for one: " + Missing(least_, node.total) + " needed";
    if (!node.closed.empty()) return node.closed;
    if (now == 0) return "in use: " + Missing(least_, node.free) + " needed";
    return "fits " + std::to_string(now) +
           (now == ever ? "" : " now, " + std::to_string(ever) + " when idle");
  }

  // Reasons that lie with no single node.
  std::vector<std::string> Whole() const {
    std::vector<std::string> lines;
    const std::size_t bundles = request_.bundles.size();
    const std::string when = never_ ? "" : " now";
    if (request_.strategy == Strategy::kStrictPack && bundles > 1) {
      lines.push_back("STRICT_PACK needs all on one node: " + asked_.Text());
    }
    const Using what = never_ ? Using::kTotal : Using::kFree;
    std::vector<FillRow> rows;
    std::uint64_t able = 0;
    for (const Host* host : cluster_.in_place_order()) {
      const Pool* pool = host->pools[static_cast<std::size_t>(what)];
      const bool known = pool != nullptr && demand_.known();
      const std::uint64_t room = known ? demand_.RoomIn(*pool) : 0;
      able += room > 0 ? 1 : 0;
      rows.push_back(
          {request_.strategy == Strategy::kStrictSpread ? std::min<std::uint64_t>(room, 1) : room,
           host->domains.data()});
    }
    if (request_.strategy == Strategy::kStrictSpread && able < bundles) {
      lines.push_back("needs " + std::to_string(bundles) + " different nodes; " +
                      std::to_string(able) + " of " + std::to_string(cluster_.size()) +
                      " can hold one" + when);
    }
    if (!Level().empty()) lines.push_back(Roomiest(rows, when));
    return lines;
  }

  std::string Roomiest(const std::vector<FillRow>& rows, const std::string& when) const {
    const Levels& levels = cluster_.levels();
    const auto at =
        static_cast<std::size_t>(std::find(levels.begin(), levels.end(), Level()) - levels.begin());
    if (at == levels.size()) return Level() + " is no level of this cluster";
    FillRun best;
    for (const FillRun& run : RunsOf(rows, levels.size(), at, 0, rows.size())) {
      if (rows[run.begin].domains[at] != 0 && run.room > best.room) best = run;
    }
    if (best.room == 0) return "no " + Level() + " has room for one" + when;
    const Host* host = cluster_.in_place_order()[best.begin];
    return "no " + Level() + " holds all" + when + ": the roomiest, " +
           host->view.labels.at(Level()) + ", has room for " + std::to_string(best.room) + " of " +
           std::to_string(request_.bundles.size());
  }

  ClusterIndex& cluster_;
  const Request& request_;
  const Demand demand_;
  const bool never_;
  Resources least_;
  Resources asked_;
};

}  // namespace

Refusal Explain(ClusterIndex& cluster, const Request& request) {
  if (request.bundles.empty()) return {};
  return Explainer(cluster, request).Run();
}

Refusal Explain(const std::vector<NodeView>& nodes, const Request& request) {
  ClusterIndex cluster(nodes);
  return Explain(cluster, request);
}

}  // namespace troupe::placement
