#include "head/core/machine/verdict.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/base/check.h"

namespace troupe::head {
namespace {

bool WithItsNode(const wire::Failure& failure) {
  return failure.kind == wire::FailureKind::kNodeLost ||
         failure.kind == wire::FailureKind::kNodeUnreachable;
}

bool Served(const Launch& launch, std::size_t rank) {
  return launch.spec.mode == wire::LaunchMode::kDriver && rank != 0;
}

// Returns the failure of a rank that returned while others still needed it, with their fates.
wire::Failure EarlyReturn(const wire::RankDone& done, const wire::Failure& symptom) {
  wire::Failure failure = done.failure;
  failure.rank = static_cast<std::int32_t>(done.rank);
  failure.exit_code = 1;
  failure.kind = wire::FailureKind::kReturnedEarly;
  failure.cause = "returned before rank " + std::to_string(symptom.rank) +
                  " had ended, whose collective then failed: " + symptom.cause;
  return failure;
}

// RP3: the rank in whose place no other process comes any more; as many as there are: none.
std::size_t DiedForGood(const Launch& launch) {
  std::size_t r = 0;
  for (; r < launch.ranks.size(); ++r) {
    const Rank& rank = launch.ranks[r];
    const bool often = rank.deaths >= kReplacementsMax || UnbornOf(launch, rank) >= kUnbornMax;
    if (often && launch.spec.on_rank_death == wire::RankDeath::kReplace && Died(launch, r)) break;
  }
  return r;
}

// How a rank died, without what only one rank can have: ranks that died alike have one text.
std::string WayOfDeath(const wire::Failure& failure) {
  constexpr std::size_t kCauseMax = 200;
  // no process of it was seen to end
  if (WithItsNode(failure) || (failure.signal == 0 && failure.pid == 0))
    return failure.cause.substr(0, std::min(failure.cause.find('\n'), kCauseMax));
  const char* name = failure.signal == 0 ? nullptr : sigabbrev_np(failure.signal);
  std::string text = name != nullptr       ? std::string("SIG") + name
                     : failure.signal != 0 ? "signal " + std::to_string(failure.signal)
                                           : "exit " + std::to_string(failure.exit_code);
  if (failure.kind == wire::FailureKind::kOutOfMemory) text += ", out of memory";
  return failure.node_name.empty() ? text : text + " on " + failure.node_name;
}

// "; died too: rank 1 (exit 3 on node-a), ranks 2, 3 (node node-b is lost: its worker ended)", of
// all that died but `known`.
std::string WhoElseDied(const Launch& launch, std::size_t known) {
  constexpr std::size_t kWaysMax = 8;
  constexpr std::size_t kRanksMax = 16;
  std::map<std::string, std::vector<std::size_t>> ranks;  // by the way of their death
  for (std::size_t r = 0; r < launch.ranks.size(); ++r) {
    if (r != known && Died(launch, r)) ranks[WayOfDeath(launch.ranks[r].done.failure)].push_back(r);
  }
  std::string text;
  std::size_t told = 0;
  for (const auto& [way, who] : ranks) {
    if (told++ == kWaysMax) break;
    text += told == 1 ? "; died too: " : ", ";
    text += who.size() == 1 ? "rank " : "ranks ";
    for (std::size_t n = 0; n < std::min(who.size(), kRanksMax); ++n)
      text += (n == 0 ? "" : ", ") + std::to_string(who[n]);
    if (who.size() > kRanksMax) text += " and " + std::to_string(who.size() - kRanksMax) + " more";
    text += " (" + way + ")";
  }
  if (ranks.size() > kWaysMax) text += ", and others";
  return text;
}

// Returns the text about the death that was one too many.
std::string WhyTheLast(const Launch& launch, std::size_t rank) {
  const std::uint32_t unborn = UnbornOf(launch, launch.ranks[rank]);
  if (unborn >= kUnbornMax) {
    return "; it is the " + std::to_string(unborn) +
           "rd process in a row in this rank's place that died before it was in a group";
  }
  return "; " + std::to_string(launch.ranks[rank].deaths) +
         " processes have taken this rank's place before, and no more do";
}

}  // namespace

Grade GradeOf(const wire::RankDone& done, bool served) {
  if (done.outcome == wire::Outcome::kCancelled) return Grade::kStopped;
  if (done.outcome == wire::Outcome::kSucceeded)
    return served ? Grade::kNoValue : Grade::kEarlyReturn;
  const wire::Failure& failure = done.failure;
  if (failure.symptom) return Grade::kSymptom;
  if (WithItsNode(failure)) return Grade::kNodeLost;
  if (failure.signal != 0 || failure.kind == wire::FailureKind::kOutOfMemory) return Grade::kKilled;
  return failure.exception_type.empty() ? Grade::kNoValue : Grade::kException;
}

bool EndedBadly(const Launch& launch, std::size_t rank) {
  const wire::Outcome outcome = launch.ranks[rank].done.outcome;
  if (outcome == wire::Outcome::kNone) return false;
  return outcome != wire::Outcome::kSucceeded || Served(launch, rank);
}

bool Died(const Launch& launch, std::size_t rank) {
  if (launch.spec.on_rank_death == wire::RankDeath::kFail) return false;
  const wire::RankDone& done = launch.ranks[rank].done;
  return done.outcome == wire::Outcome::kFailed && !done.drivers_word &&
         GradeOf(done, false) <= Grade::kNoValue;
}

std::uint32_t UnbornOf(const Launch& launch, const Rank& rank) {
  return rank.life > launch.regroup.formed.group_epoch ? rank.unborn + 1 : 0;
}

bool Replaced(const Rank& rank) {
  return rank.done.outcome == wire::Outcome::kNone && rank.done.order != 0;
}

std::uint64_t GroupEpochOf(const Launch& launch) {
  std::uint64_t epoch = 1;
  for (std::size_t r = 0; r < launch.ranks.size(); ++r)
    epoch += launch.ranks[r].deaths + (Died(launch, r) ? 1 : 0);
  return epoch;
}

std::size_t LeftOf(const Launch& launch) {
  std::size_t left = launch.ranks.size();
  for (std::size_t r = 0; r < launch.ranks.size(); ++r) left -= Died(launch, r) ? 1 : 0;
  return left;
}

bool Failing(const Launch& launch) {
  std::size_t died = 0;
  for (std::size_t r = 0; r < launch.ranks.size(); ++r) {
    if (!EndedBadly(launch, r)) continue;
    if (!Died(launch, r)) return true;
    ++died;
  }
  if (died == 0) return false;
  if (DiedForGood(launch) < launch.ranks.size()) return true;
  return launch.phase != wire::LaunchState::kRunning ||
         launch.ranks.size() - died < std::max(1u, launch.spec.ranks_min);
}

bool AllEnded(const Launch& launch) {
  if (launch.spec.mode == wire::LaunchMode::kCommand) return true;
  if (launch.spec.mode == wire::LaunchMode::kDriver) {
    return launch.ranks.empty() || launch.ranks[0].done.outcome != wire::Outcome::kNone;
  }
  for (const Rank& rank : launch.ranks) {
    if (rank.done.outcome == wire::Outcome::kNone) return false;
  }
  return true;
}

std::string WhereRanksWere(const Launch& launch) {
  constexpr std::size_t kPlacesMax = 16;
  constexpr char kSilent[] =
      "  it did not say: native code holds Python's lock, or its process is stopped "
      "(`troupe stack` reads it from outside)\n";
  std::map<std::string, std::vector<std::size_t>> ranks;  // by place
  for (std::size_t r = 0; r < launch.ranks.size(); ++r) {
    const Rank& rank = launch.ranks[r];
    const bool stopped =
        rank.done.outcome == wire::Outcome::kNone || rank.done.outcome == wire::Outcome::kCancelled;
    const bool asked = stopped && launch.ending.silent.count(static_cast<std::uint32_t>(r)) > 0;
    if (!rank.where.empty()) ranks[rank.where].push_back(r);
    if (rank.where.empty() && asked) ranks[kSilent].push_back(r);
  }
  std::vector<std::pair<std::vector<std::size_t>, std::string>> places;
  places.reserve(ranks.size());
  for (auto& [place, who] : ranks) places.emplace_back(std::move(who), place);
  std::sort(places.begin(), places.end());
  std::string text;
  for (std::size_t i = 0; i < std::min(places.size(), kPlacesMax); ++i) {
    const auto& [who, place] = places[i];
    text += who.size() == 1 ? "rank " : "ranks ";
    for (std::size_t n = 0; n < who.size(); ++n)
      text += (n == 0 ? "" : ", ") + std::to_string(who[n]);
    text += ":\n" + place;
    if (text.back() != '\n') text += '\n';
  }
  if (places.size() > kPlacesMax)
    text += "and " + std::to_string(places.size() - kPlacesMax) + " other places\n";
  return text;
}

Cause CauseOf(const Launch& launch) {
  const auto key = [&launch](std::size_t r) {
    const wire::RankDone& done = launch.ranks[r].done;
    return std::make_tuple(GradeOf(done, Served(launch, r)), done.order, r);
  };
  const std::size_t none = launch.ranks.size();
  std::size_t bad = none;
  std::size_t early = none;
  std::size_t died = none;
  std::size_t replaced = none;
  for (std::size_t r = 0; r < launch.ranks.size(); ++r) {
    const Rank& rank = launch.ranks[r];
    const bool runs = rank.done.outcome == wire::Outcome::kNone;
    if ((runs && !Replaced(rank)) || rank.absorbed) continue;
    std::size_t& best = runs                     ? replaced
                        : !EndedBadly(launch, r) ? early
                        : Died(launch, r)        ? died
                                                 : bad;
    if (best == none || key(r) < key(best)) best = r;
  }
  const bool too_few = bad == none;
  const std::size_t for_good = too_few ? DiedForGood(launch) : none;
  if (for_good != none) died = for_good;
  if (died != none && (too_few || std::get<0>(key(bad)) >= Grade::kSymptom)) bad = died;
  // The rank's collective failed since another rank died, in whose place a process is already.
  if (bad != none && replaced != none && std::get<0>(key(bad)) >= Grade::kSymptom) bad = replaced;
  TROUPE_CHECK(bad < none, launch.id.Hex());
  Cause cause;
  cause.grade = std::get<0>(key(bad));
  cause.failure = launch.ranks[bad].done.failure;
  cause.drivers_word = launch.ranks[bad].done.drivers_word;
  if (for_good != none) {
    cause.failure.cause += WhyTheLast(launch, for_good);
  } else if (too_few && launch.phase == wire::LaunchState::kRunning) {
    cause.failure.cause += "; of " + std::to_string(none) + " ranks " +
                           std::to_string(LeftOf(launch)) + " are left, and min_processes is " +
                           std::to_string(std::max(1u, launch.spec.ranks_min)) +
                           WhoElseDied(launch, bad);
  }
  if (cause.grade == Grade::kSymptom && early < launch.ranks.size()) {
    cause.grade = Grade::kEarlyReturn;
    cause.failure = EarlyReturn(launch.ranks[early].done, launch.ranks[bad].done.failure);
    cause.drivers_word = false;
  }
  return cause;
}

}  // namespace troupe::head
