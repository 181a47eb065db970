#include "actors/objects/segment_map.h"

#include <iterator>

namespace troupe::actors {

std::shared_ptr<ObjectMapping> SegmentMap::Find(const SegmentKey& key) const {
  const auto kept = mapped_.find(key);
  if (kept != mapped_.end()) return kept->second;
  const auto known = known_.find(key);
  return known != known_.end() ? known->second.lock() : nullptr;
}

Status SegmentMap::Map(const SegmentKey& key, GuardedFd descriptor, std::uint64_t bytes) {
  wanted_.erase(key);
  TROUPE_ASSIGN(store::Reading reading, store::Reading::ReadOnly(descriptor.get(), bytes));
  auto mapping = std::make_shared<ObjectMapping>(
      ObjectMapping{std::move(descriptor), std::move(reading), bytes});
  missing_.erase(key);
  known_[key] = mapping;
  mapped_[key] = std::move(mapping);
  return absl::OkStatus();
}

void SegmentMap::Pin(const store::ObjectId& id, std::shared_ptr<ObjectMapping> mapping) {
  pinned_[id] = std::move(mapping);
}

bool SegmentMap::WantedFrom(const SegmentKey& key, const ProcessId& from) const {
  const auto wanted = wanted_.find(key);
  return wanted != wanted_.end() && wanted->second == from;
}

std::vector<SegmentKey> SegmentMap::AllWantedFrom(const ProcessId& from) const {
  std::vector<SegmentKey> keys;
  for (const auto& [key, asked] : wanted_) {
    if (asked == from) keys.push_back(key);
  }
  return keys;
}

void SegmentMap::Miss(const SegmentKey& key, std::string why) {
  wanted_.erase(key);
  missing_[key] = std::move(why);
}

const std::string* SegmentMap::WhyMissing(const SegmentKey& key) const {
  const auto missing = missing_.find(key);
  return missing != missing_.end() ? &missing->second : nullptr;
}

void SegmentMap::Retire(const SegmentKey& key) {
  mapped_.erase(key);
  const auto known = known_.find(key);
  if (known != known_.end() && known->second.expired()) known_.erase(known);
}

std::vector<SegmentKey> SegmentMap::ForgetMaker(const ProcessId& maker) {
  std::vector<SegmentKey> keys;
  const auto kept = mapped_.lower_bound({maker, 0});
  for (auto at = kept; at != mapped_.end() && at->first.first == maker; ++at) {
    keys.push_back(at->first);
  }
  for (const SegmentKey& key : keys) Retire(key);
  const auto known = known_.lower_bound({maker, 0});
  for (auto at = known; at != known_.end() && at->first.first == maker;) {
    at = at->second.expired() ? known_.erase(at) : std::next(at);
  }
  return keys;
}

std::size_t SegmentMap::foreign() const {
  std::size_t count = 0;
  for (const auto& [key, mapping] : known_) {
    count += key.first == self_ || mapping.expired() ? 0 : 1;
  }
  return count;
}

}  // namespace troupe::actors
