#include "worker/core/resource_pool.h"

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/base/check.h"

namespace troupe::worker {

std::vector<std::uint32_t> Take::GpuIds() const {
  std::vector<std::uint32_t> ids;
  for (const auto& [id, share] : gpus) ids.push_back(id);
  return ids;
}

ResourcePool::ResourcePool(Amounts amounts, std::vector<placement::GpuPlace> gpus)
    : free_(std::move(amounts)), places_(std::move(gpus)) {
  TROUPE_CHECK(AmountOf(free_, kGpu) == places_.size() * kWhole, AmountText(AmountOf(free_, kGpu)));
  free_.erase(kGpu);
  for (const placement::GpuPlace& gpu : places_) gpus_[gpu.id] = kWhole;
}

ResourcePool ResourcePool::Inside(const Take& take) const {
  ResourcePool inside;
  inside.free_ = take.amounts;
  inside.gpus_ = take.gpus;
  inside.places_ = places_;
  return inside;
}

std::optional<Take> ResourcePool::TakeOut(const Amounts& wanted, std::string* reason) {
  Take take;
  take.amounts = wanted;
  take.amounts.erase(kGpu);
  for (const auto& [name, amount] : take.amounts) {
    const std::uint64_t have = AmountOf(free_, name);
    if (have < amount) {
      *reason = "needs " + AmountText(amount) + " " + name + ", free: " + AmountText(have);
      return std::nullopt;
    }
  }
  auto gpus = ChooseGpus(AmountOf(wanted, kGpu), reason);
  if (!gpus) return std::nullopt;
  take.gpus = std::move(*gpus);
  TROUPE_CHECK(Subtract(free_, take.amounts), *reason);
  for (const auto& [id, share] : take.gpus) gpus_[id] -= share;
  return take;
}

void ResourcePool::PutBack(const Take& take) {
  for (const auto& [name, amount] : take.amounts) Lend(name, amount);
  for (const auto& [id, share] : take.gpus) gpus_[id] += share;
}

void ResourcePool::Lend(const std::string& name, std::uint64_t amount) {
  const Amounts paid{{name, std::min(amount, AmountOf(owed_, name))}};
  TROUPE_CHECK(Subtract(owed_, paid), name);
  Add(free_, {{name, amount - paid.at(name)}});
}

void ResourcePool::Reclaim(const std::string& name, std::uint64_t amount) {
  const Amounts there{{name, std::min(amount, AmountOf(free_, name))}};
  TROUPE_CHECK(Subtract(free_, there), name);
  Add(owed_, {{name, amount - there.at(name)}});
}

Amounts ResourcePool::Free() const {
  Amounts all = free_;
  std::uint64_t gpu = 0;
  for (const auto& [id, share] : gpus_) gpu += share;
  if (gpu > 0) all[kGpu] = gpu;
  return all;
}

std::optional<std::map<std::uint32_t, std::uint64_t>> ResourcePool::ChooseGpus(
    std::uint64_t wanted, std::string* reason) const {
  std::map<std::uint32_t, std::uint64_t> chosen;
  if (wanted == 0) return chosen;
  if (wanted > kWhole && wanted % kWhole != 0) {
    *reason = AmountText(wanted) + " GPU: more than one must be a whole number";
    return std::nullopt;
  }
  if (wanted < kWhole) {  // the fullest device that still has room, so that whole ones stay whole
    std::uint64_t best_share = kWhole + 1;
    std::uint32_t best = 0;
    for (const auto& [id, share] : gpus_) {
      if (share >= wanted && share < best_share) {
        best = id;
        best_share = share;
      }
    }
    if (best_share <= kWhole) chosen[best] = wanted;
  } else {
    std::set<std::uint32_t> whole;
    for (const auto& [id, share] : gpus_) {
      if (share == kWhole) whole.insert(id);
    }
    if (const auto ids = placement::ChooseGpus(places_, whole, wanted / kWhole)) {
      for (const std::uint32_t id : *ids) chosen[id] = kWhole;
    }
  }
  if (chosen.empty()) {
    *reason = "needs " + AmountText(wanted) + " GPU, free: " + AmountText(AmountOf(Free(), kGpu));
    return std::nullopt;
  }
  return chosen;
}

}  // namespace troupe::worker
