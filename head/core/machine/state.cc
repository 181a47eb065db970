#include "head/core/machine/state.h"

#include <limits>

namespace troupe::head {
namespace {

// The owner of sessions whose token is not known any more: nobody, and no administrator.
constexpr char kUnknownUser[] = "unknown";

UserQueueKey UserKeyOf(const State& state, const Group& group) {
  return {-std::int64_t{group.spec.priority}, state.users.Named(group.spec.user), group.order};
}

}  // namespace

void State::Enqueue(const Group& group) {
  if (!group.spec.parent.IsNil()) {
    waiting_inside.insert(group.key());
    return;
  }
  waiting_groups.insert(group.key());
  waiting_by_user.insert(UserKeyOf(*this, group));
  queue.open.insert(group.key());
}

void State::Dequeue(const Group& group) {
  waiting_groups.erase(group.key());
  waiting_by_user.erase(UserKeyOf(*this, group));
  waiting_inside.erase(group.key());
  queue.open.erase(group.key());
}

bool State::EarlierWaits(const std::string& user, std::int64_t less_priority,
                         std::uint64_t order) const {
  const auto first = waiting_by_user.lower_bound({less_priority, user, 0});
  return first != waiting_by_user.end() && *first < UserQueueKey{less_priority, user, order};
}

std::vector<std::string> State::UsersWaitingAt(std::int64_t less_priority) const {
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
  std::vector<std::string> users;
  auto each = waiting_by_user.lower_bound({less_priority, "", 0});
  while (each != waiting_by_user.end() && std::get<0>(*each) == less_priority) {
    users.push_back(std::get<1>(*each));
    each = waiting_by_user.upper_bound({less_priority, users.back(), kLast});
  }
  return users;
}

std::string State::UserOfToken(const TokenId& token) const {
  if (token.IsNil()) return users.self;
  const auto known = tokens.find(token);
  return known == tokens.end() ? kUnknownUser : users.Named(known->second.user);
}

void State::ListFormerName(const Actor& actor) {
  if (actor.spec.name.empty()) return;
  if (actor.live() || !(actor.former.ended || actor.former.gone)) {
    former_names[ActorNameOf(actor)].insert(actor.spec.actor);
  } else {
    DropFormerName(actor);
  }
}

void State::DropFormerName(const Actor& actor) {
  const auto listed = former_names.find(ActorNameOf(actor));
  if (listed == former_names.end()) return;
  listed->second.erase(actor.spec.actor);
  if (listed->second.empty()) former_names.erase(listed);
}

void NoteJob(State& state, Launch& launch) {
  StatusOr<JobTerms> terms = ParseJobTerms(launch.spec);
  if (terms.ok()) launch.job = *std::move(terms);  // others were refused
  if (!launch.open()) return;
  if (!launch.job.after.empty()) state.waiting_after.insert(launch.id);
  if (!launch.job.token.IsNil()) state.job_tokens.insert(launch.job.token);
}

void DropJob(State& state, const Launch& launch) {
  state.waiting_after.erase(launch.id);
  state.job_tokens.erase(launch.job.token);
}

}  // namespace troupe::head
