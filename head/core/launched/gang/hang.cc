#include "head/core/launched/gang/hang.h"

#include <algorithm>
#include <csignal>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "head/core/launched/ending.h"
#include "head/core/launched/rank_ends.h"

namespace troupe::head {
namespace {

// For a process to say how far it is: its interpreter may be busy, or its machine.
constexpr std::uint32_t kAnswerMsMin = 1000;
constexpr std::uint32_t kAnswerMsMax = 5000;
// From then until its worker's word that it said nothing is given up.
constexpr Duration kWorkerMargin = std::chrono::seconds(5);
constexpr std::size_t kNamedMax = 8;

bool StillRuns(const Rank& rank) { return rank.done.outcome == wire::Outcome::kNone; }

// H1, H5: whether there is a group that somebody may wait in, of this epoch.
bool InGroup(const Launch& launch, std::uint64_t group_epoch) {
  const std::uint64_t formed = std::max<std::uint64_t>(launch.regroup.formed.group_epoch, 1);
  return launch.on_nodes() && launch.phase == wire::LaunchState::kRunning &&
         launch.ending.step == Ending::Step::kNo && launch.regroup.epoch <= formed &&
         group_epoch == formed;
}

std::string Seconds(std::uint32_t ms) {
  std::string text = std::to_string(ms / 1000);
  if (ms % 1000 >= 100) text += "." + std::to_string(ms % 1000 / 100);
  return text + " s";
}

std::string Named(const std::vector<std::uint32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kNamedMax); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  if (ranks.size() > kNamedMax)
    text += " and " + std::to_string(ranks.size() - kNamedMax) + " more";
  return text;
}

// `begun`: what the rank says of itself.
wire::Failure HungFailure(Turn& turn, const Launch& launch, std::uint32_t rank,
                          const wire::RankBegun& begun) {
  const wire::RanksLate& word = launch.hang.word;
  std::vector<std::uint32_t> waiting = word.waiting;
  if (waiting.empty()) waiting.push_back(word.rank);
  std::string cause = "hung: it has kept " + Named(waiting) + " waiting for " +
                      Seconds(word.waited_ms) + " in operation " + std::to_string(word.operation) +
                      (word.op.empty() ? "" : " (" + word.op + ")") + " of process group " +
                      word.torch_group + ", over hang_timeout=" + Seconds(launch.spec.hang_ms);
  cause += begun.silent ? "; it says nothing: it is stopped, or in code that keeps Python's lock"
                        : "; it has begun " + std::to_string(begun.begun) + " operations";
  wire::Failure failure =
      FailureOn(turn, launch, static_cast<std::int32_t>(rank), wire::FailureKind::kHung, cause);
  failure.signal = SIGKILL;
  failure.exit_code = 128 + SIGKILL;
  failure.traceback = begun.where;
  for (const wire::LateRank& late : word.late) {
    if (late.rank != rank) continue;
    failure.pid = late.pid;
    if (failure.traceback.empty()) failure.traceback = late.where;
  }
  return failure;
}

// H2, H4
std::vector<std::uint32_t> Hung(const Launch& launch) {
  std::vector<std::uint32_t> silent, slow;
  std::uint64_t fewest = std::numeric_limits<std::uint64_t>::max();
  for (const auto& [rank, said] : launch.hang.asked) {
    if (!said || !StillRuns(launch.ranks[rank])) continue;
    if (said->silent) silent.push_back(rank);
    if (said->silent || said->waits || said->begun >= launch.hang.word.operation) continue;
    if (said->begun < fewest) slow.clear();
    fewest = std::min(fewest, said->begun);
    if (said->begun == fewest) slow.push_back(rank);
  }
  return silent.empty() ? slow : silent;
}

void Judge(Turn& turn, Launch& launch) {
  const bool stands = InGroup(launch, launch.hang.word.group_epoch) &&
                      StillRuns(launch.ranks[launch.hang.word.rank]);
  std::vector<std::uint32_t> hung;
  if (stands) hung = Hung(launch);
  for (const std::uint32_t rank : hung) {
    FailRank(turn, launch, HungFailure(turn, launch, rank, *launch.hang.asked[rank]));
  }
  launch.hang = HangInquiry();
  if (!hung.empty()) OnRankEnded(turn, launch);
}

}  // namespace

std::uint32_t LaunchRank(const Launch& launch, std::uint32_t group_rank) {
  const std::vector<std::uint32_t>& members = launch.regroup.formed.members;
  if (launch.regroup.formed.group_epoch == 0) return group_rank;
  return group_rank < members.size() ? members[group_rank]
                                     : static_cast<std::uint32_t>(launch.ranks.size());
}

void OnRanksLate(Turn& turn, Node& node, const wire::RanksLate& message) {
  Launch* launch = turn.FindLaunch(message.launch);
  if (launch == nullptr || launch->epoch != message.epoch || launch->spec.hang_ms == 0) return;
  if (!InGroup(*launch, message.group_epoch) || message.rank >= launch->ranks.size()) return;
  const Rank& waits = launch->ranks[message.rank];
  if (waits.node != node.id || !StillRuns(waits) || message.waited_ms < launch->spec.hang_ms)
    return;
  if (launch->hang.question != 0) return;  // H5
  HangInquiry inquiry;
  inquiry.word = message;
  for (std::uint32_t& rank : inquiry.word.waiting) rank = LaunchRank(*launch, rank);
  for (wire::LateRank& late : inquiry.word.late) {
    late.rank = LaunchRank(*launch, late.rank);
    if (late.rank >= launch->ranks.size() || late.rank == message.rank) continue;
    if (StillRuns(launch->ranks[late.rank])) inquiry.asked[late.rank];
  }
  if (inquiry.asked.empty()) return;
  wire::AskBegun ask;
  ask.launch = launch->id;
  ask.epoch = launch->epoch;
  ask.question = ++turn.state.questions;
  ask.torch_group = message.torch_group;
  ask.limit_ms = std::clamp(launch->spec.hang_ms / 2, kAnswerMsMin, kAnswerMsMax);
  for (const auto& [rank, said] : inquiry.asked) {
    ask.rank = rank;
    turn.ToNode(launch->ranks[rank].node, ask);
  }
  inquiry.question = ask.question;
  inquiry.due = turn.now + std::chrono::milliseconds(ask.limit_ms) + kWorkerMargin;
  turn.Arm(inquiry.due, TimerKind::kHang, launch->id);
  launch->hang = std::move(inquiry);
}

void OnRankBegun(Turn& turn, Node& node, const wire::RankBegun& message) {
  Launch* launch = turn.FindLaunch(message.launch);
  if (launch == nullptr || launch->epoch != message.epoch) return;
  if (launch->hang.question == 0 || launch->hang.question != message.question) return;
  const auto asked = launch->hang.asked.find(message.rank);
  if (asked == launch->hang.asked.end() || launch->ranks[message.rank].node != node.id) return;
  asked->second = message;
  const auto has_said = [](const auto& each) { return each.second.has_value(); };
  if (std::all_of(launch->hang.asked.begin(), launch->hang.asked.end(), has_said))
    Judge(turn, *launch);
}

void OnHangTimer(Turn& turn, const LaunchId& id) {
  Launch* launch = turn.FindLaunch(id);
  if (launch == nullptr || launch->hang.question == 0 || turn.now < launch->hang.due) return;
  Judge(turn, *launch);
}

}  // namespace troupe::head
