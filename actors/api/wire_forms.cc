#include "actors/api/wire_forms.h"

#include <troupe/error.h>

#include <cmath>

#include "runtime/async/os_random.h"

namespace troupe::api {

std::vector<wire::Resource> ResourcesOf(const std::map<std::string, double>& amounts) {
  std::vector<wire::Resource> list;
  for (const auto& [name, amount] : amounts) {
    if (!(amount >= 0) || amount > 1e14)
      throw InvalidError("the resource " + name + " is a number of at least 0, not " +
                         std::to_string(amount));
    if (name == "GPU" && amount > 1 && amount != std::floor(amount))
      throw InvalidError("GPUs are a fraction of one, or whole ones, not " +
                         std::to_string(amount));
    wire::Resource each;
    each.name = name;
    each.ten_thousandths = static_cast<std::uint64_t>(std::llround(amount * 10000));
    if (each.ten_thousandths > 0) list.push_back(std::move(each));
  }
  return list;
}

wire::Strategy StrategyOf(const std::string& name) {
  if (name == "PACK") return wire::Strategy::kPack;
  if (name == "SPREAD") return wire::Strategy::kSpread;
  if (name == "STRICT_PACK") return wire::Strategy::kStrictPack;
  if (name == "STRICT_SPREAD") return wire::Strategy::kStrictSpread;
  throw InvalidError("the strategy is one of PACK, SPREAD, STRICT_PACK, STRICT_SPREAD, not " +
                     name);
}

wire::Where WhereOf(const std::map<std::string, std::string>& labels) {
  wire::Where where;
  for (const auto& [key, value] : labels) {
    wire::Label label;
    label.key = key;
    label.value = value;
    where.labels.push_back(std::move(label));
  }
  return where;
}

GroupId GroupIdOf(const std::string& hex) {
  const auto id = GroupId::FromHex(hex);
  if (!id) throw InvalidError("\"" + hex + "\" is no placement group's id");
  return *id;
}

template <class Id>
Id NewId() {
  async::OsRandom random;
  return Id::Random(random);
}
template ActorId NewId<ActorId>();
template GroupId NewId<GroupId>();
template RequestId NewId<RequestId>();

}  // namespace troupe::api
