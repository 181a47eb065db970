// A snapshot in the journal's database: table `snapshot` has its events, `snapshot_of` says how
// many there are and for which sequence number of `events` they stand.
//
// Both have checksums of their own. Blocking; the connection is the journal's.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "head/core/machine/io.h"
#include "head/journal/environment_seal.h"
#include "runtime/base/status.h"

struct sqlite3;

namespace troupe::head {

/// SQL that makes both tables.
extern const char kSnapshotTables[];

/// Replaces the snapshot and removes the rows it stands for, within the caller's transaction.
Status WriteSnapshot(sqlite3* db, std::uint64_t sequence, const std::vector<wire::Event>& events,
                     const EnvironmentSeal* seal);

/// Visits the snapshot's events; returns the sequence number they stand for, 0 when there is none.
/// kInvalid when it is not whole.
StatusOr<std::uint64_t> ReadSnapshot(sqlite3* db, const std::function<void(const Row&)>& visit,
                                     const EnvironmentSeal* seal);

}  // namespace troupe::head
