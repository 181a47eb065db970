#include "head/core/convert.h"

namespace troupe::head {

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
    case wire::Strategy::kPack: return placement::Strategy::kPack;
    case wire::Strategy::kSpread: return placement::Strategy::kSpread;
    case wire::Strategy::kStrictPack: return placement::Strategy::kStrictPack;
    case wire::Strategy::kStrictSpread: return placement::Strategy::kStrictSpread;
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

}  // namespace troupe::head
