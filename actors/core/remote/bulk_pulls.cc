#include "actors/core/remote/bulk_pulls.h"

#include <algorithm>

namespace troupe::actors {

BulkPulls::PullId BulkPulls::Begin(const store::ObjectId& id) {
  pulls_.emplace(++last_, Pull{id, std::nullopt, 0, 0});
  return last_;
}

std::vector<BulkPulls::PullId> BulkPulls::all() const {
  std::vector<PullId> ids;
  for (const auto& [id, pull] : pulls_) ids.push_back(id);
  return ids;
}

void BulkPulls::Unlinked() {
  asked_.clear();
  coming_ = 0;
  into_ = 0;
  for (auto& [id, pull] : pulls_) pull.asked = pull.came;
}

/// The first part brings the size; then the others are asked for.
bool BulkPulls::Wants(const Pull& pull) const {
  return pull.total ? pull.asked < *pull.total : pull.asked == 0;
}

std::optional<BulkFrame> BulkPulls::NextAsk() {
  if (asked_.size() >= kPartsMax || pulls_.empty()) return std::nullopt;
  auto at = pulls_.upper_bound(turn_);
  for (std::size_t looked = 0; looked < pulls_.size(); ++looked, ++at) {
    if (at == pulls_.end()) at = pulls_.begin();
    Pull& pull = at->second;
    if (!Wants(pull)) continue;
    turn_ = at->first;
    BulkFrame ask;
    ask.word = BulkWord::kRead;
    ask.id = pull.id;
    ask.offset = pull.asked;
    ask.bytes = pull.total ? std::min(kBulkPartBytes, *pull.total - pull.asked) : kBulkPartBytes;
    asked_.push_back({at->first, ask.id, ask.offset, ask.bytes});
    pull.asked += ask.bytes;
    return ask;
  }
  return std::nullopt;
}

StatusOr<BulkPulls::Part> BulkPulls::Begins(const BulkFrame& part) {
  if (asked_.empty() || coming_ != 0)
    return MakeError(ErrorCode::kInvalid, "a part that was not asked for");
  const Asked asked = asked_.front();
  const bool whole = part.bytes == asked.bytes || part.offset + part.bytes == part.total;
  if (!(part.id == asked.id) || part.offset != asked.offset || part.bytes > asked.bytes || !whole) {
    return MakeError(ErrorCode::kInvalid, "another part than was asked for");
  }
  const auto found = pulls_.find(asked.pull);
  Part comes{0, false, part.offset, part.bytes, part.total};
  if (found != pulls_.end()) {
    Pull& pull = found->second;
    if (pull.total && *pull.total != part.total) {
      return MakeError(ErrorCode::kInvalid, "a part of a value that has another size now");
    }
    comes.pull = asked.pull;
    comes.first = !pull.total.has_value();
    pull.total = part.total;
    pull.asked = std::min(pull.asked, part.total);
  }
  asked_.pop_front();
  into_ = comes.pull;
  coming_ = part.bytes;
  return comes;
}

bool BulkPulls::Came(std::uint64_t bytes) {
  coming_ -= bytes;
  const auto found = pulls_.find(into_);
  if (found == pulls_.end()) return false;
  found->second.came += bytes;
  if (found->second.came != found->second.total) return false;
  pulls_.erase(found);
  return true;
}

StatusOr<BulkPulls::PullId> BulkPulls::Gone(const BulkFrame& gone) {
  if (asked_.empty() || coming_ != 0 || !(asked_.front().id == gone.id) ||
      asked_.front().offset != gone.offset) {
    return MakeError(ErrorCode::kInvalid, "word of a part that was not asked for");
  }
  const PullId pull = asked_.front().pull;
  asked_.pop_front();
  return pulls_.erase(pull) != 0 ? pull : PullId{0};
}

}  // namespace troupe::actors
