#include "placement/cluster_index.h"

#include <algorithm>
#include <string_view>
#include <tuple>

namespace troupe::placement {
namespace {

constexpr std::uint64_t kPlaceStride = std::uint64_t{1} << 32;
constexpr std::size_t kRememberedMin = 64;  // entries of nodes that have left, whatever the
                                            // cluster's size

// Scarcest first; the order in which amounts are compared.
bool Scarcer(const std::string& a, const std::string& b) {
  const auto rank = [](const std::string& name) {
    return name == "GPU" ? 0 : name == "CPU" ? 2 : name == "memory" ? 3 : 1;
  };
  return std::make_tuple(rank(a), std::string_view(a)) <
         std::make_tuple(rank(b), std::string_view(b));
}

std::string_view ValueOf(const Labels& labels, const std::string& key) {
  const auto found = labels.find(key);
  return found == labels.end() ? std::string_view() : std::string_view(found->second);
}

// Returns true if a request that did not fit before may fit now.
bool MayHoldMore(const NodeView& now, const NodeView& before) {
  if (!now.closed.empty()) return false;
  return !before.closed.empty() || !now.free.FitsIn(before.free) || now.labels != before.labels ||
         now.name != before.name;
}

// By domain, widest level first, then by name.
struct StandsBefore {
  const Levels& levels;
  bool operator()(const Host* a, const Host* b) const {
    for (const std::string& level : levels) {
      const int order = ValueOf(a->view.labels, level).compare(ValueOf(b->view.labels, level));
      if (order != 0) return order < 0;
    }
    return std::tie(a->view.name, a->view.id) < std::tie(b->view.name, b->view.id);
  }
};

}  // namespace

const Levels& DefaultLevels() {
  static const Levels levels = {"block", "rack", "nvlink_domain"};
  return levels;
}

ClusterIndex::ClusterIndex(Levels levels) : levels_(std::move(levels)) {
  if (levels_.size() > kLevelsMax) levels_.resize(kLevelsMax);
}

ClusterIndex::ClusterIndex(const std::vector<NodeView>& nodes, Levels levels)
    : ClusterIndex(std::move(levels)) {
  for (const NodeView& node : nodes) {
    Learn(node);
    auto& host = hosts_[node.id];
    if (host == nullptr) {
      host = std::make_unique<Host>();
      order_.push_back(host.get());
    }
    host->view = node;
  }
  Rebuild();
}

void ClusterIndex::Put(NodeView node) {
  auto& host = hosts_[node.id];
  if (host != nullptr && host->view == node) return;
  if (host == nullptr || MayHoldMore(node, host->view)) ++growth_;
  const bool stands =
      host != nullptr && host->view.labels == node.labels && host->view.name == node.name;
  if (host != nullptr && !stands) {
    const NodeId id = node.id;
    Erase(id);
    Put(std::move(node));
    return;
  }
  const bool known = host != nullptr;
  if (!known) host = std::make_unique<Host>();
  const bool rebuild = Learn(node);
  if (known && !rebuild) {
    Leave(*host, Using::kFree);
    Leave(*host, Using::kTotal);
  }
  host->view = std::move(node);
  if (!known) {
    const auto at =
        std::upper_bound(order_.begin(), order_.end(), host.get(), StandsBefore{levels_});
    const auto entered = order_.insert(at, host.get());
    FindDomains(*host);
    GivePlace(static_cast<std::size_t>(entered - order_.begin()));
  }
  const bool forgets = !known && ForgetFormer();
  if (rebuild || forgets) {
    Rebuild();
    return;
  }
  Enter(*host, Using::kFree);
  Enter(*host, Using::kTotal);
}

// Kinds, domains and resources of nodes that have left are numbered still. True: they are numbered
// anew by the Rebuild that is to follow.
bool ClusterIndex::ForgetFormer() {
  const std::size_t most = 2 * hosts_.size() + kRememberedMin;
  if (kinds_.size() <= most && domain_ids_.size() <= most * levels_.size() &&
      names_.size() <= 2 * names_kept_ + kRememberedMin && known_labels_.size() <= kRememberedMin) {
    return false;
  }
  known_labels_.clear();  // a request for one of them makes it known again
  names_.clear();
  for (const Host* host : order_) Learn(host->view);
  names_kept_ = names_.size();
  return true;
}

void ClusterIndex::Erase(const NodeId& node) {
  const auto known = hosts_.find(node);
  if (known == hosts_.end()) return;
  Leave(*known->second, Using::kFree);
  Leave(*known->second, Using::kTotal);
  order_.erase(std::lower_bound(order_.begin(), order_.end(), known->second.get(), NearerFirst()));
  hosts_.erase(known);
}

void ClusterIndex::SetFree(const NodeId& node, Resources free) {
  const auto known = hosts_.find(node);
  if (known == hosts_.end() || known->second->view.free == free) return;
  Host& host = *known->second;
  Leave(host, Using::kFree);
  host.view.free = std::move(free);
  if (Learn(host.view)) {
    Rebuild();
  } else {
    Enter(host, Using::kFree);
  }
}

void ClusterIndex::Take(const NodeId& node, const Resources& amount) {
  const Host* host = Find(node);
  if (host == nullptr) return;
  Resources free = host->view.free;
  free.Subtract(amount);
  SetFree(node, std::move(free));
}

const Host* ClusterIndex::Find(const NodeId& node) const {
  const auto known = hosts_.find(node);
  return known == hosts_.end() ? nullptr : known->second.get();
}

void ClusterIndex::Know(const Selector& selector) {
  bool news = false;
  for (const auto& [key, term] : selector) {
    if (known_labels_.count(key) > 0) continue;
    const bool found = std::any_of(order_.begin(), order_.end(), [key = key](const Host* host) {
      return host->view.labels.count(key) > 0;
    });
    if (!found) continue;  // a label that no node has tells none apart
    known_labels_.insert(key);
    news = true;
  }
  if (news) Rebuild();
}

std::optional<Amounts> ClusterIndex::AmountsOf(const Resources& resources) const {
  for (const auto& entry : resources.amounts()) {
    if (!std::binary_search(names_.begin(), names_.end(), entry.first, Scarcer))
      return std::nullopt;
  }
  return Converted(resources);
}

Amounts ClusterIndex::Converted(const Resources& resources) const {
  Amounts amounts(names_.size());
  for (std::size_t i = 0; i < names_.size(); ++i) amounts[i] = resources.Get(names_[i]);
  return amounts;
}

// Returns true if the node has a resource with a new name: all amounts get one more dimension.
bool ClusterIndex::Learn(const NodeView& node) {
  bool news = false;
  for (const Resources* resources : {&node.total, &node.free}) {
    for (const auto& entry : resources->amounts()) {
      const auto at = std::lower_bound(names_.begin(), names_.end(), entry.first, Scarcer);
      if (at != names_.end() && *at == entry.first) continue;
      names_.insert(at, entry.first);
      news = true;
    }
  }
  return news;
}

void ClusterIndex::Enter(Host& host, Using what) {
  if (what == Using::kFree && !host.view.closed.empty()) return;
  const auto at = static_cast<std::size_t>(what);
  host.pools[at] =
      pools_[at].Put(&host, KindOf(host.view.labels),
                     Converted(what == Using::kFree ? host.view.free : host.view.total));
}

void ClusterIndex::Leave(Host& host, Using what) {
  const auto at = static_cast<std::size_t>(what);
  if (host.pools[at] != nullptr) pools_[at].Remove(&host, host.pools[at]);
  host.pools[at] = nullptr;
}

std::uint32_t ClusterIndex::KindOf(const Labels& labels) {
  Labels known;
  for (const std::string& key : known_labels_) {
    const auto found = labels.find(key);
    if (found != labels.end()) known.insert(*found);
  }
  const auto [at, made] = kind_ids_.try_emplace(known, static_cast<std::uint32_t>(kinds_.size()));
  if (made) kinds_.push_back(std::move(known));
  return at->second;
}

void ClusterIndex::FindDomains(Host& host) {
  std::vector<std::string> path;
  for (std::size_t level = 0; level < levels_.size(); ++level) {
    path.emplace_back(ValueOf(host.view.labels, levels_[level]));
    host.domains[level] = 0;
    if (path.back().empty()) continue;
    const auto next = static_cast<std::uint32_t>(domain_ids_.size() + 1);
    host.domains[level] = domain_ids_.try_emplace(path, next).first->second;
  }
}

// Between its neighbours; when there is no number left between them, all are numbered anew, which
// leaves the order of those in pools as it is.
void ClusterIndex::GivePlace(std::size_t at) {
  const std::uint64_t before = at == 0 ? 0 : order_[at - 1]->place;
  const std::uint64_t after =
      at + 1 < order_.size() ? order_[at + 1]->place : before + 2 * kPlaceStride;
  order_[at]->place = before + (after - before) / 2;
  if (after - before > 1) return;
  for (std::size_t i = 0; i < order_.size(); ++i) order_[i]->place = (i + 1) * kPlaceStride;
}

void ClusterIndex::Rebuild() {
  pools_ = {};
  kinds_.clear();
  kind_ids_.clear();
  domain_ids_.clear();
  std::sort(order_.begin(), order_.end(), StandsBefore{levels_});
  for (std::size_t i = 0; i < order_.size(); ++i) order_[i]->place = (i + 1) * kPlaceStride;
  for (Host* host : order_) {
    FindDomains(*host);
    for (const Using what : {Using::kFree, Using::kTotal}) {
      host->pools[static_cast<std::size_t>(what)] = nullptr;
      Enter(*host, what);
    }
  }
}

}  // namespace troupe::placement
