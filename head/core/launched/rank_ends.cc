#include "head/core/launched/rank_ends.h"

#include <algorithm>
#include <utility>

namespace troupe::head {

std::uint64_t NextInLog(const Launch& launch) {
  std::uint64_t last = 0;
  for (const Rank& rank : launch.ranks) last = std::max(last, rank.done.order);
  return last + 1;
}

wire::Failure FailureOn(Turn& turn, const Launch& launch, std::int32_t rank, wire::FailureKind kind,
                        const std::string& cause) {
  wire::Failure failure;
  failure.rank = rank;
  failure.kind = kind;
  failure.cause = cause;
  failure.exit_code = 1;
  if (rank < 0 || static_cast<std::size_t>(rank) >= launch.ranks.size()) return failure;
  failure.node = launch.ranks[static_cast<std::size_t>(rank)].node;
  failure.node_name = turn.NodeName(failure.node);
  if (const Node* node = turn.SeeNode(failure.node)) failure.host = node->info.host;
  return failure;
}

void FailRank(Turn& turn, Launch& launch, wire::Failure failure) {
  wire::RankDone done;
  done.outcome = wire::Outcome::kFailed;
  const auto rank = static_cast<std::size_t>(failure.rank);
  FinishRank(turn, launch, rank, std::move(done), std::move(failure), {});
}

void FinishRank(Turn& turn, Launch& launch, std::size_t rank, wire::RankDone done,
                wire::Failure failure, const std::string& value) {
  done.launch = launch.id;
  done.epoch = launch.epoch;
  done.generation = kGeneration;
  done.rank = static_cast<std::uint32_t>(rank);
  done.order = NextInLog(launch);
  done.life = launch.ranks[rank].life;
  done.failure = std::move(failure);
  turn.Append(wire::RankFinished{std::move(done)}, value);
}

}  // namespace troupe::head
