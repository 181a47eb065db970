#include "head/core/placed/people/fair_queue.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "head/core/placed/people/usage.h"

namespace troupe::head {
namespace {

constexpr double kAheadS = 3600;
constexpr std::size_t kUsersNamed = 8;

// FS-2: the first of a user's requests has waited for a day in which no first one of theirs was
// granted.
bool IsPassedOver(const Turn& turn, const User& user, const Group& first) {
  if (first.waits_since == Instant{}) return false;
  return turn.now - std::max(first.waits_since, user.first_granted_at) >=
         turn.options.passed_over_max;
}

}  // namespace

std::optional<GroupId> FairQueue::Next() {
  NoteGrant();
  picked_ = order_.Pick();
  if (!picked_) {
    BeginPriority();
    picked_ = order_.Pick();
  }
  if (!picked_) return std::nullopt;
  return lines_[picked_->line].groups[picked_->item];
}

void FairQueue::BeginPriority() {
  lines_.clear();
  order_ = placement::FairOrder();
  if (next_key_ == keys_.size()) return;
  const std::int64_t priority = std::get<0>(keys_[next_key_]);
  std::map<std::string, std::size_t> line_of;
  for (; next_key_ < keys_.size() && std::get<0>(keys_[next_key_]) == priority; ++next_key_) {
    const auto& [less_priority, order, id] = keys_[next_key_];
    const std::string& user = turn_.state.users.Named(turn_.FindGroup(id)->spec.user);
    const auto [line, fresh] = line_of.try_emplace(user, lines_.size());
    if (fresh) lines_.push_back({user, {}, {}});
    lines_[line->second].groups.push_back(id);
    lines_[line->second].orders.push_back(order);
  }
  AddLines();
}

void FairQueue::AddLines() {
  const bool alone = lines_.size() == 1;
  for (Line& line : lines_) {
    const User& user = turn_.state.users.by_name[line.user];
    const Group& first = *turn_.FindGroup(line.groups.front());
    order_.AddLine(alone ? 0 : ShareOf(turn_, line.user, kAheadS),
                   !alone && IsPassedOver(turn_, user, first), std::move(line.orders));
  }
}

void FairQueue::NoteGrant() {
  if (!picked_) return;
  const Line& line = lines_[picked_->line];
  const Group* group = turn_.FindGroup(line.groups[picked_->item]);
  if (group != nullptr && group->waiting()) return;
  if (group != nullptr &&
      !turn_.state.EarlierWaits(line.user, std::get<0>(group->key()), group->order)) {
    turn_.state.users.by_name[line.user].first_granted_at = turn_.now;
  }
  if (lines_.size() > 1) order_.SetShare(picked_->line, ShareOf(turn_, line.user, kAheadS));
}

std::string SharesText(Turn& turn, const Group& group) {
  const std::string& own = turn.state.users.Named(group.spec.user);
  std::string others;
  std::size_t named = 0;
  for (const std::string& user : turn.state.UsersWaitingAt(std::get<0>(group.key()))) {
    if (user == own || named == kUsersNamed) continue;
    char text[32];
    std::snprintf(text, sizeof text, " %.1f %%", 100 * ShareOf(turn, user));
    others += (named++ == 0 ? "" : ", ") + user + text;
  }
  if (others.empty()) return {};
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * ShareOf(turn, own));
  return "who has held less of the cluster in the last 24 hours goes first: " + own + " has held " +
         text + "; also waiting: " + others;
}

}  // namespace troupe::head
