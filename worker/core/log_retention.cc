#include "worker/core/log_retention.h"

namespace troupe::worker {

void LogRetention::Drop(const std::string& folder) {
  const auto found = kept_.find(folder);
  if (found == kept_.end()) return;
  bytes_ -= found->second.bytes;
  by_age_.erase({found->second.ended_us, folder});
  kept_.erase(found);
}

void LogRetention::Take(const std::string& folder) {
  Drop(folder);
  ++in_use_[folder];
}

bool LogRetention::Release(const std::string& folder) {
  const auto found = in_use_.find(folder);
  if (found == in_use_.end()) return false;
  if (--found->second > 0) return false;
  in_use_.erase(found);
  return true;
}

void LogRetention::Put(const std::string& folder, std::uint64_t ended_us, std::uint64_t bytes) {
  if (in_use(folder)) return;
  Drop(folder);
  kept_[folder] = Kept{ended_us, bytes};
  by_age_.insert({ended_us, folder});
  bytes_ += bytes;
}

std::vector<std::string> LogRetention::Overdue(std::uint64_t now_us) {
  std::vector<std::string> overdue;
  while (!by_age_.empty()) {
    const auto& [ended_us, folder] = *by_age_.begin();
    const bool old = now_us > ended_us && now_us - ended_us > limits_.age_us;
    const bool full = bytes_ > limits_.bytes || kept_.size() > limits_.folders;
    if (!old && (!full || kept_.size() == 1)) break;
    overdue.push_back(folder);
    Drop(overdue.back());
  }
  return overdue;
}

}  // namespace troupe::worker
