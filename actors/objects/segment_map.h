// The segments of shared memory that are mapped in this process, its own and those of others: what
// values here lie in, which ones have been asked for, and which ones nobody has any more.
//
// A mapping lives while the map keeps it for the next value there (until its maker closes the
// segment or ends), while an object that lies in it is known (Pin), or while a view holds it.
//
// Whose view: one process. Takes no lock: the object store holds its mutex whenever it calls. Maps
// memory, and never waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/net/fork_guard.h"
#include "runtime/base/ids.h"
#include "runtime/base/status.h"
#include "runtime/store/core/object_id.h"
#include "runtime/store/reading.h"

namespace troupe::actors {

/// The process that made a segment, and its number there.
using SegmentKey = std::pair<ProcessId, std::uint32_t>;

inline SegmentKey SegmentOf(const store::Location& at) { return {at.slot.maker, at.slot.segment}; }

/// A segment that is mapped here.
struct ObjectMapping {
  GuardedFd descriptor;
  store::Reading reading;
  std::uint64_t bytes = 0;
};

class SegmentMap {
 public:
  explicit SegmentMap(const ProcessId& self) : self_(self) {}

  /// The mapping of a segment; nullptr: there is none.
  std::shared_ptr<ObjectMapping> Find(const SegmentKey& key) const;
  /// The descriptor of a segment has come: it is mapped, and nobody need be asked for it. An error:
  /// it cannot be; nothing changes, but that it is not awaited any more.
  Status Map(const SegmentKey& key, GuardedFd descriptor, std::uint64_t bytes);
  /// Keeps the memory of `id` mapped until Unpin.
  void Pin(const store::ObjectId& id, std::shared_ptr<ObjectMapping> mapping);
  void Unpin(const store::ObjectId& id) { pinned_.erase(id); }

  /// A segment is needed, and `from` is to be asked for it. False: somebody was asked already.
  bool Want(const SegmentKey& key, const ProcessId& from) {
    return wanted_.emplace(key, from).second;
  }
  bool WantedFrom(const SegmentKey& key, const ProcessId& from) const;
  /// All that `from` was asked for.
  std::vector<SegmentKey> AllWantedFrom(const ProcessId& from) const;
  /// Nobody has it (any more): it is awaited no longer.
  void Miss(const SegmentKey& key, std::string why);
  /// Why nobody has it; nullptr: that is not known of it.
  const std::string* WhyMissing(const SegmentKey& key) const;

  /// Retires a segment that its maker closed: only pins and views keep it mapped.
  void Retire(const SegmentKey& key);
  /// The maker cannot tell of its segments any more: Retire for all that are kept, which are
  /// returned.
  std::vector<SegmentKey> ForgetMaker(const ProcessId& maker);

  /// Segments of other processes that are mapped.
  std::size_t foreign() const;

 private:
  const ProcessId self_;
  std::map<SegmentKey, std::shared_ptr<ObjectMapping>> mapped_;  // waits for the next value there
  std::map<SegmentKey, std::weak_ptr<ObjectMapping>> known_;     // all that are mapped here
  std::map<store::ObjectId, std::shared_ptr<ObjectMapping>> pinned_;  // mappings of objects
  std::map<SegmentKey, ProcessId> wanted_;  // process asked for each
  std::map<SegmentKey, std::string> missing_;  // segments nobody has any more, and why
};

}  // namespace troupe::actors
