#include "head/core/launched/gang/returned.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "head/core/launched/ending.h"
#include "head/core/launched/gang/hang.h"
#include "head/core/launched/rank_ends.h"

namespace troupe::head {
namespace {

// Ranks that return within this time are told of together.
constexpr Duration kTellAfter = std::chrono::seconds(1);
// For the others that wait in the same operation to say so.
constexpr Duration kGatherFor = std::chrono::seconds(1);
// For a process to say what it has begun; from then until its worker's word is given up.
constexpr std::uint32_t kAnswerMs = 4000;
constexpr Duration kAskMargin = std::chrono::seconds(4);
constexpr std::size_t kAskedMax = 256;
constexpr std::size_t kRanksShownMax = 8;
constexpr std::size_t kTextMax = 64;
constexpr std::size_t kKeyMax = 256;
constexpr std::size_t kWhereMax = 4096;

bool IsRunning(const Rank& rank) { return rank.done.outcome == wire::Outcome::kNone; }
bool Returned(const Rank& rank) { return rank.done.outcome == wire::Outcome::kSucceeded; }

std::uint64_t FormedEpoch(const Launch& launch) {
  return std::max<std::uint64_t>(launch.regroup.formed.group_epoch, 1);
}

// A2, A5: whether ranks may wait for each other in a group now.
bool InGroup(const Launch& launch) {
  return launch.on_nodes() && launch.phase == wire::LaunchState::kRunning &&
         launch.spec.mode == wire::LaunchMode::kDistributed &&
         launch.ending.step == Ending::Step::kNo && launch.regroup.epoch <= FormedEpoch(launch);
}

// Returns the rank's number in the current group; the launch's number of ranks if it is not in it.
std::uint32_t GroupRank(const Launch& launch, std::uint32_t rank) {
  if (launch.regroup.formed.group_epoch == 0) return rank;
  const std::vector<std::uint32_t>& members = launch.regroup.formed.members;
  const auto place = std::lower_bound(members.begin(), members.end(), rank);
  if (place == members.end() || *place != rank)
    return static_cast<std::uint32_t>(launch.ranks.size());
  return static_cast<std::uint32_t>(place - members.begin());
}

template <class Ranks>
wire::PeersReturned WordOn(const Launch& launch, const Ranks& ranks) {
  wire::PeersReturned word;
  word.launch = launch.id;
  word.epoch = launch.epoch;
  word.group_epoch = FormedEpoch(launch);
  for (const std::uint32_t rank : ranks) {
    const std::uint32_t number = GroupRank(launch, rank);
    if (number < launch.ranks.size()) word.ranks.push_back(number);
  }
  return word;
}

template <class Ranks>
std::string Named(const Ranks& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  std::size_t named = 0;
  for (const std::uint32_t rank : ranks) {
    if (named == kRanksShownMax) break;
    text += (named++ == 0 ? "" : ", ") + std::to_string(rank);
  }
  if (ranks.size() > kRanksShownMax)
    text += " and " + std::to_string(ranks.size() - kRanksShownMax) + " more";
  return text;
}

std::string Counted(std::uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// Returns the cause: the last act of the first of `missing`, and the operation that the others wait
// for.
std::string CauseOf(const Launch& launch, const std::vector<std::uint32_t>& missing) {
  const ReturnedInquiry& inquiry = launch.returned;
  const wire::RankAwaits& word = inquiry.word;
  const bool one = inquiry.waiting.size() == 1;
  const std::uint64_t begun = inquiry.asked.at(missing.front())->begun;
  const std::string waiting = Named(inquiry.waiting);
  const std::string group = " of process group " + word.torch_group;
  const std::string number = std::to_string(word.operation);
  std::string text = "returned";
  switch (word.kind) {
    case wire::GroupWait::kCollective:
      text += " after " + Counted(begun, "operation") + "; " + waiting +
              (one ? " waits" : " wait") + " for it in operation " + number +
              (word.op.empty() ? "" : " (" + word.op + ")") + group;
      break;
    case wire::GroupWait::kReceive:
    case wire::GroupWait::kReceiveAny:
      text += " after " + Counted(begun, "send") + " to " + waiting +
              ", which waits for it in receive " + number + group;
      break;
    case wire::GroupWait::kSend:
      text += " after " + Counted(begun, "receive") + " from " + waiting +
              ", which waits for it in send " + number + group;
      break;
    case wire::GroupWait::kMaking:
      text += " without coming to process group " + word.torch_group + ", which " + waiting +
              (one ? " makes" : " make") + (word.op.empty() ? "" : " (" + word.op + ")");
      break;
  }
  const std::vector<std::uint32_t> others(missing.begin() + 1, missing.end());
  if (!others.empty())
    text += "; " + Named(others) + " returned before it, too";
  return text;
}

// A3, A4
std::vector<std::uint32_t> Missing(const ReturnedInquiry& inquiry) {
  std::vector<std::uint32_t> missing;
  std::uint64_t together = 0;
  bool all = true;
  for (const auto& [rank, said] : inquiry.asked) {
    const bool known = said && !said->silent && !said->waits;
    all = all && known;
    if (!known) continue;
    together += said->begun;
    const bool any = inquiry.word.kind == wire::GroupWait::kReceiveAny;
    if (any || said->begun < inquiry.word.operation) missing.push_back(rank);
  }
  if (inquiry.word.kind == wire::GroupWait::kReceiveAny &&
      (!all || together >= inquiry.word.operation))
    missing.clear();
  return missing;
}

bool AllSaid(const ReturnedInquiry& inquiry) {
  return std::all_of(inquiry.asked.begin(), inquiry.asked.end(),
                     [](const auto& each) { return each.second.has_value(); });
}

void Forget(Launch& launch) {
  const std::set<std::uint32_t> untold = std::move(launch.returned.untold);
  launch.returned = ReturnedInquiry();
  launch.returned.untold = untold;
}

// The question is answered as far as it will be: the launch's failure, or nothing.
void Decide(Turn& turn, Launch& launch) {
  ReturnedInquiry& inquiry = launch.returned;
  for (auto rank = inquiry.waiting.begin(); rank != inquiry.waiting.end();)
    rank = IsRunning(launch.ranks[*rank]) ? std::next(rank) : inquiry.waiting.erase(rank);
  const bool stands = InGroup(launch) && inquiry.word.group_epoch == FormedEpoch(launch) &&
                      !inquiry.waiting.empty();
  const std::vector<std::uint32_t> missing =
      stands ? Missing(inquiry) : std::vector<std::uint32_t>();
  if (missing.empty()) return Forget(launch);
  if (turn.now < inquiry.gathered)
    return turn.Arm(inquiry.gathered, TimerKind::kAwaited, launch.id);
  wire::Failure failure = FailureOn(turn, launch, static_cast<std::int32_t>(missing.front()),
                                    wire::FailureKind::kReturnedEarly, CauseOf(launch, missing));
  if (!inquiry.word.where.empty()) {
    failure.traceback = "rank " + std::to_string(inquiry.word.rank) + " waits here:\n" +
                        inquiry.word.where;
  }
  Forget(launch);
  FailEpoch(turn, launch, std::move(failure));
}

bool Fits(const wire::RankAwaits& message) {
  return message.torch_group.size() <= kTextMax && message.op.size() <= kTextMax &&
         message.key.size() <= kKeyMax && !message.key.empty() && message.operation > 0 &&
         message.awaited.size() <= kAskedMax;
}

}  // namespace

void NoteReturned(Turn& turn, Launch& launch, std::uint32_t rank) {
  if (launch.spec.mode != wire::LaunchMode::kDistributed || !launch.on_nodes()) return;
  if (launch.returned.untold.empty())
    turn.Arm(turn.now + kTellAfter, TimerKind::kTellReturned, launch.id);
  launch.returned.untold.insert(rank);
}

void OnTellReturnedTimer(Turn& turn, const LaunchId& id) {
  Launch* launch = turn.FindLaunch(id);
  if (launch == nullptr || launch->returned.untold.empty()) return;
  const std::set<std::uint32_t> untold = std::move(launch->returned.untold);
  launch->returned.untold.clear();
  if (!InGroup(*launch)) return;
  const wire::PeersReturned word = WordOn(*launch, untold);
  if (word.ranks.empty()) return;
  std::set<NodeId> nodes;
  for (const Rank& rank : launch->ranks) {
    if (IsRunning(rank)) nodes.insert(rank.node);
  }
  for (const NodeId& node : nodes) turn.ToNode(node, word);
}

void ResumeReturnedOn(Turn& turn, const Launch& launch, const NodeId& node) {
  if (!InGroup(launch)) return;
  std::vector<std::uint32_t> returned;
  for (std::uint32_t r = 0; r < launch.ranks.size(); ++r) {
    if (Returned(launch.ranks[r])) returned.push_back(r);
  }
  wire::PeersReturned word = WordOn(launch, returned);
  if (!word.ranks.empty()) turn.ToNode(node, std::move(word));
}

void OnRankAwaits(Turn& turn, Node& node, const wire::RankAwaits& message) {
  Launch* launch = turn.FindLaunch(message.launch);
  if (launch == nullptr || launch->epoch != message.epoch || !InGroup(*launch)) return;
  if (message.rank >= launch->ranks.size() || !Fits(message)) return;
  const Rank& waits = launch->ranks[message.rank];
  if (waits.node != node.id || !IsRunning(waits)) return;
  if (message.group_epoch != FormedEpoch(*launch)) return;
  ReturnedInquiry& inquiry = launch->returned;
  if (inquiry.question != 0) {  // A5
    if (inquiry.word.key == message.key && inquiry.word.operation == message.operation)
      inquiry.waiting.insert(message.rank);
    return;
  }
  for (const std::uint32_t each : message.awaited) {
    const std::uint32_t rank = LaunchRank(*launch, each);
    if (rank < launch->ranks.size() && Returned(launch->ranks[rank])) inquiry.asked[rank];
  }
  if (inquiry.asked.empty()) return;
  inquiry.word = message;
  inquiry.word.where.resize(std::min(inquiry.word.where.size(), kWhereMax));
  inquiry.waiting.insert(message.rank);
  inquiry.question = ++turn.state.questions;
  inquiry.gathered = turn.now + kGatherFor;
  inquiry.due = turn.now + std::chrono::milliseconds(kAnswerMs) + kAskMargin;
  wire::AskBegun ask;
  ask.launch = launch->id;
  ask.epoch = launch->epoch;
  ask.question = inquiry.question;
  ask.torch_group = message.torch_group;
  ask.key = message.key;
  ask.limit_ms = kAnswerMs;
  for (const auto& [rank, said] : inquiry.asked) {
    ask.rank = rank;
    turn.ToNode(launch->ranks[rank].node, ask);
  }
  turn.Arm(inquiry.due, TimerKind::kAwaited, launch->id);
}

void OnReturnedAnswer(Turn& turn, Node& node, const wire::RankBegun& message) {
  Launch* launch = turn.FindLaunch(message.launch);
  if (launch == nullptr || launch->epoch != message.epoch) return;
  ReturnedInquiry& inquiry = launch->returned;
  if (inquiry.question == 0 || inquiry.question != message.question) return;
  const auto asked = inquiry.asked.find(message.rank);
  if (asked == inquiry.asked.end() || launch->ranks[message.rank].node != node.id) return;
  asked->second = message;
  if (AllSaid(inquiry)) Decide(turn, *launch);
}

void OnAwaitedTimer(Turn& turn, const LaunchId& id) {
  Launch* launch = turn.FindLaunch(id);
  if (launch == nullptr || launch->returned.question == 0) return;
  const ReturnedInquiry& inquiry = launch->returned;
  if (turn.now >= inquiry.due || (turn.now >= inquiry.gathered && AllSaid(inquiry)))
    Decide(turn, *launch);
}

}  // namespace troupe::head
