// Deadlines of the reducer, ordered; a deadline that no longer matters is ignored when it fires.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <tuple>

#include "runtime/base/ids.h"
#include "runtime/base/time.h"

namespace troupe::head {

enum class TimerKind : std::uint8_t {
  kNode,           // a node's lease
  kOwner,          // a client that is away
  kGroupRetry,     // back-off after a refused reservation
  kLaunch,         // timeout of a launch
  kCancel,         // grace of a soft cancel
  kDriver,         // a driver's lease
  kWait,           // deadline of a WaitMarker
  kActorRecreate,  // silence long enough to re-create an actor
  kRetention,
  kArchive,  // records that could not be written to the archive
  kMoved,    // submissions whose launches are there, and that nobody repeats any more
  kEnding,  // grace of ranks that were told to stop
  kReform,  // ranks that have not come to the re-form of their group
  kHang,    // ranks that others wait for, and that are asked
  kTellReturned,  // the others are to hear of ranks that have returned
  kAwaited,       // ranks that have returned, that others wait for, and that are asked
};

class Timers {
 public:
  using Entry = std::tuple<Instant, TimerKind, Id128>;
  void Arm(Instant due, TimerKind kind, const Id128& id) { entries_.emplace(due, kind, id); }
  /// Takes one back that was armed for this: nothing happens if there is none.
  void Disarm(Instant due, TimerKind kind, const Id128& id) { entries_.erase({due, kind, id}); }
  /// The earliest entry not after `now`, removed.
  std::optional<Entry> Pop(Instant now) {
    if (entries_.empty() || std::get<0>(*entries_.begin()) > now) return std::nullopt;
    const Entry entry = *entries_.begin();
    entries_.erase(entries_.begin());
    return entry;
  }
  std::size_t size() const { return entries_.size(); }
  std::optional<Instant> Next() const {
    if (entries_.empty()) return std::nullopt;
    return std::get<0>(*entries_.begin());
  }

 private:
  std::set<Entry> entries_;
};

}  // namespace troupe::head
