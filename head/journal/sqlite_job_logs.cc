#include "head/journal/sqlite_job_logs.h"

#include <sqlite3.h>

#include <utility>

#include "head/journal/blob_column.h"
#include "head/journal/sqlite_file.h"
#include "runtime/base/log.h"

namespace troupe::head {
namespace {

using JobLogStatement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;

constexpr char kJobLogTables[] =
    "CREATE TABLE IF NOT EXISTS logs(number INTEGER PRIMARY KEY AUTOINCREMENT, launch BLOB NOT "
    "NULL UNIQUE, epoch INTEGER NOT NULL, offset INTEGER NOT NULL, lived_us INTEGER NOT NULL, text "
    "BLOB NOT NULL)";

JobLogStatement PrepareJobLog(sqlite3* db, const char* sql) {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v2(db, sql, -1, &made, nullptr) != SQLITE_OK) made = nullptr;
  return {made, sqlite3_finalize};
}

sqlite3_int64 SignedOf(std::uint64_t number) { return static_cast<sqlite3_int64>(number); }

}  // namespace

SqliteJobLogs::SqliteJobLogs(std::string folder, Limits limits)
    : folder_(std::move(folder)), limits_(limits) {}

SqliteJobLogs::~SqliteJobLogs() { sqlite3_close(db_); }

StatusOr<std::unique_ptr<SqliteJobLogs>> SqliteJobLogs::Open(const std::string& folder) {
  return Open(folder, Limits());
}

StatusOr<std::unique_ptr<SqliteJobLogs>> SqliteJobLogs::Open(const std::string& folder,
                                                             Limits limits) {
  std::unique_ptr<SqliteJobLogs> logs(new SqliteJobLogs(folder, limits));
  Status opened = logs->OpenFile();
  if (opened.ok()) return logs;
  if (!IsDamaged(logs->db_)) return opened;
  const std::string path = folder + "/job_logs.db";
  Log(LogLevel::kError, "the ends of jobs' logs are damaged, and begun anew",
      {{"why", MessageOf(opened)}, {"kept_as", path + ".damaged"}});
  logs.reset(new SqliteJobLogs(folder, limits));
  TROUPE_TRY(SetAside(path));
  TROUPE_TRY(logs->OpenFile());
  return logs;
}

Status SqliteJobLogs::Error(const std::string& doing) const {
  return MakeError(ErrorCode::kInternal,
                   folder_ + "/job_logs.db: " + doing + ": " +
                       (db_ == nullptr ? "out of memory" : sqlite3_errmsg(db_)));
}

Status SqliteJobLogs::Execute(const std::string& sql) {
  if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return Error(sql);
  return absl::OkStatus();
}

Status SqliteJobLogs::OpenFile() {
  const std::string path = folder_ + "/job_logs.db";
  TROUPE_TRY(MakePrivateFile(path));
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(path.c_str(), &db_, kFlags, nullptr) != SQLITE_OK) return Error("open");
  TROUPE_TRY(Execute("PRAGMA locking_mode=EXCLUSIVE"));
  TROUPE_TRY(Execute("PRAGMA journal_mode=WAL"));
  TROUPE_TRY(Execute("PRAGMA synchronous=NORMAL"));
  TROUPE_TRY(Execute(kJobLogTables));
  return Count();
}

Status SqliteJobLogs::Count() {
  const JobLogStatement count =
      PrepareJobLog(db_, "SELECT count(*), coalesce(sum(length(text)), 0) FROM logs");
  if (!count || sqlite3_step(count.get()) != SQLITE_ROW) return Error("count");
  logs_ = static_cast<std::size_t>(sqlite3_column_int64(count.get(), 0));
  bytes_ = static_cast<std::uint64_t>(sqlite3_column_int64(count.get(), 1));
  return absl::OkStatus();
}

Status SqliteJobLogs::Write(const KeptLog& log) {
  TROUPE_TRY(Execute("BEGIN IMMEDIATE"));
  Status status = Insert(log);
  if (status.ok()) status = RemoveOldest();
  if (status.ok()) status = Execute("COMMIT");
  if (!status.ok() && sqlite3_get_autocommit(db_) == 0)
    sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
  if (!status.ok()) static_cast<void>(Count());
  return status;
}

Status SqliteJobLogs::Insert(const KeptLog& log) {
  const std::string launch = log.launch.Hex();
  TROUPE_ASSIGN(const std::optional<KeptLog> before, Read(log.launch, 0));
  const JobLogStatement insert = PrepareJobLog(
      db_,
      "INSERT OR REPLACE INTO logs(launch, epoch, offset, lived_us, text) VALUES(?, ?, ?, ?, ?)");
  if (!insert) return Error("prepare");
  sqlite3_bind_blob64(insert.get(), 1, launch.data(), launch.size(), SQLITE_STATIC);
  sqlite3_bind_int64(insert.get(), 2, SignedOf(log.epoch));
  sqlite3_bind_int64(insert.get(), 3, SignedOf(log.offset));
  sqlite3_bind_int64(insert.get(), 4, SignedOf(log.lived_us));
  sqlite3_bind_blob64(insert.get(), 5, log.text.data(), log.text.size(), SQLITE_STATIC);
  if (sqlite3_step(insert.get()) != SQLITE_DONE) return Error("write");
  logs_ += before ? 0 : 1;
  bytes_ += log.text.size() - (before ? before->text.size() : 0);
  return absl::OkStatus();
}

Status SqliteJobLogs::RemoveOldest() {
  while (logs_ > limits_.logs_max || bytes_ > limits_.bytes_max) {
    std::uint64_t removed = 0;
    {
      const JobLogStatement oldest =
          PrepareJobLog(db_, "SELECT length(text) FROM logs ORDER BY number LIMIT 1");
      if (!oldest || sqlite3_step(oldest.get()) != SQLITE_ROW) return Error("find the oldest");
      removed = static_cast<std::uint64_t>(sqlite3_column_int64(oldest.get(), 0));
    }
    TROUPE_TRY(Execute("DELETE FROM logs WHERE number = (SELECT min(number) FROM logs)"));
    --logs_;
    bytes_ -= removed;
  }
  return absl::OkStatus();
}

StatusOr<std::optional<KeptLog>> SqliteJobLogs::Read(const LaunchId& launch, std::uint64_t epoch) {
  const JobLogStatement select =
      PrepareJobLog(db_, "SELECT epoch, offset, lived_us, text FROM logs WHERE launch = ?");
  if (!select) return Error("prepare");
  const std::string key = launch.Hex();
  sqlite3_bind_blob64(select.get(), 1, key.data(), key.size(), SQLITE_STATIC);
  const int code = sqlite3_step(select.get());
  if (code == SQLITE_DONE) return std::optional<KeptLog>();
  if (code != SQLITE_ROW) return Error("read");
  KeptLog log;
  log.launch = launch;
  log.epoch = static_cast<std::uint64_t>(sqlite3_column_int64(select.get(), 0));
  log.offset = static_cast<std::uint64_t>(sqlite3_column_int64(select.get(), 1));
  log.lived_us = static_cast<std::uint64_t>(sqlite3_column_int64(select.get(), 2));
  log.text = std::string(BlobColumn(select.get(), 3));
  if (epoch != 0 && log.epoch != epoch) return std::optional<KeptLog>();
  return std::optional<KeptLog>(std::move(log));
}

Status SqliteJobLogs::Forget(std::uint64_t until_us) {
  TROUPE_TRY(Execute("DELETE FROM logs WHERE lived_us < " + std::to_string(until_us)));
  return Count();
}

}  // namespace troupe::head
