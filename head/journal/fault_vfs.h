// SQLite's own file system with faults by name, for builds that have them (runtime/base/fault.h).
//
// Places: journal.write (any write to the journal's files), journal.sync.before and
// journal.sync.after (around each fsync). `full` is ENOSPC, `fail` is EIO. View: one process; made
// once, before the first database is opened.
#pragma once

namespace troupe::head {

/// The name of the file system to open databases with; null: SQLite's own.
const char* JournalVfs();

}  // namespace troupe::head
