#include <sqlite3.h>

#include <filesystem>
#include <system_error>

#include "head/journal/row_codec.h"
#include "head/journal/snapshot_table.h"
#include "head/journal/sqlite_journal.h"
#include "head/journal/state_lock.h"
#include "head/journal/wal_scan.h"

namespace troupe::head {
namespace {

// Copies that a second repair does not overwrite.
Status KeepCopy(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return absl::OkStatus();
  std::string copy = path + ".damaged";
  for (int i = 2; std::filesystem::exists(copy, error); ++i)
    copy = path + ".damaged" + std::to_string(i);
  std::filesystem::copy_file(path, copy, error);
  if (!error) return absl::OkStatus();
  return MakeError(ErrorCode::kInternal, "cannot copy " + path + ": " + error.message());
}

// The first row that is missing or wrong; 0: none. kVersionMismatch: one that a newer version wrote
// comes first.
StatusOr<std::uint64_t> FirstBadRow(sqlite3* db, std::uint64_t expected) {
  sqlite3_stmt* rows = nullptr;
  std::uint64_t bad = 0;
  Status newer;
  sqlite3_prepare_v2(db, "SELECT sequence, crc, payload, attachment FROM events ORDER BY sequence",
                     -1, &rows, nullptr);
  while (bad == 0 && rows != nullptr && sqlite3_step(rows) == SQLITE_ROW) {
    const auto view = [rows](int column) {
      return std::string(static_cast<const char*>(sqlite3_column_blob(rows, column)),
                         static_cast<std::size_t>(sqlite3_column_bytes(rows, column)));
    };
    const auto sequence = static_cast<std::uint64_t>(sqlite3_column_int64(rows, 0));
    const auto crc = static_cast<std::uint32_t>(sqlite3_column_int64(rows, 1));
    const std::string attachment = sqlite3_column_type(rows, 3) == SQLITE_NULL ? "" : view(3);
    const Status read = DecodeRow(sequence, view(2), attachment, crc).status();
    if (sequence != expected || !read.ok()) bad = expected;
    if (ErrorCodeOf(read) == ErrorCode::kVersionMismatch) newer = read;
    ++expected;
  }
  sqlite3_finalize(rows);
  if (!newer.ok()) return newer;
  return bad;
}

}  // namespace

StatusOr<std::string> CheckJournal(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder + "/journal.db", error)) {
    return MakeError(ErrorCode::kNotFound, "there is no journal in " + folder);
  }
  TROUPE_ASSIGN(const StateLock lock, StateLock::Take(folder));
  TROUPE_ASSIGN(const WalVerdict verdict, ScanWalFile(folder + "/journal.db-wal"));
  TROUPE_ASSIGN(const auto journal, SqliteJournal::Open(SqliteOptions{folder, false}));
  std::uint64_t events = 0;
  std::uint64_t last = 0;
  TROUPE_TRY(journal->Replay([&](const Row& row) {
    ++events;
    last = row.sequence;
  }));
  return "the journal is sound: " + std::to_string(events) + " events up to number " +
         std::to_string(last) + ", snapshot included; " + std::to_string(verdict.good_frames) +
         " frames in the log\n";
}

StatusOr<std::string> RepairJournal(const std::string& folder) {
  const std::string path = folder + "/journal.db";
  const std::string log = path + "-wal";
  std::error_code missing;
  if (!std::filesystem::exists(path, missing)) {
    return MakeError(ErrorCode::kNotFound, "there is no journal in " + folder);
  }
  TROUPE_ASSIGN(const StateLock lock, StateLock::Take(folder));
  TROUPE_TRY(CheckNotEmptied(folder));
  TROUPE_TRY(KeepCopy(path));
  TROUPE_TRY(KeepCopy(log));
  TROUPE_ASSIGN(const WalVerdict verdict, ScanWalFile(log));
  std::string done;
  if (!verdict.sound()) {
    std::error_code error;
    std::filesystem::resize_file(log, verdict.good_bytes, error);
    if (error) return MakeError(ErrorCode::kInternal, log + ": " + error.message());
    done = "the log was cut after frame " + std::to_string(verdict.good_frames) + ", " +
           std::to_string(verdict.stranded) + " good frames behind it are given up\n";
  }
  sqlite3* db = nullptr;
  if (sqlite3_open(path.c_str(), &db) != SQLITE_OK) {
    sqlite3_close(db);
    return MakeError(ErrorCode::kInternal, path + " cannot be opened");
  }
  sqlite3_exec(db, kSnapshotTables, nullptr, nullptr, nullptr);
  const StatusOr<std::uint64_t> snapshot = ReadSnapshot(db, [](const Row&) {}, nullptr);
  const StatusOr<std::uint64_t> bad_row =
      snapshot.ok() ? FirstBadRow(db, *snapshot + 1) : snapshot;
  if (ErrorCodeOf(bad_row.status()) == ErrorCode::kVersionMismatch) {
    sqlite3_close(db);
    return MakeError(ErrorCode::kVersionMismatch,
                     path + ": " + MessageOf(bad_row.status()) + kNewerHint);
  }
  if (!snapshot.ok()) {
    sqlite3_close(db);
    return MakeError(ErrorCode::kInvalid, path + ": " + MessageOf(snapshot.status()) +
                                              "\n  what it stood for is nowhere else: restore " +
                                              folder + " from a copy");
  }
  const std::uint64_t bad = *bad_row;
  int code = SQLITE_OK;
  if (bad != 0) {
    const std::string sql = "DELETE FROM events WHERE sequence >= " + std::to_string(bad);
    code = sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr);
    done += "events from " + std::to_string(bad) + " on are given up\n";
  }
  sqlite3_close(db);
  if (code != SQLITE_OK) return MakeError(ErrorCode::kInternal, path + " cannot be repaired");
  return done.empty() ? "the journal is sound: nothing was changed\n" : done;
}

}  // namespace troupe::head
