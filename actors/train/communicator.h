// Collectives among the ranks of one group in one epoch, over GPUs or over memory: what is common
// to NCCL's communicator and the others.
//
//   TROUPE_ASSIGN(auto work, communicator.Start({{.kind = Collective::kAllReduce, .send = x,
//                                                 .recv = x, .count = n}}));
//   TROUPE_TRY(work->Wait(std::chrono::minutes(10)));
//
// Views: one rank's. Thread-safe. Nothing here needs the GIL, and Stop works while another thread
// waits with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "actors/train/core/data_types.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace troupe::train {

enum class Collective {
  kAllReduce,
  kBroadcast,
  kReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kSend,
  kRecv,
  kGather,
  kScatter,
  kBarrier
};
const char* NameOf(Collective kind);

/// A group operation; `count` is as in NCCL: the number of elements that one rank contributes, or
/// gets of a reduce-scatter or scatter, or exchanges with each rank of an all-to-all. Gather,
/// scatter, barrier, types and operations without NCCL's numbers, tags and unequal counts are of
/// communicators over memory.
struct Operation {
  Collective kind = Collective::kAllReduce;
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;  // or the peer
  int tag = 0;  // shared by a send and its receive
  Duration most{};  // how long it may take, counted from its beginning here; 0: as it does
  // An all-to-all whose ranks exchange unequal counts has one for each rank, in its order; read
  // before Start returns.
  std::span<const std::size_t> send_counts = {}, recv_counts = {};
};

/// Operations that were started, until they are done or their group is stopped. Outlives the
/// communicator.
class Work {
 public:
  virtual ~Work() = default;
  /// Returns true if Wait would return at once. Never blocks.
  virtual bool Done() = 0;
  /// Blocks until the operations are done, at most so long. kTimeout; kFenced: the group was
  /// stopped, the buffers are undefined, and the text says why. Nothing is stopped by a timeout.
  virtual Status Wait(Duration most) = 0;
  /// From 1, the same on every rank.
  virtual std::uint64_t seq() const = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  /// Starts operations as one, on the group's stream or thread; all ranks start the same in the
  /// same order. Returns when they are under way, after the first of a group when it has connected.
  /// kFenced: the group is stopped or not formed; kInvalid: an argument; whatever else the library
  /// says stops the group. The buffers belong to the work until it is done.
  virtual StatusOr<std::shared_ptr<Work>> Start(std::span<const Operation> operations) = 0;
  /// Ends what runs, on this rank, whoever waits for it; returns at once. The first reason stays.
  virtual void Stop(const std::string& reason) = 0;
  /// The orderly end, in which all ranks meet. Blocks. After a stop: waits until all is freed.
  virtual Status Release() = 0;
  /// The last operation that was started.
  virtual std::uint64_t seq() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
};

}  // namespace troupe::train
