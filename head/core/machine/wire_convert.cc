#include "head/core/machine/wire_convert.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace troupe::head {
namespace {

constexpr std::size_t kFallbacksMax = 16;

}  // namespace

placement::Resources FromWire(const std::vector<wire::Resource>& list) {
  placement::Resources out;
  for (const wire::Resource& item : list) out.Set(item.name, item.ten_thousandths);
  return out;
}

std::vector<wire::Resource> ToWire(const placement::Resources& resources) {
  std::vector<wire::Resource> out;
  for (const auto& [name, amount] : resources.amounts()) {
    wire::Resource item;
    item.name = name;
    item.ten_thousandths = amount;
    out.push_back(std::move(item));
  }
  return out;
}

placement::Strategy FromWire(wire::Strategy strategy) {
  switch (strategy) {
    case wire::Strategy::kPack:
      return placement::Strategy::kPack;
    case wire::Strategy::kSpread:
      return placement::Strategy::kSpread;
    case wire::Strategy::kStrictPack:
      return placement::Strategy::kStrictPack;
    case wire::Strategy::kStrictSpread:
      return placement::Strategy::kStrictSpread;
  }
  return placement::Strategy::kPack;
}

std::int32_t ExitCodeOf(const wire::Failure& end) {
  return end.signal != 0 ? 128 + end.signal : end.exit_code;
}

std::map<std::string, std::string> LabelsFromWire(const std::vector<wire::Label>& list) {
  std::map<std::string, std::string> out;
  for (const wire::Label& label : list) out[label.key] = label.value;
  return out;
}

void Restrict(placement::Request& request, const wire::Where& where,
              const std::vector<wire::Bundle>& bundles) {
  for (const auto& [key, term] : LabelsFromWire(where.labels)) request.labels[key] = term;
  for (const wire::Selector& other : where.fallbacks)
    request.fallbacks.push_back(LabelsFromWire(other.terms));
  request.level = where.level;
  request.level_required = where.level_required;
  const bool own = std::any_of(bundles.begin(), bundles.end(),
                               [](const wire::Bundle& bundle) { return !bundle.labels.empty(); });
  if (!own) return;
  for (const wire::Bundle& bundle : bundles)
    request.bundle_labels.push_back(LabelsFromWire(bundle.labels));
}

std::string ObjectionTo(const wire::Where& where, const std::vector<wire::Bundle>& bundles) {
  if (where.fallbacks.size() > kFallbacksMax) {
    return "more than " + std::to_string(kFallbacksMax) + " fallbacks of a label selector";
  }
  placement::Request request;
  Restrict(request, where, bundles);
  std::vector<placement::Selector> selectors = request.fallbacks;
  selectors.push_back(request.labels);
  selectors.insert(selectors.end(), request.bundle_labels.begin(), request.bundle_labels.end());
  for (const placement::Selector& selector : selectors) {
    const Status status = placement::CheckSelector(selector);
    if (!status.ok()) return MessageOf(status);
  }
  const placement::Levels& levels = placement::DefaultLevels();
  if (where.level.empty() || std::find(levels.begin(), levels.end(), where.level) != levels.end())
    return {};
  std::string known;
  for (const std::string& level : levels) known += (known.empty() ? "" : ", ") + level;
  return "'" + where.level + "' is no level of where nodes stand; there are: " + known;
}

}  // namespace troupe::head
