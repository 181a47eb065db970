// The journal of production: SQLite, WAL, synchronous=FULL; one row per event (decision 27).
//
// Opening scans the write-ahead log first and refuses a damaged one, naming the repair command. A
// ballast file is kept; when the disk is full it is given up, so that markers still commit, and
// low_space() says so; with room for it again, Reclaim() makes it anew. Without any room Append
// says so and changes nothing. Any other error of a commit is final. Table, for people with sqlite3
// (and the snapshot's, see snapshot_table.h):
//   events(sequence INTEGER PRIMARY KEY, kind TEXT, crc INTEGER, payload BLOB, attachment BLOB)
#pragma once

#include <memory>
#include <string>

#include "head/journal/environment_seal.h"
#include "head/journal/journal.h"

struct sqlite3;
struct sqlite3_stmt;

namespace troupe::head {

inline constexpr std::size_t kBallastBytes = 8u << 20;

struct SqliteOptions {
  std::string folder;       // journal.db, its log and the ballast lie here; exists
  bool disposable = false;  // an embedded cluster's: its state is thrown away, nothing is synced
  std::shared_ptr<const EnvironmentSeal> seal;  // none: variables are kept as they are
};

class SqliteJournal final : public Journal {
 public:
  /// Errors: kInvalid (damaged; how to repair), kInternal (the disk's own).
  static StatusOr<std::unique_ptr<SqliteJournal>> Open(const SqliteOptions& options);
  ~SqliteJournal() override;

  Status Append(const std::vector<Row>& rows) override;
  Status Snapshot(std::uint64_t sequence, const std::vector<wire::Event>& events) override;
  Status Replay(const std::function<void(const Row&)>& visit) override;
  bool low_space() const override { return low_space_; }
  void Reclaim() override;

 private:
  explicit SqliteJournal(SqliteOptions options) : options_(std::move(options)) {}
  Status OpenFile();
  Status MakeBallast();
  void Undo();
  Status Commit(const std::vector<Row>& rows, int* code);
  Status Execute(const char* sql);
  Status Error(const std::string& doing) const;

  const SqliteOptions options_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  bool low_space_ = false;
  bool broken_ = false;
};

/// Implements `troupe journal check`: reads everything that a start would, and gives nothing up;
/// the head must not run. Returns the findings, for people; kInvalid with the fault and the repair
/// command.
StatusOr<std::string> CheckJournal(const std::string& folder);

/// Implements `troupe journal repair`: cuts the log at its first bad frame and the rows at the
/// first gap or bad checksum, keeping copies of both files beside them. Returns what it did, for
/// people.
StatusOr<std::string> RepairJournal(const std::string& folder);

/// An error if the journal of this folder has been emptied: it has a header from its first opening
/// on, before its ballast is made.
Status CheckNotEmptied(const std::string& folder);

}  // namespace troupe::head
