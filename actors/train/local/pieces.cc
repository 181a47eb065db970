#include "actors/train/local/pieces.h"

#include <algorithm>
#include <utility>

#include "actors/train/core/reduce.h"

namespace troupe::train {
namespace {

constexpr std::size_t kOneRoundBytes = 32 << 10;  // sum over all ranks

}  // namespace

Status Pieces::Dispatch(const Operation& operation) {
  const std::size_t all = operation.count * WidthOf(operation.type) * ranks();
  switch (operation.kind) {
    case Collective::kAllReduce:
    case Collective::kReduce:
      return all <= kOneRoundBytes ? ReduceInOneRound(operation) : Reduce(operation);
    case Collective::kReduceScatter:
      return ReduceScatter(operation);
    case Collective::kAllGather:
    case Collective::kGather:
      return Gather(operation);
    case Collective::kBroadcast:
      return Broadcast(operation);
    case Collective::kScatter:
      return Scatter(operation);
    case Collective::kAllToAll:
      return AllToAll(operation, area_.section_bytes());
    case Collective::kBarrier:
      return Go({});
    case Collective::kSend:
    case Collective::kRecv:
      break;
  }
  return MakeError(ErrorCode::kInternal, "a send or receive among the collectives");
}

Status Pieces::Combine(const Plan& plan, std::uint64_t piece) {
  const std::uint64_t number = next_ + piece;
  TROUPE_TRY(AwaitHere(&RankLine::posted, number + 1));
  note_.piece = number;
  TROUPE_TRY(CheckHere(number));  // PI1
  if (plan.take && number >= area_.slots())
    TROUPE_TRY(AwaitHere(&RankLine::taken, number + 1 - area_.slots()));
  if (plan.combine) plan.combine(piece, number);
  if (!plan.take) area_.mine().taken.store(number + 1);
  area_.mine().reduced.store(number + 1);
  area_.Ring();
  return absl::OkStatus();
}

Status Pieces::Take(const Plan& plan, std::uint64_t piece) {
  const std::uint64_t number = next_ + piece;
  TROUPE_TRY(AwaitHere(&RankLine::reduced, number + 1));
  plan.take(piece, number);
  area_.mine().taken.store(number + 1);
  area_.Ring();
  return absl::OkStatus();
}

/// The next piece is posted before this one is combined, and the one before is taken after it, so
/// that ranks which are a little apart do not wait.
Status Pieces::Go(const Plan& plan) {
  BeginPieces(plan.pieces, static_cast<bool>(plan.take));
  TROUPE_TRY(Post(plan.post, 0));
  for (std::uint64_t piece = 0; piece < plan.pieces; ++piece) {
    if (piece + 1 < plan.pieces) TROUPE_TRY(Post(plan.post, piece + 1));
    TROUPE_TRY(Combine(plan, piece));
    if (plan.take && piece > 0) TROUPE_TRY(Take(plan, piece - 1));
  }
  if (plan.take) TROUPE_TRY(Take(plan, plan.pieces - 1));
  next_ += plan.pieces;
  return absl::OkStatus();
}

Status Pieces::ReduceInOneRound(const Operation& operation) {
  const std::size_t bytes = operation.count * WidthOf(operation.type);
  const bool gets = operation.kind == Collective::kAllReduce || operation.root == area_.rank();
  Plan plan;
  plan.post = [&](std::uint64_t, std::uint64_t number) {
    Copy(Mine(number), operation.send, bytes);
  };
  plan.combine = [&](std::uint64_t, std::uint64_t number) {
    if (!gets) return;
    std::vector<const void*> sources;
    for (std::size_t rank = 0; rank < ranks(); ++rank) sources.push_back(Peer(rank, number));
    ReducerOf(operation.type, operation.op)(operation.recv, sources.data(), ranks(),
                                            operation.count, ranks());
  };
  return Go(plan);
}

Status Pieces::Reduce(const Operation& operation) {
  const std::size_t width = WidthOf(operation.type), total = operation.count * width;
  const bool gets = operation.kind == Collective::kAllReduce || operation.root == area_.rank();
  const Reducer reduce = ReducerOf(operation.type, operation.op);
  const std::size_t section = area_.section_bytes();
  /// Begin and size of a rank's share of a piece.
  const auto share = [&](std::uint64_t piece, std::size_t rank) {
    const std::size_t begin = piece * area_.slot_bytes();
    const std::size_t bytes = std::min(area_.slot_bytes(), total - begin);
    const std::size_t each = std::min(section, (bytes / ranks() + 64) / 64 * 64);
    const std::size_t from = std::min(each * rank, bytes);
    return std::pair(begin + from, std::min(each, bytes - from));
  };
  std::vector<const void*> sources(ranks());
  Plan plan;
  plan.pieces = PiecesOf(total, area_.slot_bytes());
  plan.post = [&](std::uint64_t piece, std::uint64_t number) {
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      const auto [at, bytes] = share(piece, rank);
      if (rank != me()) Copy(Mine(number) + section * rank, In(operation) + at, bytes);
    }
  };
  plan.combine = [&](std::uint64_t piece, std::uint64_t number) {
    const auto [at, bytes] = share(piece, me());
    for (std::size_t rank = 0; rank < ranks(); ++rank)
      sources[rank] = Peer(rank, number) + section * me();
    sources[me()] = In(operation) + at;
    std::byte* const result = area_.Result(number) + section * me();
    reduce(result, sources.data(), ranks(), bytes / width, ranks());
    if (gets) Copy(Out(operation) + at, result, bytes);
  };
  plan.take = [&](std::uint64_t piece, std::uint64_t number) {
    for (std::size_t rank = 0; gets && rank < ranks(); ++rank) {
      const auto [at, bytes] = share(piece, rank);
      if (rank != me()) Copy(Out(operation) + at, area_.Result(number) + section * rank, bytes);
    }
  };
  return Go(plan);
}

Status Pieces::ReduceScatter(const Operation& operation) {
  const std::size_t width = WidthOf(operation.type), block = operation.count * width;
  const std::size_t section = area_.section_bytes();
  const Reducer reduce = ReducerOf(operation.type, operation.op);
  std::vector<const void*> sources(ranks());
  Plan plan;
  plan.pieces = PiecesOf(block, section);
  plan.post = [&](std::uint64_t piece, std::uint64_t number) {
    const std::size_t at = piece * section, bytes = std::min(section, block - at);
    for (std::size_t rank = 0; rank < ranks(); ++rank)
      if (rank != me())
        Copy(Mine(number) + section * rank, In(operation) + block * rank + at, bytes);
  };
  plan.combine = [&](std::uint64_t piece, std::uint64_t number) {
    const std::size_t at = piece * section, bytes = std::min(section, block - at);
    for (std::size_t rank = 0; rank < ranks(); ++rank)
      sources[rank] = Peer(rank, number) + section * me();
    sources[me()] = In(operation) + block * me() + at;
    reduce(Out(operation) + at, sources.data(), ranks(), bytes / width, ranks());
  };
  return Go(plan);
}

Status Pieces::Gather(const Operation& operation) {
  const std::size_t block = operation.count * WidthOf(operation.type), slot = area_.slot_bytes();
  const bool gets = operation.kind == Collective::kAllGather || operation.root == area_.rank();
  const bool gives = operation.kind == Collective::kAllGather || operation.root != area_.rank();
  Plan plan;
  plan.pieces = PiecesOf(block, slot);
  plan.post = [&](std::uint64_t piece, std::uint64_t number) {
    const std::size_t at = piece * slot, bytes = std::min(slot, block - at);
    if (gives && ranks() > 1) Copy(Mine(number), In(operation) + at, bytes);
    if (gets) Copy(Out(operation) + block * me() + at, In(operation) + at, bytes);
  };
  plan.combine = [&](std::uint64_t piece, std::uint64_t number) {
    const std::size_t at = piece * slot, bytes = std::min(slot, block - at);
    for (std::size_t rank = 0; gets && rank < ranks(); ++rank)
      if (rank != me()) Copy(Out(operation) + block * rank + at, Peer(rank, number), bytes);
  };
  return Go(plan);
}

Status Pieces::Broadcast(const Operation& operation) {
  const std::size_t total = operation.count * WidthOf(operation.type), slot = area_.slot_bytes();
  const auto root = static_cast<std::size_t>(operation.root);
  Plan plan;
  plan.pieces = PiecesOf(total, slot);
  plan.post = [&](std::uint64_t piece, std::uint64_t number) {
    const std::size_t at = piece * slot, bytes = std::min(slot, total - at);
    if (me() != root) return;
    if (ranks() > 1) Copy(Mine(number), In(operation) + at, bytes);
    Copy(Out(operation) + at, In(operation) + at, bytes);
  };
  plan.combine = [&](std::uint64_t piece, std::uint64_t number) {
    const std::size_t at = piece * slot, bytes = std::min(slot, total - at);
    if (me() != root) Copy(Out(operation) + at, Peer(root, number), bytes);
  };
  return Go(plan);
}

Status Pieces::Scatter(const Operation& operation) {
  const std::size_t block = operation.count * WidthOf(operation.type);
  const std::size_t section = area_.section_bytes();
  const auto root = static_cast<std::size_t>(operation.root);
  Plan plan;
  plan.pieces = PiecesOf(block, section);
  plan.post = [&](std::uint64_t piece, std::uint64_t number) {
    const std::size_t at = piece * section, bytes = std::min(section, block - at);
    for (std::size_t rank = 0; me() == root && rank < ranks(); ++rank)
      Copy(rank == root ? Out(operation) + at : Mine(number) + section * rank,
           In(operation) + block * rank + at, bytes);
  };
  plan.combine = [&](std::uint64_t piece, std::uint64_t number) {
    const std::size_t at = piece * section, bytes = std::min(section, block - at);
    if (me() != root) Copy(Out(operation) + at, Peer(root, number) + section * me(), bytes);
  };
  return Go(plan);
}

Status Pieces::Exchange(const Operation& operation, const std::vector<std::size_t>& send,
                        const std::vector<std::size_t>& recv, std::size_t pieces) {
  const std::size_t section = area_.section_bytes();
  const auto part = [&](std::uint64_t piece, std::size_t bytes) {
    const std::size_t at = std::min(piece * section, bytes);
    return std::pair(at, std::min(section, bytes - at));
  };
  Plan plan;
  plan.pieces = pieces;
  plan.post = [&](std::uint64_t piece, std::uint64_t number) {
    const std::byte* from = In(operation);
    for (std::size_t rank = 0; rank < ranks(); from += send[rank++]) {
      const auto [at, bytes] = part(piece, send[rank]);
      Copy(Mine(number) + section * rank, from + at, bytes);
    }
  };
  plan.combine = [&](std::uint64_t piece, std::uint64_t number) {
    std::byte* to = Out(operation);
    for (std::size_t rank = 0; rank < ranks(); to += recv[rank++]) {
      const auto [at, bytes] = part(piece, recv[rank]);
      Copy(to + at, Peer(rank, number) + section * me(), bytes);
    }
  };
  return Go(plan);
}

}  // namespace troupe::train
