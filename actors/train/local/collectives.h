// The common part of both kinds of collectives over memory: those of one node (pieces.h) and those
// of several (spanning_pieces.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "actors/train/communicator.h"
#include "actors/train/local/shared_area.h"

namespace troupe::train {

class Collectives {
 public:
  virtual ~Collectives() = default;
  /// Runs a collective with all ranks; blocks. kCancelled: the area was stopped. kConnection:
  /// a peer is gone that it needs; the text is its number in the group. kInvalid: a peer is in
  /// another operation. kTimeout: it took longer than it may, and who is late. Not for sends and
  /// receives. Nothing of the caller's memory is touched once it has returned.
  virtual Status Run(const Operation& operation, std::uint64_t seq) = 0;
};

/// Ok where the operation is one that a group of `size` ranks can run; else kInvalid and why.
Status CheckOperation(const Operation& operation, int size);

PieceNote NoteOf(const Operation& operation, std::uint64_t seq);
/// "all-reduce of 10 float32 (sum), root 0, operation 3".
std::string Words(const PieceNote& note);
bool SameWork(const PieceNote& a, const PieceNote& b);
/// Returns the error of two ranks that are in different operations.
Status Differs(int rank, const PieceNote& mine, int peer, const PieceNote& theirs);
/// Ok where all send what rank `me` receives; `table` has what each sends to each, a row for each
/// rank, in bytes.
Status CheckCounts(const std::vector<std::uint64_t>& table, const std::vector<std::size_t>& recv,
                   std::size_t me);
inline Status Stopped() { return MakeError(ErrorCode::kCancelled, "stopped"); }
inline Status PeerGone(int peer) { return MakeError(ErrorCode::kConnection, std::to_string(peer)); }

inline std::uint64_t PiecesOf(std::size_t bytes, std::size_t each) {
  return std::max<std::size_t>((bytes + each - 1) / each, 1);
}
inline void Copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}
inline const std::byte* In(const Operation& operation) {
  return static_cast<const std::byte*>(operation.send);
}
inline std::byte* Out(const Operation& operation) {
  return static_cast<std::byte*>(operation.recv);
}

}  // namespace troupe::train
