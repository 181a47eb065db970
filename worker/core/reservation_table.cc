#include "worker/core/reservation_table.h"

#include <algorithm>

namespace troupe::worker {
namespace {

// Tombstones kept; a session is ordered, so older ones can only guard against a peer's error.
constexpr std::size_t kTombstonesMax = 65536;

std::vector<placement::GpuPlace> PlacesOf(const std::vector<std::uint32_t>& gpu_ids,
                                          const std::vector<wire::Device>& devices) {
  std::vector<placement::GpuPlace> places;
  for (const std::uint32_t id : gpu_ids) {
    placement::GpuPlace place;
    place.id = place.rail = id;
    for (const wire::Device& device : devices) {
      if (device.index == id) place.numa_node = device.numa_node;
    }
    places.push_back(place);
  }
  return places;
}

}  // namespace

ReservationTable::ReservationTable(Amounts capacity, const std::vector<std::uint32_t>& gpu_ids,
                                   const std::vector<wire::Device>& devices)
    : capacity_(capacity), node_(std::move(capacity), PlacesOf(gpu_ids, devices)) {}

ReserveAnswer ReservationTable::Reserve(const wire::Reserve& request) {
  ReserveAnswer answer;
  const ReservationKey key{request.group, request.attempt};
  const auto held = leases_.find(key);
  if (held != leases_.end() && !held->second.draining) {
    answer.granted = true;
    answer.grants = GrantsOf(held->second);
    return answer;
  }
  const auto seen = seen_.find(request.group);
  if (seen != seen_.end() && request.attempt <= seen->second) {
    answer.reason = "attempt " + std::to_string(request.attempt) + " is over: attempt " +
                    std::to_string(seen->second) + " was seen";
    return answer;
  }
  if (const ReservationKey* older = Newest(request.group)) BeginRelease(*older, &answer.superseded);
  Remember(request.group, request.attempt);

  ResourcePool* pool = &node_;
  Lease lease;
  if (!request.parent.IsNil()) {
    const ReservationKey* parent = Newest(request.parent);
    if (parent == nullptr) {
      answer.reason = "the reservation it should be part of is not held here";
      return answer;
    }
    lease.has_parent = true;
    lease.parent = *parent;
    pool = &leases_.at(*parent).inside;
  }
  if (!TakeAll(request, *pool, &lease, &answer.reason)) return answer;
  if (lease.has_parent) {
    leases_.at(lease.parent).children.insert(key);
  } else {
    ++version_;
  }
  answer.granted = true;
  answer.grants = GrantsOf(lease);
  leases_.emplace(key, std::move(lease));
  return answer;
}

bool ReservationTable::TakeAll(const wire::Reserve& request, ResourcePool& pool, Lease* lease,
                               std::string* reason) const {
  Take sum;
  for (const wire::Bundle& bundle : request.bundles) {
    std::string short_of;
    auto take = pool.TakeOut(AmountsFromWire(bundle.resources), &short_of);
    if (!take || lease->bundles.count(bundle.index) > 0) {
      if (take) {
        pool.PutBack(*take);
        short_of = "its index appears twice";
      }
      for (const auto& [index, taken] : lease->bundles) pool.PutBack(taken);
      *reason = "bundle " + std::to_string(bundle.index) + ": " + short_of;
      return false;
    }
    Add(sum.amounts, take->amounts);
    for (const auto& [id, share] : take->gpus) sum.gpus[id] += share;
    lease->bundles.emplace(bundle.index, std::move(*take));
  }
  lease->inside = pool.Inside(sum);
  return true;
}

std::uint64_t ReservationTable::MemoryOf(const ReservationKey& key, std::int32_t bundle) const {
  const auto found = leases_.find(key);
  if (found == leases_.end()) return 0;
  std::uint64_t amount = 0;
  for (const auto& [index, take] : found->second.bundles) {
    if (bundle < 0 || index == static_cast<std::uint32_t>(bundle))
      amount += AmountOf(take.amounts, kMemory);
  }
  return amount / kWhole;
}

std::vector<wire::BundleGrant> ReservationTable::GrantsOf(const Lease& lease) {
  std::vector<wire::BundleGrant> grants;
  for (const auto& [index, take] : lease.bundles) {
    wire::BundleGrant grant;
    grant.index = index;
    grant.gpu_ids = take.GpuIds();
    grants.push_back(std::move(grant));
  }
  return grants;
}

std::vector<ReservationKey> ReservationTable::Release(const ReservationKey& key) {
  Remember(key.group, key.attempt);
  std::vector<ReservationKey> draining;
  // Lower attempts are over too: the head never returns to one.
  std::vector<ReservationKey> over;
  for (const auto& [held, lease] : leases_) {
    if (held.group == key.group && held.attempt <= key.attempt) over.push_back(held);
  }
  for (const ReservationKey& each : over) BeginRelease(each, &draining);
  return draining;
}

void ReservationTable::BeginRelease(const ReservationKey& key,
                                    std::vector<ReservationKey>* draining) {
  const ReservationKey copy = key;  // `key` may live in a node that is erased below
  const auto found = leases_.find(copy);
  if (found == leases_.end()) return;
  const std::set<ReservationKey> children = found->second.children;
  found->second.draining = true;
  for (const ReservationKey& child : children) BeginRelease(child, draining);
  FreeIfDrained(copy);
  if (Held(copy)) draining->push_back(copy);
}

void ReservationTable::FreeIfDrained(ReservationKey key) {
  for (;;) {
    const auto found = leases_.find(key);
    if (found == leases_.end()) return;
    const Lease& lease = found->second;
    if (!lease.draining || !lease.processes.empty() || !lease.children.empty()) return;
    ResourcePool& pool = PoolOf(lease);
    pool.Reclaim(kCpu, lease.lent);
    for (const auto& [index, take] : lease.bundles) pool.PutBack(take);
    if (!lease.has_parent) ++version_;
    const bool has_parent = lease.has_parent;
    const ReservationKey parent = lease.parent;
    leases_.erase(found);
    freed_.push_back(key);
    if (!has_parent) return;
    leases_.at(parent).children.erase(key);
    key = parent;
  }
}

bool ReservationTable::Attach(const ReservationKey& key, ProcessId process) {
  if (!Usable(key)) return false;
  leases_.at(key).processes.insert(process);
  lease_of_[process] = key;
  return true;
}

void ReservationTable::Detach(ProcessId process) {
  const auto found = lease_of_.find(process);
  if (found == lease_of_.end()) return;
  const ReservationKey key = found->second;
  lease_of_.erase(found);
  leases_.at(key).processes.erase(process);
  FreeIfDrained(key);
}

bool ReservationTable::Lend(const ReservationKey& key, std::uint64_t cpus) {
  const auto found = leases_.find(key);
  if (found == leases_.end()) return false;
  Lease& lease = found->second;
  std::uint64_t held = 0;
  for (const auto& [index, take] : lease.bundles) held += AmountOf(take.amounts, kCpu);
  cpus = std::min(cpus, held);
  if (cpus == lease.lent) return false;
  ResourcePool& pool = PoolOf(lease);
  if (cpus > lease.lent) {
    pool.Lend(kCpu, cpus - lease.lent);
  } else {
    pool.Reclaim(kCpu, lease.lent - cpus);
  }
  lease.lent = cpus;
  if (!lease.has_parent) ++version_;
  return true;
}

ResourcePool& ReservationTable::PoolOf(const Lease& lease) {
  return lease.has_parent ? leases_.at(lease.parent).inside : node_;
}

std::vector<ReservationKey> ReservationTable::TakeFreed() { return std::exchange(freed_, {}); }

bool ReservationTable::Held(const ReservationKey& key) const { return leases_.count(key) > 0; }

bool ReservationTable::Usable(const ReservationKey& key) const {
  const auto found = leases_.find(key);
  return found != leases_.end() && !found->second.draining;
}

std::vector<wire::Holding> ReservationTable::Holdings() const {
  std::vector<wire::Holding> holdings;
  for (const auto& [key, lease] : leases_) {
    wire::Holding holding;
    holding.group = key.group;
    holding.attempt = key.attempt;
    holding.draining = lease.draining;
    holdings.push_back(std::move(holding));
  }
  return holdings;
}

std::vector<ProcessId> ReservationTable::ProcessesOf(const ReservationKey& key) const {
  const auto found = leases_.find(key);
  if (found == leases_.end()) return {};
  return {found->second.processes.begin(), found->second.processes.end()};
}

const ReservationKey* ReservationTable::Newest(const GroupId& group) const {
  auto after = leases_.upper_bound(ReservationKey{group, UINT64_MAX});
  if (after == leases_.begin()) return nullptr;
  --after;
  return after->first.group == group && !after->second.draining ? &after->first : nullptr;
}

void ReservationTable::Remember(const GroupId& group, std::uint64_t attempt) {
  const auto [entry, fresh] = seen_.emplace(group, attempt);
  if (!fresh) {
    entry->second = std::max(entry->second, attempt);
    return;
  }
  seen_order_.push_back(group);
  if (seen_order_.size() <= kTombstonesMax) return;
  const GroupId oldest = seen_order_.front();
  seen_order_.pop_front();
  if (Newest(oldest) == nullptr) {
    seen_.erase(oldest);
  } else {
    seen_order_.push_back(oldest);
  }
}

bool ReservationTable::Conserves() const {
  Amounts sum = node_.Free();
  Amounts twice = node_.owed();  // amounts in use twice, or held by one and promised to another
  for (const auto& [key, lease] : leases_) {
    if (lease.has_parent) continue;
    Add(twice, {{kCpu, lease.lent}});
    for (const auto& [index, take] : lease.bundles) {
      Add(sum, take.amounts);
      for (const auto& [id, share] : take.gpus) sum[kGpu] += share;
    }
  }
  return Subtract(sum, twice) && sum == capacity_;
}

}  // namespace troupe::worker
