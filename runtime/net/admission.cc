#include "runtime/net/admission.h"

#include <map>
#include <mutex>

namespace troupe::net {

struct Admission::Counts {
  std::mutex mutex;
  std::size_t per_host_max;
  std::size_t total_max;
  std::size_t total = 0;
  std::map<std::string, std::size_t> by_host;
};

Admission::Admission(std::size_t per_host_max, std::size_t total_max)
    : counts_(std::make_shared<Counts>()) {
  counts_->per_host_max = per_host_max;
  counts_->total_max = total_max;
}

std::shared_ptr<void> Admission::Admit(const std::string& host) {
  const std::lock_guard lock(counts_->mutex);
  if (counts_->total >= counts_->total_max) return nullptr;
  if (!host.empty()) {
    std::size_t& of_host = counts_->by_host[host];
    if (of_host >= counts_->per_host_max) return nullptr;
    ++of_host;
  }
  ++counts_->total;
  auto give_back = [counts = counts_, host](void*) {
    const std::lock_guard inner(counts->mutex);
    --counts->total;
    const auto it = counts->by_host.find(host);
    if (it != counts->by_host.end() && --it->second == 0) counts->by_host.erase(it);
  };
  return std::shared_ptr<void>(counts_.get(), std::move(give_back));
}

std::size_t Admission::open() const {
  const std::lock_guard lock(counts_->mutex);
  return counts_->total;
}

}  // namespace troupe::net
