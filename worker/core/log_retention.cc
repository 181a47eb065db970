#include "worker/core/log_retention.h"

#include <utility>

namespace troupe::worker {

void LogRetention::Drop(const std::string& folder) {
  const auto found = kept_.find(folder);
  if (found == kept_.end()) return;
  bytes_ -= found->second.bytes;
  files_ -= found->second.files;
  by_age_.erase({found->second.ended_us, folder});
  loose_.erase({found->second.ended_us, folder});
  packing_.erase(folder);
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

void LogRetention::Put(const std::string& folder, const EndedLogs& ended) {
  if (in_use(folder)) return;
  Drop(folder);
  kept_[folder] = ended;
  by_age_.insert({ended.ended_us, folder});
  if (ended.files > 0 && ended.bytes <= limits_.small_bytes)
    loose_.insert({ended.ended_us, folder});
  bytes_ += ended.bytes;
  files_ += ended.files;
}

std::vector<std::pair<std::string, std::uint64_t>> LogRetention::BeginPacking() {
  std::vector<std::pair<std::string, std::uint64_t>> oldest;
  if (!packing_.empty() || loose_.size() < limits_.loose_most) return oldest;
  for (const auto& [ended_us, folder] : loose_) {
    if (oldest.size() + limits_.loose_least >= loose_.size()) break;
    oldest.emplace_back(folder, ended_us);
    packing_.insert(folder);
  }
  return oldest;
}

std::vector<std::string> LogRetention::EndPacking(bool packed) {
  const std::set<std::string> folders = std::exchange(packing_, {});
  std::vector<std::string> moved;
  if (!packed) return moved;
  for (const std::string& folder : folders) {
    EndedLogs ended = kept_.at(folder);
    ended.files = 0;
    Put(folder, ended);
    moved.push_back(folder);
  }
  return moved;
}

std::vector<std::string> LogRetention::Overdue(std::uint64_t now_us) {
  std::vector<std::string> overdue;
  while (!by_age_.empty()) {
    const auto& [ended_us, folder] = *by_age_.begin();
    const bool old = now_us > ended_us && now_us - ended_us > limits_.age_us;
    const bool full = bytes_ > limits_.bytes || kept_.size() > limits_.folders ||
                      files_ > limits_.files;
    if (!old && (!full || kept_.size() == 1)) break;
    overdue.push_back(folder);
    Drop(overdue.back());
  }
  return overdue;
}

}  // namespace troupe::worker
