// The memory that all ranks of a fake communicator map: who is there, what each has come to, pieces
// of data, and one word that changes with anything, on which everybody waits.
//
// A peer that dies leaves it as it is, as GPU memory behind NVLink: nobody notices unless they look
// at the process. No lock is in it, so that a killed rank holds none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "actors/train/nccl_types.h"
#include "runtime/base/unique_fd.h"

namespace troupe::fakes {

inline constexpr int kRanksMax = 32;
inline constexpr std::size_t kPieceBytes = 256 << 10;  // a rank's data in a round of a collective
inline constexpr std::size_t kMailBytes = 64 << 10;  // most bytes from one rank to another at once

enum class RankState : std::uint32_t { kAbsent, kPresent, kRevoked, kAborted, kDestroyed };
enum class Kind : int {
  kAllReduce,
  kBroadcast,
  kReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kSend,
  kRecv
};

/// A rank's description of the operation it begins, so that all can compare.
struct Posted {
  std::uint64_t number;
  Kind kind;
  train::NcclType type;
  train::NcclOp op;
  int root;
  std::uint64_t count;
};

struct RankSlot {
  std::atomic<RankState> state;
  std::atomic<std::uint64_t> rounds;   // barriers inside operations
  std::atomic<std::uint64_t> managed;  // barriers of init, split, shrink, grow and finalize
  std::atomic<int> pid;
  int device;
  int color, key;
  Posted posted;
  bool has_id;
  train::NcclUniqueId id;  // a child communicator's
};

/// A box for what one rank sends another.
struct Mail {
  std::atomic<std::uint32_t> full;
  std::uint64_t bytes;
  Posted posted;
};

struct SharedHeader {
  std::atomic<std::uint32_t> change;
  int size;
  RankSlot ranks[kRanksMax];
  Mail mails[kRanksMax][kRanksMax];  // [from][to]
};

/// Bytes of a segment of so many ranks.
std::size_t SegmentBytes(int size);

enum class End { kDone, kStopped, kPeerGone };

/// A rank's mapping. Thread-safe.
class Segment {
 public:
  /// Maps what `fd` is; null with the reason in errno.
  static std::unique_ptr<Segment> Map(UniqueFd fd, int rank, int size);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  SharedHeader& shared() { return *header_; }
  RankSlot& mine() { return header_->ranks[rank_]; }
  RankSlot& of(int rank) { return header_->ranks[rank]; }
  char* piece(int rank) { return data_ + static_cast<std::size_t>(rank) * kPieceBytes; }
  char* mail(int from, int to);

  /// Remembers the processes of all ranks; call it once all are present.
  void WatchPeers();
  /// The first rank that has aborted or whose process is gone; -1 where there is none.
  int FirstLost();

  /// Something has changed: all who wait look again. Any process, any thread.
  void Changed();
  /// Blocks until `done`, until `stop`, or, where `watch_deaths`, until a peer is lost.
  End Wait(const std::function<bool()>& done, const std::atomic<bool>& stop, bool watch_deaths);

 private:
  Segment(SharedHeader* header, int rank, int size);

  SharedHeader* header_;
  char* data_;
  int rank_, size_;
  std::vector<UniqueFd> processes_;  // pidfds of the ranks
};

}  // namespace troupe::fakes
