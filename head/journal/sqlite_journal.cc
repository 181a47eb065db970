#include "head/journal/sqlite_journal.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "head/journal/blob_column.h"
#include "head/journal/fault_vfs.h"
#include "head/journal/row_codec.h"
#include "head/journal/snapshot_table.h"
#include "head/journal/sqlite_file.h"
#include "head/journal/wal_scan.h"
#include "runtime/base/fault.h"
#include "runtime/base/unique_fd.h"

namespace troupe::head {
namespace {

std::string RepairHint(const std::string& folder) {
  return "\n  events after that point would be lost without a word, so this head does not start"
         "\n  restore " +
         folder + " from a copy, or give those events up: troupe journal repair " + folder;
}

std::string HintFor(const Status& why, const std::string& folder) {
  return ErrorCodeOf(why) == ErrorCode::kVersionMismatch ? kNewerHint : RepairHint(folder);
}

std::string BeginAnewHint(const std::string& folder) {
  return "\n  restore " + folder +
         " from a copy, or remove journal.db and journal.db-wal: the cluster then begins without "
         "its launches, actors, names and tokens";
}

}  // namespace

Status CheckNotEmptied(const std::string& folder) {
  const std::string path = folder + "/journal.db";
  struct stat file{};
  struct stat ballast{};
  if (stat(path.c_str(), &file) != 0 || file.st_size > 0 ||
      stat((folder + "/ballast").c_str(), &ballast) != 0) {
    return absl::OkStatus();
  }
  return MakeError(ErrorCode::kInvalid, path + " is empty, and was not" + BeginAnewHint(folder));
}

StatusOr<std::unique_ptr<SqliteJournal>> SqliteJournal::Open(const SqliteOptions& options) {
  const std::string log = options.folder + "/journal.db-wal";
  TROUPE_ASSIGN(const WalVerdict verdict, ScanWalFile(log));
  if (!verdict.sound()) {
    return MakeError(ErrorCode::kInvalid, log + " is damaged: frame " +
                                              std::to_string(verdict.good_frames + 1) +
                                              " is bad, " + std::to_string(verdict.stranded) +
                                              " good ones follow" + RepairHint(options.folder));
  }
  std::unique_ptr<SqliteJournal> journal(new SqliteJournal(options));
  TROUPE_TRY(CheckNotEmptied(options.folder));
  const Status opened = journal->OpenFile();
  if (!opened.ok()) {
    if (!IsDamaged(journal->db_)) return opened;
    return MakeError(ErrorCode::kInvalid, MessageOf(opened) + BeginAnewHint(options.folder));
  }
  if (!options.disposable) {
    const Status ballast = journal->MakeBallast();
    journal->low_space_ = !ballast.ok();
  }
  return journal;
}

SqliteJournal::~SqliteJournal() {
  sqlite3_finalize(insert_);
  sqlite3_close(db_);
}

Status SqliteJournal::Error(const std::string& doing) const {
  return MakeError(ErrorCode::kInternal,
                   options_.folder + "/journal.db: " + doing + ": " +
                       (db_ == nullptr ? "out of memory" : sqlite3_errmsg(db_)));
}

Status SqliteJournal::Execute(const char* sql) {
  if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return Error(sql);
  return absl::OkStatus();
}

Status SqliteJournal::OpenFile() {
  const std::string path = options_.folder + "/journal.db";
  TROUPE_TRY(MakePrivateFile(path));
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(path.c_str(), &db_, kFlags, JournalVfs()) != SQLITE_OK) return Error("open");
  // Before the log is first touched: its index then stays in memory, and nobody else can write.
  TROUPE_TRY(Execute("PRAGMA locking_mode=EXCLUSIVE"));
  TROUPE_TRY(Execute("PRAGMA journal_mode=WAL"));
  TROUPE_TRY(Execute(options_.disposable ? "PRAGMA synchronous=OFF" : "PRAGMA synchronous=FULL"));
  TROUPE_TRY(Execute(kSnapshotTables));
  TROUPE_TRY(
      Execute("CREATE TABLE IF NOT EXISTS events(sequence INTEGER PRIMARY KEY, kind TEXT "
              "NOT NULL, crc INTEGER NOT NULL, payload BLOB NOT NULL, attachment BLOB)"));
  constexpr const char* kInsert =
      "INSERT INTO events(sequence, kind, crc, payload, attachment) VALUES(?, ?, ?, ?, ?)";
  if (sqlite3_prepare_v2(db_, kInsert, -1, &insert_, nullptr) != SQLITE_OK) return Error("prepare");
  return absl::OkStatus();
}

Status SqliteJournal::MakeBallast() {
  const std::string path = options_.folder + "/ballast";
  const UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const int error = file.valid() ? posix_fallocate(file.get(), 0, kBallastBytes) : errno;
  if (error == 0) return absl::OkStatus();
  unlink(path.c_str());
  return MakeError(ErrorCode::kInternal, path + ": " + std::strerror(error));
}

Status SqliteJournal::Commit(const std::vector<Row>& rows, int* code) {
  *code = SQLITE_OK;
  TROUPE_TRY(Execute("BEGIN IMMEDIATE"));
  for (const Row& row : rows) {
    TROUPE_ASSIGN(const RowBytes bytes, EncodeRow(row, options_.seal.get()));
    const std::string_view kind = wire::NameOf(row.event.body);
    const std::string& attachment = row.event.attachment;
    sqlite3_bind_int64(insert_, 1, static_cast<sqlite3_int64>(row.sequence));
    sqlite3_bind_text(insert_, 2, kind.data(), static_cast<int>(kind.size()), SQLITE_STATIC);
    sqlite3_bind_int64(insert_, 3, bytes.crc);
    sqlite3_bind_blob64(insert_, 4, bytes.payload.data(), bytes.payload.size(), SQLITE_STATIC);
    if (attachment.empty()) {
      sqlite3_bind_null(insert_, 5);
    } else {
      sqlite3_bind_blob64(insert_, 5, attachment.data(), attachment.size(), SQLITE_STATIC);
    }
    *code = sqlite3_step(insert_);
    sqlite3_reset(insert_);
    if (*code != SQLITE_DONE) return Error("append");
  }
  *code = sqlite3_exec(db_, "COMMIT", nullptr, nullptr, nullptr);
  return *code == SQLITE_OK ? absl::OkStatus() : Error("commit");
}

void SqliteJournal::Undo() {
  if (sqlite3_get_autocommit(db_) == 0) sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
}

Status SqliteJournal::Append(const std::vector<Row>& rows) {
  if (broken_) return MakeError(ErrorCode::kInternal, "the journal failed before and is closed");
  FaultAt("journal.append.before");
  int code = SQLITE_OK;
  Status status = Commit(rows, &code);
  if (!status.ok() && (code & 0xff) == SQLITE_FULL) {
    Undo();
    unlink((options_.folder + "/ballast").c_str());
    low_space_ = true;
    status = Commit(rows, &code);
  }
  if (!status.ok() && (code & 0xff) == SQLITE_FULL) {
    Undo();
    return absl::Status(absl::StatusCode::kOutOfRange, MessageOf(status));
  }
  broken_ = !status.ok();
  FaultAt("journal.append.after");
  return status;
}

void SqliteJournal::Reclaim() {
  struct statvfs room{};
  if (!low_space_ || statvfs(options_.folder.c_str(), &room) != 0) return;
  if (static_cast<std::uint64_t>(room.f_bavail) * room.f_frsize < 2 * kBallastBytes) return;
  low_space_ = !MakeBallast().ok();
}

Status SqliteJournal::Snapshot(std::uint64_t sequence, const std::vector<wire::Event>& events) {
  if (broken_) return MakeError(ErrorCode::kInternal, "the journal failed before and is closed");
  FaultAt("journal.snapshot.before");
  TROUPE_TRY(Execute("BEGIN IMMEDIATE"));
  Status status = WriteSnapshot(db_, sequence, events, options_.seal.get());
  if (status.ok()) status = Execute("COMMIT");
  if (!status.ok()) Undo();
  FaultAt("journal.snapshot.after");
  return status;
}

Status SqliteJournal::Replay(const std::function<void(const Row&)>& visit) {
  const StatusOr<std::uint64_t> before = ReadSnapshot(db_, visit, options_.seal.get());
  if (!before.ok()) {
    return MakeError(ErrorCodeOf(before.status()),
                     options_.folder + "/journal.db: " + MessageOf(before.status()) +
                         HintFor(before.status(), options_.folder));
  }
  sqlite3_stmt* raw = nullptr;
  constexpr const char* kSelect =
      "SELECT sequence, crc, payload, attachment FROM events ORDER BY sequence";
  if (sqlite3_prepare_v2(db_, kSelect, -1, &raw, nullptr) != SQLITE_OK) return Error("read");
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> rows(raw, sqlite3_finalize);
  std::uint64_t expected = *before + 1;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(raw)) == SQLITE_ROW) {
    const auto sequence = static_cast<std::uint64_t>(sqlite3_column_int64(raw, 0));
    if (sequence != expected) {
      return MakeError(ErrorCode::kInvalid, options_.folder + "/journal.db has a gap: event " +
                                                std::to_string(expected) + " is missing" +
                                                RepairHint(options_.folder));
    }
    const auto crc = static_cast<std::uint32_t>(sqlite3_column_int64(raw, 1));
    StatusOr<wire::Event> event =
        DecodeRow(sequence, BlobColumn(raw, 2), BlobColumn(raw, 3), crc, options_.seal.get());
    if (!event.ok()) {
      return MakeError(ErrorCodeOf(event.status()),
                       options_.folder + "/journal.db: " + MessageOf(event.status()) +
                           HintFor(event.status(), options_.folder));
    }
    visit({sequence, *std::move(event)});
    ++expected;
  }
  return code == SQLITE_DONE ? absl::OkStatus() : Error("read");
}

}  // namespace troupe::head
