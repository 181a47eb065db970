// The segments of one process: where the values it makes are written, recycled without a system
// call.
//
// Begin gives memory for a value; the caller writes there, without any lock (and without the GIL),
// then Lend names its owner and gives its location. The owner's Free makes the memory the next
// value's; see core/slots.h for what else ends it. A class of sizes whose values come faster than
// they go keeps one spare segment, made in the background, since making one costs ten times the
// copy into it.
//
// Whose view: the maker's process. Every function may be called from any thread; Begin blocks when
// a segment must be made and no spare is there. In a forked child a pool is of no use: Begin says
// so. Limits: `bytes_max` of segments in memory, the spare within half of it. What goes beyond, or
// would take the last of the system's memory, lies in a file on a disk, if there is a folder for
// it; else kTooLarge. A segment of which nothing is in use is closed by Trim, or by Begin when
// another class needs its room; one on a disk at once.
//
// Example:
//   TROUPE_ASSIGN(Writing writing, pool.Begin(bytes));
//   CopyBytes(writing.data, source, bytes);
//   Location location = pool.Lend(writing, owner);
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/store/core/object_id.h"
#include "runtime/store/core/slots.h"
#include "runtime/store/segment.h"

namespace troupe::store {

/// Memory that is being written. A value: give it back once, by Lend or GiveUp.
struct Writing {
  char* data = nullptr;
  std::uint64_t bytes = 0;
  Taken slot;
  std::uint64_t offset = 0;
};

struct PoolOptions {
  // 0: half of the machine's memory, or of what its control group may use
  std::uint64_t bytes_max = 0;
  std::string spill_folder;  // on a disk; empty: nothing goes there
  /// Bytes that the system can give before its memory is short; nullptr: it is not asked.
  std::uint64_t (*memory_left)() = nullptr;
  bool spares = true;
  Duration idle = std::chrono::seconds(10);  // Trim closes what was not used for so long
};

class Pool {
 public:
  Pool(ProcessId self, NodeId node, PoolOptions options = {});
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// kTooLarge: over the pool's limit, or the system's memory.
  StatusOr<Writing> Begin(std::uint64_t bytes);
  /// Makes the memory for such a value now, so that its Begin does not.
  Status Reserve(std::uint64_t bytes);
  void GiveUp(const Writing& writing);
  Location Lend(const Writing& writing, const ProcessId& owner);

  void Free(const ProcessId& owner, const SlotId& slot, std::uint64_t generation, bool clean);
  void OwnerLost(const ProcessId& owner, bool dead);
  /// Closes segments of which nothing was in use since `idle` ago, while the pool holds more than
  /// half of its limit; one stays.
  void Trim(Instant now);
  /// Returns true if there may be something to trim.
  bool OverHalf() const;
  /// Returns the messages for the worker and the readers, in this order.
  std::vector<CloseSegment> TakeClosed();

  /// Duplicates the descriptor of an open segment, for the caller to send and close; `*bytes` gets
  /// the segment's size.
  StatusOr<UniqueFd> DescriptorOf(std::uint32_t segment, std::uint64_t* bytes) const;

  struct Figures {
    std::uint64_t bytes = 0;       // all segments' in memory
    std::uint64_t disk_bytes = 0;  // all segments' on a disk
    std::size_t segments = 0;
    std::size_t in_use = 0;        // slots
    std::uint64_t made = 0;        // segments ever, spares included
    std::uint64_t waited_for = 0;  // by a Begin
  };
  Figures figures() const;
  /// Until no spare is being made; for tests and for figures.
  void WaitForSpares();

 private:
  enum class Place { kMemory, kAnywhere };
  /// Lets go of the lock while the kernel clears pages.
  Status Make(const SegmentShape& shape, Place place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status RoomInMemory(std::uint64_t bytes, const SegmentShape& shape)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseOnDisk(std::uint32_t segment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MakeRoom(std::uint64_t bytes, const SegmentShape& keep)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WantSpare(const SegmentShape& shape) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartSpareMaker() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeSpares();
  bool Inherited() const;

  const ProcessId self_;
  const NodeId node_;
  PoolOptions options_ ABSL_GUARDED_BY(mutex_);
  const int pid_;

  mutable Mutex mutex_;
  Slots slots_ ABSL_GUARDED_BY(mutex_);
  std::map<std::uint32_t, Segment> segments_ ABSL_GUARDED_BY(mutex_);
  std::map<std::uint32_t, SegmentShape> shapes_ ABSL_GUARDED_BY(mutex_);
  std::map<std::uint32_t, Instant> idle_since_ ABSL_GUARDED_BY(mutex_);
  std::vector<CloseSegment> closed_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t disk_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<std::uint32_t> on_disk_ ABSL_GUARDED_BY(mutex_);
  bool told_of_disk_ ABSL_GUARDED_BY(mutex_) = false;
  std::uint64_t made_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t waited_for_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, std::uint64_t> misses_ ABSL_GUARDED_BY(mutex_);  // by slot bytes

  CondVar spare_wanted_;
  CondVar spare_made_;
  std::optional<SegmentShape> spare_ ABSL_GUARDED_BY(mutex_);
  bool making_spare_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread spare_maker_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::store
