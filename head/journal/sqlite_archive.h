// The archive: records of launches that are over, in a SQLite database of their own beside the
// journal, for the time of the retention. The head asks for them; a start reads none.
//
// View: one head. Blocking; each connection is used from one thread at a time, and readers do not
// wait for the writer, nor it for them (WAL). synchronous=FULL: a record that was written is not
// lost. One damaged record is left out and logged; a database that cannot be opened is put aside,
// under its name and `.damaged`, and a new one begins: what it held are particulars of what is
// over, and no reason for a head not to start. Tables, for people with sqlite3:
//   ended(number, launch BLOB, submitted_us, lived_us, crc, payload, attachment, request, job)
//   returned(launch BLOB, position, crc, payload, attachment)   what its ranks returned
// Records that an older head wrote have no `request` and no `job`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "head/core/machine/archive_records.h"
#include "head/journal/sqlite_journal.h"
#include "runtime/base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace troupe::head {

/// Records in the archive: the latest so many.
inline constexpr std::size_t kArchivedMax = 1'000'000;

class SqliteArchive {
 public:
  /// Opens or makes archive.db in the journal's folder.
  static StatusOr<std::unique_ptr<SqliteArchive>> Open(const SqliteOptions& options);
  /// Another connection to it, which only reads.
  static StatusOr<std::unique_ptr<SqliteArchive>> OpenReader(const SqliteOptions& options);
  ~SqliteArchive();
  SqliteArchive(const SqliteArchive&) = delete;
  SqliteArchive& operator=(const SqliteArchive&) = delete;

  /// Durable when it returns: all or none. Replaces what it has of the same launches, and removes
  /// the oldest of more than kArchivedMax.
  Status Write(const std::vector<EndedRecord>& records);
  StatusOr<std::vector<EndedRecord>> Read(const ArchiveQuery& query);
  /// Returns the submissions of the records that ended within `within_us` before the latest one,
  /// the oldest first.
  StatusOr<std::vector<RequestId>> LatestRequests(std::uint64_t within_us, std::size_t most);
  /// Removes those that ended before that lived time, a thousand at most; returns how many.
  StatusOr<std::size_t> Forget(std::uint64_t until_us);

 private:
  explicit SqliteArchive(SqliteOptions options) : options_(std::move(options)) {}
  Status OpenFile();
  Status Connect(int flags);
  Status MakeTables();
  Status WriteAll(const std::vector<EndedRecord>& records);
  Status WriteOne(const EndedRecord& record, sqlite3_stmt* ended, sqlite3_stmt* returned);
  StatusOr<std::size_t> Remove(const std::string& which);
  /// A value bound to the `?` of a statement: a number, a blob or a text.
  struct Bound;
  Status Select(const std::string& which, const std::vector<Bound>& values,
                std::vector<EndedRecord>* records);
  Status AddReturned(EndedRecord& record);
  using Statement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;
  StatusOr<Statement> Prepare(const std::string& sql) const;
  Status Execute(const std::string& sql);
  Status Error(const std::string& doing) const;

  const SqliteOptions options_;
  sqlite3* db_ = nullptr;
};

}  // namespace troupe::head
