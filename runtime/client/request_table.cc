#include "runtime/client/request_table.h"

#include <utility>

#include "runtime/wire/repeat.h"

namespace troupe::client {

// ---- who asks ---------------------------------------------------------------------------------

RequestTable::Id RequestTable::AddEntry(wire::Message message, Entry entry) {
  const Id id = next_id_++;
  message.id = id;
  entry.message = std::make_shared<const wire::Message>(std::move(message));
  unsent_.push_back({id, entry.message});
  entries_.emplace(id, std::move(entry));
  return id;
}

RequestTable::Id RequestTable::Add(wire::Message message, std::optional<Duration> limit, Time now) {
  Entry entry;
  entry.waited_for = true;
  entry.limit = limit;
  entry.begun = now;
  entry.away_before = Away(now);
  return AddEntry(std::move(message), std::move(entry));
}

bool RequestTable::AddUnwaited(wire::Message message) {
  if (unwaited_ == kAskedMax) return false;
  ++unwaited_;
  AddEntry(std::move(message), Entry());
  return true;
}

bool RequestTable::Answered(Id id) const { return entries_.at(id).answer.has_value(); }

std::optional<RequestTable::Time> RequestTable::Deadline(Id id, Time now) const {
  const Entry& entry = entries_.at(id);
  if (!entry.limit || away_since_) return std::nullopt;
  return entry.begun + *entry.limit + (Away(now) - entry.away_before);
}

std::optional<StatusOr<wire::Message>> RequestTable::Forget(Id id) {
  const auto found = entries_.find(id);
  std::optional<StatusOr<wire::Message>> answer = std::move(found->second.answer);
  entries_.erase(found);
  return answer;
}

// ---- the connection ---------------------------------------------------------------------------

RequestTable::Time::duration RequestTable::Away(Time now) const {
  return away_ + (away_since_ ? now - *away_since_ : Time::duration());
}

void RequestTable::Connected(Time now) {
  away_ = Away(now);
  away_since_.reset();
  connected_ = true;
  unsent_.clear();
  for (const auto& [id, entry] : entries_) {
    if (!entry.answer) unsent_.push_back({id, entry.message});
  }
}

std::vector<RequestTable::Refusal> RequestTable::Lost(const std::string& peer, Time now,
                                                      std::vector<Id>& answered) {
  connected_ = false;
  away_since_ = now;
  std::vector<Refusal> refusals;
  std::vector<Id> unknown;
  for (const auto& [id, entry] : entries_) {
    if (entry.sent && !entry.answer && !wire::Repeatable(entry.message->body))
      unknown.push_back(id);
  }
  for (const Id id : unknown) {
    const std::string what(wire::NameOf(entries_.at(id).message->body));
    const Status why = MakeError(ErrorCode::kUnknownOutcome,
                                 "the connection to " + peer + " was lost before " + what +
                                     " was answered: whether it took effect is not known");
    std::optional<Refusal> refusal = Answer(id, why);
    if (refusal) {
      refusals.push_back(*std::move(refusal));
    } else {
      answered.push_back(id);
    }
  }
  return refusals;
}

std::vector<RequestTable::Outgoing> RequestTable::TakeUnsent() {
  std::vector<Outgoing> now = std::exchange(unsent_, {});
  if (!connected_) return {};
  for (const Outgoing& each : now) {
    const auto found = entries_.find(each.id);
    if (found != entries_.end()) found->second.sent = true;
  }
  return now;
}

std::optional<RequestTable::Refusal> RequestTable::Answer(Id id, StatusOr<wire::Message> answer) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return std::nullopt;
  Entry& entry = found->second;
  if (entry.waited_for) {
    if (!entry.answer) entry.answer.emplace(std::move(answer));
    return std::nullopt;
  }
  std::shared_ptr<const wire::Message> asked = std::move(entry.message);
  entries_.erase(found);
  --unwaited_;
  if (answer.ok()) return std::nullopt;
  return Refusal{answer.status(), std::move(asked)};
}

void RequestTable::End(const Status& why) {
  if (!ended_.ok()) return;
  ended_ = why;
  connected_ = false;
  for (auto& [id, entry] : entries_) {
    if (!entry.answer) entry.answer.emplace(ended_);
  }
}

}  // namespace troupe::client
