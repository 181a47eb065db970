#include "placement/resources.h"

#include <algorithm>

namespace troupe::placement {

Resources Resources::Of(
    std::initializer_list<std::pair<const std::string, std::uint64_t>> amounts) {
  Resources out;
  for (const auto& [name, amount] : amounts) out.Set(name, amount);
  return out;
}

std::uint64_t Resources::Get(const std::string& name) const {
  const auto found = amounts_.find(name);
  return found == amounts_.end() ? 0 : found->second;
}

void Resources::Set(const std::string& name, std::uint64_t ten_thousandths) {
  if (ten_thousandths == 0) {
    amounts_.erase(name);
  } else {
    amounts_[name] = ten_thousandths;
  }
}

void Resources::Add(const Resources& other) {
  for (const auto& [name, amount] : other.amounts_) Set(name, Get(name) + amount);
}

void Resources::Subtract(const Resources& other) {
  for (const auto& [name, amount] : other.amounts_) {
    const std::uint64_t have = Get(name);
    Set(name, have > amount ? have - amount : 0);
  }
}

bool Resources::FitsIn(const Resources& free) const {
  return std::all_of(amounts_.begin(), amounts_.end(),
                     [&free](const auto& entry) { return entry.second <= free.Get(entry.first); });
}

std::uint64_t Resources::TimesIn(const Resources& free, std::uint64_t limit) const {
  std::uint64_t times = limit;
  for (const auto& [name, amount] : amounts_) times = std::min(times, free.Get(name) / amount);
  return times;
}

Resources Resources::Times(std::uint64_t count) const {
  Resources out;
  for (const auto& [name, amount] : amounts_) out.Set(name, amount * count);
  return out;
}

Resources Resources::Least(const Resources& a, const Resources& b) {
  Resources out;
  for (const auto& [name, amount] : a.amounts_) out.Set(name, std::min(amount, b.Get(name)));
  return out;
}

std::string Resources::Text() const {
  std::string out = "{";
  for (const auto& [name, amount] : amounts_) {
    if (out.size() > 1) out += ", ";
    out += name + ": " + AmountText(amount);
  }
  return out + "}";
}

std::string AmountText(std::uint64_t ten_thousandths) {
  std::string out = std::to_string(ten_thousandths / kUnit);
  std::string fraction = std::to_string(kUnit + ten_thousandths % kUnit).substr(1);
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  return fraction.empty() ? out : out + "." + fraction;
}

}  // namespace troupe::placement
