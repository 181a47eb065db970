#include "head/journal/sqlite_archive.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "head/journal/blob_column.h"
#include "head/journal/row_codec.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/unique_fd.h"

namespace troupe::head {
namespace {

using ArchiveStatement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;

constexpr char kTables[] =
    "CREATE TABLE IF NOT EXISTS ended(number INTEGER PRIMARY KEY AUTOINCREMENT, launch BLOB NOT "
    "NULL UNIQUE, submitted_us INTEGER NOT NULL, lived_us INTEGER NOT NULL, crc INTEGER NOT NULL, "
    "payload BLOB NOT NULL, attachment BLOB);"
    "CREATE INDEX IF NOT EXISTS ended_by_time ON ended(submitted_us, launch);"
    "CREATE INDEX IF NOT EXISTS ended_by_age ON ended(lived_us);"
    "CREATE TABLE IF NOT EXISTS returned(launch BLOB NOT NULL, position INTEGER NOT NULL, crc "
    "INTEGER NOT NULL, payload BLOB NOT NULL, attachment BLOB, PRIMARY KEY(launch, position)) "
    "WITHOUT ROWID";
constexpr std::size_t kRemovedAtOnce = 1000;

// In the order of ids, as the head sorts them.
std::string BytesOf(const Id128& id) {
  std::string bytes;
  for (const std::uint64_t half : {id.hi, id.lo}) {
    for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(half >> shift));
  }
  return bytes;
}

LaunchId IdOf(std::string_view bytes) {
  Id128 id;
  for (std::size_t i = 0; i < bytes.size() && i < 16; ++i) {
    std::uint64_t& half = i < 8 ? id.hi : id.lo;
    half = half << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return LaunchId(id);
}

void BindBlob(sqlite3_stmt* statement, int column, std::string_view bytes) {
  sqlite3_bind_blob64(statement, column, bytes.data(), bytes.size(), SQLITE_STATIC);
}

void BindNumber(sqlite3_stmt* statement, int column, std::uint64_t number) {
  sqlite3_bind_int64(statement, column, static_cast<sqlite3_int64>(number));
}

}  // namespace

StatusOr<std::unique_ptr<SqliteArchive>> SqliteArchive::Open(const SqliteOptions& options) {
  std::unique_ptr<SqliteArchive> archive(new SqliteArchive(options));
  Status opened = archive->OpenFile();
  if (opened.ok()) return archive;
  const int code = archive->db_ == nullptr ? SQLITE_OK : sqlite3_errcode(archive->db_) & 0xff;
  if (code != SQLITE_CORRUPT && code != SQLITE_NOTADB) return opened;
  Log(LogLevel::kError, "the archive of launches that are over is damaged, and begun anew",
      {{"why", MessageOf(opened)}, {"kept_as", options.folder + "/archive.db.damaged"}});
  archive.reset(new SqliteArchive(options));
  const std::string path = options.folder + "/archive.db";
  if (std::rename(path.c_str(), (path + ".damaged").c_str()) != 0)
    return MakeError(ErrorCode::kInternal, path + ": " + std::strerror(errno));
  unlink((path + "-wal").c_str());
  TROUPE_TRY(archive->OpenFile());
  return archive;
}

SqliteArchive::~SqliteArchive() { sqlite3_close(db_); }

Status SqliteArchive::Error(const std::string& doing) const {
  return MakeError(ErrorCode::kInternal,
                   options_.folder + "/archive.db: " + doing + ": " +
                       (db_ == nullptr ? "out of memory" : sqlite3_errmsg(db_)));
}

Status SqliteArchive::Execute(const std::string& sql) {
  if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return Error(sql);
  return absl::OkStatus();
}

Status SqliteArchive::OpenFile() {
  const std::string path = options_.folder + "/archive.db";
  {
    const UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.valid() || fchmod(file.get(), 0600) != 0)
      return MakeError(ErrorCode::kInternal, path + ": " + std::strerror(errno));
  }
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(path.c_str(), &db_, kFlags, nullptr) != SQLITE_OK) return Error("open");
  TROUPE_TRY(Execute("PRAGMA locking_mode=EXCLUSIVE"));
  TROUPE_TRY(Execute("PRAGMA journal_mode=WAL"));
  TROUPE_TRY(Execute(options_.disposable ? "PRAGMA synchronous=OFF" : "PRAGMA synchronous=FULL"));
  return Execute(kTables);
}

Status SqliteArchive::Write(const std::vector<EndedRecord>& records) {
  FaultAt("archive.write.before");
  TROUPE_TRY(Execute("BEGIN IMMEDIATE"));
  Status status = WriteAll(records);
  if (status.ok()) status = Execute("COMMIT");
  if (!status.ok() && sqlite3_get_autocommit(db_) == 0)
    sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
  FaultAt("archive.write.after");
  return status;
}

Status SqliteArchive::WriteAll(const std::vector<EndedRecord>& records) {
  for (const EndedRecord& record : records) TROUPE_TRY(WriteOne(record));
  const auto removed = Remove("number <= (SELECT max(number) FROM ended) - " +
                              std::to_string(kArchivedMax));
  return removed.status();
}

Status SqliteArchive::WriteOne(const EndedRecord& record) {
  const std::string launch = BytesOf(record.launch);
  for (std::size_t i = 0; i < record.events.size(); ++i) {
    const char* sql = i == 0
                          ? "INSERT OR REPLACE INTO ended(launch, crc, payload, attachment, "
                            "submitted_us, lived_us) VALUES(?, ?, ?, ?, ?, ?)"
                          : "INSERT OR REPLACE INTO returned(launch, crc, payload, attachment, "
                            "position) VALUES(?, ?, ?, ?, ?)";
    sqlite3_stmt* made = nullptr;
    if (sqlite3_prepare_v2(db_, sql, -1, &made, nullptr) != SQLITE_OK) return Error("prepare");
    const ArchiveStatement insert(made, sqlite3_finalize);
    const Row row{i, record.events[i]};
    TROUPE_ASSIGN(const RowBytes bytes, EncodeRow(row, options_.seal.get()));
    BindBlob(made, 1, launch);
    BindNumber(made, 2, bytes.crc);
    BindBlob(made, 3, bytes.payload);
    BindBlob(made, 4, row.event.attachment);
    BindNumber(made, 5, i == 0 ? record.submitted_us : i);
    if (i == 0) BindNumber(made, 6, record.lived_us);
    if (sqlite3_step(made) != SQLITE_DONE) return Error("write");
  }
  return absl::OkStatus();
}

StatusOr<std::vector<EndedRecord>> SqliteArchive::Read(const Recall& recall) {
  const bool page = recall.launch.IsNil();
  const bool from = page && !recall.before.IsNil();
  std::string sql = "SELECT launch, submitted_us, lived_us, crc, payload, attachment FROM ended ";
  sql += !page  ? "WHERE launch = ?1"
         : from ? "WHERE submitted_us >= ?2 AND (submitted_us, launch) < (?4, ?1) ORDER BY "
                  "submitted_us DESC, launch DESC LIMIT ?3"
                : "WHERE submitted_us >= ?2 ORDER BY submitted_us DESC, launch DESC LIMIT ?3";
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &made, nullptr) != SQLITE_OK)
    return Error("prepare");
  const ArchiveStatement select(made, sqlite3_finalize);
  const std::string launch = BytesOf(page ? recall.before : recall.launch);
  if (!page || from) BindBlob(made, 1, launch);
  if (page) BindNumber(made, 2, recall.since_us);
  if (page) BindNumber(made, 3, recall.limit);
  if (from) BindNumber(made, 4, recall.before_us);
  std::vector<EndedRecord> records;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(made)) == SQLITE_ROW) {
    EndedRecord record;
    record.launch = IdOf(BlobColumn(made, 0));
    record.submitted_us = static_cast<std::uint64_t>(sqlite3_column_int64(made, 1));
    record.lived_us = static_cast<std::uint64_t>(sqlite3_column_int64(made, 2));
    const auto crc = static_cast<std::uint32_t>(sqlite3_column_int64(made, 3));
    StatusOr<wire::Event> event =
        DecodeRow(0, BlobColumn(made, 4), BlobColumn(made, 5), crc, options_.seal.get());
    if (!event.ok()) {
      Log(LogLevel::kError, "a record in the archive is damaged",
          {{"launch", record.launch.Hex()}, {"why", MessageOf(event.status())}});
      continue;
    }
    record.events.push_back(*std::move(event));
    if (page) record.events.back().attachment.clear();
    if (!page) TROUPE_TRY(AddReturned(record));
    records.push_back(std::move(record));
  }
  if (code != SQLITE_DONE) return Error("read");
  return records;
}

Status SqliteArchive::AddReturned(EndedRecord& record) {
  constexpr const char* kSelect =
      "SELECT position, crc, payload, attachment FROM returned WHERE launch = ? ORDER BY position";
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v2(db_, kSelect, -1, &made, nullptr) != SQLITE_OK) return Error("prepare");
  const ArchiveStatement select(made, sqlite3_finalize);
  const std::string launch = BytesOf(record.launch);
  BindBlob(made, 1, launch);
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(made)) == SQLITE_ROW) {
    const auto position = static_cast<std::uint64_t>(sqlite3_column_int64(made, 0));
    const auto crc = static_cast<std::uint32_t>(sqlite3_column_int64(made, 1));
    TROUPE_ASSIGN(
        wire::Event event,
        DecodeRow(position, BlobColumn(made, 2), BlobColumn(made, 3), crc, options_.seal.get()));
    record.events.push_back(std::move(event));
  }
  return code == SQLITE_DONE ? absl::OkStatus() : Error("read");
}

StatusOr<std::size_t> SqliteArchive::Remove(const std::string& which) {
  const std::string chosen = "(SELECT launch FROM ended WHERE " + which +
                             " ORDER BY number LIMIT " + std::to_string(kRemovedAtOnce) + ")";
  TROUPE_TRY(Execute("DELETE FROM returned WHERE launch IN " + chosen));
  TROUPE_TRY(Execute("DELETE FROM ended WHERE launch IN " + chosen));
  return static_cast<std::size_t>(sqlite3_changes(db_));
}

StatusOr<std::size_t> SqliteArchive::Forget(std::uint64_t until_us) {
  return Remove("lived_us < " + std::to_string(until_us));
}

}  // namespace troupe::head
