#include "worker/core/amounts.h"

#include <utility>

namespace troupe::worker {

std::uint64_t AmountOf(const Amounts& amounts, const std::string& name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? 0 : found->second;
}

void Add(Amounts& to, const Amounts& what) {
  for (const auto& [name, amount] : what) {
    if (amount > 0) to[name] += amount;
  }
}

bool Subtract(Amounts& from, const Amounts& what) {
  for (const auto& [name, amount] : what) {
    if (AmountOf(from, name) < amount) return false;
  }
  for (const auto& [name, amount] : what) {
    if (amount == 0) continue;
    auto entry = from.find(name);
    entry->second -= amount;
    if (entry->second == 0) from.erase(entry);
  }
  return true;
}

Amounts AmountsFromWire(const std::vector<wire::Resource>& resources) {
  Amounts amounts;
  for (const wire::Resource& resource : resources) {
    if (resource.ten_thousandths > 0) amounts[resource.name] += resource.ten_thousandths;
  }
  return amounts;
}

std::vector<wire::Resource> AmountsToWire(const Amounts& amounts) {
  std::vector<wire::Resource> resources;
  for (const auto& [name, amount] : amounts) {
    wire::Resource resource;
    resource.name = name;
    resource.ten_thousandths = amount;
    resources.push_back(std::move(resource));
  }
  return resources;
}

std::string AmountText(std::uint64_t ten_thousandths) {
  std::string text = std::to_string(ten_thousandths / kWhole);
  std::uint64_t rest = ten_thousandths % kWhole;
  if (rest == 0) return text;
  std::string digits = std::to_string(kWhole + rest).substr(1);
  while (digits.back() == '0') digits.pop_back();
  return text + "." + digits;
}

}  // namespace troupe::worker
