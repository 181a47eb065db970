#include "actors/train/local/collectives.h"

#include "actors/train/core/reduce.h"

namespace troupe::train {
namespace {

bool Reduces(Collective kind) {
  return kind == Collective::kAllReduce || kind == Collective::kReduce ||
         kind == Collective::kReduceScatter;
}

}  // namespace

Status CheckOperation(const Operation& operation, int size) {
  const std::string name = NameOf(operation.kind);
  if (WidthOf(operation.type) == 0)
    return MakeError(ErrorCode::kInvalid, name + ": " + NameOf(operation.type));
  if (operation.root < (operation.kind == Collective::kRecv ? -1 : 0) || operation.root >= size)
    return MakeError(ErrorCode::kInvalid, name + ": rank " + std::to_string(operation.root) +
                                              " of a group of " + std::to_string(size));
  if (Reduces(operation.kind) && ReducerOf(operation.type, operation.op) == nullptr)
    return MakeError(ErrorCode::kInvalid, name + ": " + NameOf(operation.op) + " of " +
                                              NameOf(operation.type) + " is not defined");
  const auto ranks = static_cast<std::size_t>(size);
  const bool uneven = !operation.send_counts.empty() || !operation.recv_counts.empty();
  if (uneven && (operation.kind != Collective::kAllToAll || operation.send_counts.size() != ranks ||
                 operation.recv_counts.size() != ranks))
    return MakeError(ErrorCode::kInvalid, name +
                                              ": unequal counts are of an all-to-all, one for "
                                              "each of the " +
                                              std::to_string(size) + " ranks");
  return absl::OkStatus();
}

PieceNote NoteOf(const Operation& operation, std::uint64_t seq) {
  return {0,
          seq,
          operation.count,
          static_cast<std::int32_t>(operation.kind),
          static_cast<std::int32_t>(operation.type),
          static_cast<std::int32_t>(operation.op),
          operation.root};
}

std::string Words(const PieceNote& note) {
  if (note.kind < 0 || note.kind > static_cast<int>(Collective::kBarrier))
    return "what is no operation";
  const auto kind = static_cast<Collective>(note.kind);
  std::string text = std::string(NameOf(kind)) + " of " + std::to_string(note.count) + " " +
                     NameOf(DataType{note.type});
  if (Reduces(kind)) text += std::string(" (") + NameOf(ReduceOp{note.op}) + ")";
  return text + ", root " + std::to_string(note.root) + ", operation " + std::to_string(note.seq);
}

bool SameWork(const PieceNote& a, const PieceNote& b) {
  return a.piece == b.piece && a.seq == b.seq && a.count == b.count && a.kind == b.kind &&
         a.type == b.type && a.op == b.op && a.root == b.root;
}

Status Differs(int rank, const PieceNote& mine, int peer, const PieceNote& theirs) {
  return MakeError(ErrorCode::kInvalid,
                   "rank " + std::to_string(rank) + " is in " + Words(mine) + ", rank " +
                       std::to_string(peer) + " in " + Words(theirs) +
                       ": all ranks start the same operations in the same order");
}

Status CheckCounts(const std::vector<std::uint64_t>& table, const std::vector<std::size_t>& recv,
                   std::size_t me) {
  for (std::size_t rank = 0; rank < recv.size(); ++rank)
    if (const std::uint64_t sent = table[rank * recv.size() + me]; sent != recv[rank])
      return MakeError(ErrorCode::kInvalid, "all-to-all: rank " + std::to_string(rank) + " sends " +
                                                std::to_string(sent) + " bytes to rank " +
                                                std::to_string(me) + ", which takes " +
                                                std::to_string(recv[rank]));
  return absl::OkStatus();
}

}  // namespace troupe::train
