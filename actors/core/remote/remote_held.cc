#include "actors/core/remote/remote_held.h"

#include <algorithm>
#include <utility>

namespace troupe::actors {
// ---- what this process does -------------------------------------------------------------------

void RemoteHeld::Move(Entry& entry, State state) {
  asking_ += static_cast<std::size_t>(state == State::kAsking) -
             static_cast<std::size_t>(entry.state == State::kAsking);
  leaving_ += static_cast<std::size_t>(state == State::kLeaving) -
              static_cast<std::size_t>(entry.state == State::kLeaving);
  entry.state = state;
}

/// Puts the entry's new state into the news for the other end.
void RemoteHeld::Say(Entries::iterator at) {
  Entry& entry = at->second;
  entry.number = ++numbers_;
  entry.told = entry.confirmed = entry.wanted = entry.want_told = false;
  unsaid_.insert(at->first);
}

void RemoteHeld::Erase(Entries::iterator at) {
  asking_ -= static_cast<std::size_t>(at->second.state == State::kAsking);
  leaving_ -= static_cast<std::size_t>(at->second.state == State::kLeaving);
  unsaid_.erase(at->first);
  entries_.erase(at);
}

bool RemoteHeld::Take(const store::ObjectId& name, Local local) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    if (entries_.size() >= kMost) return false;
    const auto made = entries_.emplace(name, Entry()).first;
    ++asking_;
    made->second.local = local;
    Say(made);
    return true;
  }
  Entry& entry = found->second;
  entry.local = local;
  entry.wanted = entry.want_told = false;
  if (entry.state != State::kLeaving) return true;
  entry.lent_on = false;
  Move(entry, State::kAsking);
  Say(found);
  return true;
}

void RemoteHeld::LetGo(const store::ObjectId& name, Local local) {
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.local != local ||
      found->second.state == State::kLeaving)
    return;
  if (!found->second.said) return Erase(found);
  Move(found->second, State::kLeaving);
  Say(found);
}

void RemoteHeld::Want(const store::ObjectId& name, Local local) {
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.local != local ||
      found->second.state == State::kLeaving)
    return;
  found->second.wanted = true;
  unsaid_.insert(name);
}

void RemoteHeld::LentOn(const store::ObjectId& name, Local local, bool lent) {
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.local != local ||
      found->second.state == State::kLeaving)
    return;
  if (std::exchange(found->second.lent_on, lent) != lent) Say(found);
}

bool RemoteHeld::Knows(const store::ObjectId& name) const {
  const auto found = entries_.find(name);
  return found != entries_.end() && found->second.state == State::kHeld;
}

std::vector<RemoteHeld::Lost> RemoteHeld::GiveUpAsked() {
  std::vector<Lost> lost;
  for (auto& [name, entry] : entries_) {
    if (entry.state == State::kAsking) lost.push_back({name, entry.local});
  }
  for (const Lost& each : lost) LetGo(each.name, each.local);
  return lost;
}

std::vector<RemoteHeld::Lost> RemoteHeld::LoseAll() {
  std::vector<Lost> lost;
  for (auto& [name, entry] : entries_) {
    if (entry.state != State::kLeaving) lost.push_back({name, entry.local});
  }
  entries_.clear();
  unsaid_.clear();
  inside_.clear();
  asking_ = leaving_ = 0;
  return lost;
}

// ---- what the other end says ------------------------------------------------------------------

/// The reference whose last word this answers.
RemoteHeld::Entry* RemoteHeld::AnswerTo(const BulkFrame& frame, Entries::iterator* at) {
  if (under_way_ != 0) --under_way_;
  *at = entries_.find(frame.id);
  return *at != entries_.end() && (*at)->second.number == frame.offset && (*at)->second.told
             ? &(*at)->second
             : nullptr;
}

std::optional<RemoteHeld::Local> RemoteHeld::Held(const BulkFrame& frame) {
  Entries::iterator at;
  Entry* const entry = AnswerTo(frame, &at);
  if (entry == nullptr || entry->state == State::kLeaving) return std::nullopt;
  Move(*entry, State::kHeld);
  entry->confirmed = true;
  if (entry->wanted) unsaid_.insert(frame.id);
  return entry->local;
}

std::optional<RemoteHeld::Local> RemoteHeld::Refused(const BulkFrame& frame) {
  Entries::iterator at;
  Entry* const entry = AnswerTo(frame, &at);
  if (entry == nullptr || entry->state == State::kLeaving) return std::nullopt;
  const Local local = entry->local;
  Erase(at);
  return local;
}

void RemoteHeld::Dropped(const BulkFrame& frame) {
  Entries::iterator at;
  Entry* const entry = AnswerTo(frame, &at);
  if (entry != nullptr && entry->state == State::kLeaving) Erase(at);
}

Status RemoteHeld::Inside(const BulkFrame& frame) {
  if (inside_.size() >= kInsideMax)
    return MakeError(ErrorCode::kInvalid, "more than 65,536 references of one value");
  if (frame.id.owner.IsNil()) return MakeError(ErrorCode::kInvalid, "a reference of nobody");
  inside_.push_back(frame.id);
  return absl::OkStatus();
}

StatusOr<std::optional<RemoteHeld::Value>> RemoteHeld::Ready(const BulkFrame& frame) {
  std::vector<store::ObjectId> inside = std::exchange(inside_, {});
  if (frame.bytes != inside.size())
    return MakeError(ErrorCode::kInvalid, "a value without the references inside it");
  const auto found = entries_.find(frame.id);
  // Let go of meanwhile, or it was of who had it before.
  if (found == entries_.end() || !found->second.want_told) return std::optional<Value>();
  Entry& entry = found->second;
  entry.wanted = entry.want_told = false;
  Value value;
  value.local = entry.local;
  value.name = frame.id;
  value.flags = static_cast<std::uint16_t>(frame.offset);
  value.bytes = frame.total;
  value.inside = std::move(inside);
  return std::optional<Value>(std::move(value));
}

// ---- the link ---------------------------------------------------------------------------------

void RemoteHeld::Unlinked() {
  under_way_ = 0;
  inside_.clear();
  for (auto& [name, entry] : entries_) {
    entry.told = entry.confirmed = false;
    entry.want_told = false;
    unsaid_.insert(unsaid_.end(), name);
  }
}

void RemoteHeld::AppendWords(std::string& out) {
  for (auto next = unsaid_.begin(); next != unsaid_.end();) {
    const auto at = entries_.find(*next);
    Entry& entry = at->second;
    if (!entry.told) {
      if (under_way_ >= kAskedMax) return;
      const BulkWord word = entry.state == State::kLeaving ? BulkWord::kLetGo : BulkWord::kHold;
      BulkFrame frame = WordOf(word, at->first, entry.number);
      frame.bytes = word == BulkWord::kHold && entry.lent_on ? 1 : 0;
      AppendBulkFrame(out, frame);
      ++under_way_;
      entry.said = entry.told = true;
    }
    if (entry.wanted && entry.confirmed && !entry.want_told) {
      AppendBulkFrame(out, WordOf(BulkWord::kWant, at->first, 0));
      entry.want_told = true;
    }
    next = unsaid_.erase(next);
  }
}

}  // namespace troupe::actors
