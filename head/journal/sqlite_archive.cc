#include "head/journal/sqlite_archive.h"

#include <absl/strings/ascii.h>
#include <sqlite3.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "head/journal/blob_column.h"
#include "head/journal/row_codec.h"
#include "head/journal/sqlite_file.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"

namespace troupe::head {
namespace {

constexpr char kTables[] =
    "CREATE TABLE IF NOT EXISTS ended(number INTEGER PRIMARY KEY AUTOINCREMENT, launch BLOB NOT "
    "NULL UNIQUE, submitted_us INTEGER NOT NULL, lived_us INTEGER NOT NULL, crc INTEGER NOT NULL, "
    "payload BLOB NOT NULL, attachment BLOB, request BLOB, job TEXT);"
    "CREATE TABLE IF NOT EXISTS returned(launch BLOB NOT NULL, position INTEGER NOT NULL, crc "
    "INTEGER NOT NULL, payload BLOB NOT NULL, attachment BLOB, PRIMARY KEY(launch, position)) "
    "WITHOUT ROWID";
// Columns missing in a table that an older head made.
constexpr char kNewColumns[] =
    "ALTER TABLE ended ADD COLUMN request BLOB; ALTER TABLE ended ADD COLUMN job TEXT";
constexpr char kIndexes[] =
    "CREATE INDEX IF NOT EXISTS ended_by_time ON ended(submitted_us, launch);"
    "CREATE INDEX IF NOT EXISTS ended_by_age ON ended(lived_us);"
    "CREATE INDEX IF NOT EXISTS ended_by_request ON ended(request) WHERE request IS NOT NULL;"
    "CREATE INDEX IF NOT EXISTS ended_by_job ON ended(job) WHERE job IS NOT NULL";
constexpr int kWaitMs = 2000;  // for a lock that another connection holds for a moment
constexpr std::size_t kRemovedAtOnce = 1000;
constexpr char kBehindAll[] = "\xff";  // sorts after whatever may follow in a text of UTF-8

// In the order of ids, as the head sorts them.
std::string BytesOf(const Id128& id) {
  std::string bytes;
  for (const std::uint64_t half : {id.hi, id.lo}) {
    for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(half >> shift));
  }
  return bytes;
}

// The first and the last id that begin so in hex; nullopt: none does.
std::optional<std::pair<LaunchId, LaunchId>> RangeOf(const std::string& prefix) {
  constexpr std::size_t kDigits = 32;
  if (prefix.size() > kDigits) return std::nullopt;
  const std::string text = absl::AsciiStrToLower(prefix);
  const std::string rest(kDigits - text.size(), '0');
  const std::optional<LaunchId> first = LaunchId::FromHex(text + rest);
  const std::optional<LaunchId> last = LaunchId::FromHex(text + std::string(rest.size(), 'f'));
  if (!first || !last) return std::nullopt;
  return std::pair(*first, *last);
}

Id128 IdOf(std::string_view bytes) {
  Id128 id;
  for (std::size_t i = 0; i < bytes.size() && i < 16; ++i) {
    std::uint64_t& half = i < 8 ? id.hi : id.lo;
    half = half << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return id;
}

void BindBlob(sqlite3_stmt* statement, int column, std::string_view bytes) {
  sqlite3_bind_blob64(statement, column, bytes.data(), bytes.size(), SQLITE_STATIC);
}

void BindText(sqlite3_stmt* statement, int column, std::string_view text) {
  sqlite3_bind_text64(statement, column, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

void BindNumber(sqlite3_stmt* statement, int column, std::uint64_t number) {
  sqlite3_bind_int64(statement, column, static_cast<sqlite3_int64>(number));
}

}  // namespace

struct SqliteArchive::Bound {
  explicit Bound(std::uint64_t value) : number(value) {}
  explicit Bound(const Id128& id) : bytes(BytesOf(id)), kind(kBlob) {}
  explicit Bound(std::string value) : bytes(std::move(value)), kind(kText) {}

  std::uint64_t number = 0;
  std::string bytes;
  enum { kNumber, kBlob, kText } kind = kNumber;
};

StatusOr<std::unique_ptr<SqliteArchive>> SqliteArchive::OpenReader(const SqliteOptions& options) {
  std::unique_ptr<SqliteArchive> archive(new SqliteArchive(options));
  TROUPE_TRY(archive->Connect(SQLITE_OPEN_READONLY));
  return archive;
}

StatusOr<std::unique_ptr<SqliteArchive>> SqliteArchive::Open(const SqliteOptions& options) {
  std::unique_ptr<SqliteArchive> archive(new SqliteArchive(options));
  Status opened = archive->OpenFile();
  if (opened.ok()) return archive;
  if (!IsDamaged(archive->db_)) return opened;
  Log(LogLevel::kError, "the archive of launches that are over is damaged, and begun anew",
      {{"why", MessageOf(opened)}, {"kept_as", options.folder + "/archive.db.damaged"}});
  archive.reset(new SqliteArchive(options));
  TROUPE_TRY(SetAside(options.folder + "/archive.db"));
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
  TROUPE_TRY(MakePrivateFile(options_.folder + "/archive.db"));
  TROUPE_TRY(Connect(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  TROUPE_TRY(Execute("PRAGMA journal_mode=WAL"));
  TROUPE_TRY(Execute(options_.disposable ? "PRAGMA synchronous=OFF" : "PRAGMA synchronous=FULL"));
  return MakeTables();
}

Status SqliteArchive::Connect(int flags) {
  const std::string path = options_.folder + "/archive.db";
  if (sqlite3_open_v2(path.c_str(), &db_, flags | SQLITE_OPEN_NOMUTEX, nullptr) != SQLITE_OK)
    return Error("open");
  sqlite3_busy_timeout(db_, kWaitMs);
  return absl::OkStatus();
}

Status SqliteArchive::MakeTables() {
  TROUPE_TRY(Execute(kTables));
  const bool is_new =
      sqlite3_table_column_metadata(db_, nullptr, "ended", "job", nullptr, nullptr, nullptr,
                                    nullptr, nullptr) == SQLITE_OK;
  if (!is_new) TROUPE_TRY(Execute(kNewColumns));
  return Execute(kIndexes);
}

StatusOr<SqliteArchive::Statement> SqliteArchive::Prepare(const std::string& sql) const {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &made, nullptr) != SQLITE_OK)
    return Error("prepare");
  return Statement(made, sqlite3_finalize);
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
  constexpr const char* kEnded =
      "INSERT OR REPLACE INTO ended(launch, crc, payload, attachment, submitted_us, lived_us, "
      "request, job) VALUES(?, ?, ?, ?, ?, ?, ?, ?)";
  constexpr const char* kReturned =
      "INSERT OR REPLACE INTO returned(launch, crc, payload, attachment, position) "
      "VALUES(?, ?, ?, ?, ?)";
  TROUPE_ASSIGN(const Statement ended, Prepare(kEnded));
  TROUPE_ASSIGN(const Statement returned, Prepare(kReturned));
  for (const EndedRecord& record : records)
    TROUPE_TRY(WriteOne(record, ended.get(), returned.get()));
  const auto removed = Remove("number <= (SELECT max(number) FROM ended) - " +
                              std::to_string(kArchivedMax));
  return removed.status();
}

Status SqliteArchive::WriteOne(const EndedRecord& record, sqlite3_stmt* ended,
                               sqlite3_stmt* returned) {
  const std::string launch = BytesOf(record.launch);
  const std::string request = record.request.IsNil() ? "" : BytesOf(record.request);
  for (std::size_t i = 0; i < record.events.size(); ++i) {
    sqlite3_stmt* insert = i == 0 ? ended : returned;
    sqlite3_clear_bindings(insert);
    const Row row{i, record.events[i]};
    TROUPE_ASSIGN(const RowBytes bytes, EncodeRow(row, options_.seal.get()));
    BindBlob(insert, 1, launch);
    BindNumber(insert, 2, bytes.crc);
    BindBlob(insert, 3, bytes.payload);
    BindBlob(insert, 4, row.event.attachment);
    BindNumber(insert, 5, i == 0 ? record.submitted_us : i);
    if (i == 0) BindNumber(insert, 6, record.lived_us);
    if (i == 0 && !request.empty()) BindBlob(insert, 7, request);
    if (i == 0 && !record.job.empty()) BindText(insert, 8, record.job);
    const int code = sqlite3_step(insert);
    sqlite3_reset(insert);
    if (code != SQLITE_DONE) return Error("write");
  }
  return absl::OkStatus();
}

StatusOr<std::vector<EndedRecord>> SqliteArchive::Read(const ArchiveQuery& query) {
  using By = ArchiveQuery::By;
  std::vector<EndedRecord> found;
  const Bound limit(query.limit);
  switch (query.by) {
    case By::kLaunch:
      TROUPE_TRY(Select("WHERE launch = ?", {Bound(query.launch)}, &found));
      for (EndedRecord& record : found) TROUPE_TRY(AddReturned(record));
      return found;
    case By::kRequest:
      TROUPE_TRY(Select("WHERE request = ? LIMIT ?", {Bound(query.request), limit}, &found));
      break;
    case By::kPrefix:
      if (const auto range = RangeOf(query.text)) {
        TROUPE_TRY(Select("WHERE launch BETWEEN ? AND ? ORDER BY launch LIMIT ?",
                          {Bound(range->first), Bound(range->second), limit}, &found));
      }
      TROUPE_TRY(Select("WHERE job >= ? AND job < ? ORDER BY job LIMIT ?",
                        {Bound(query.text), Bound(query.text + kBehindAll), limit}, &found));
      break;
    case By::kTime:
      TROUPE_TRY(query.before.IsNil()
                     ? Select("WHERE submitted_us >= ? ORDER BY submitted_us DESC, launch DESC "
                              "LIMIT ?",
                              {Bound(query.since_us), limit}, &found)
                     : Select("WHERE submitted_us >= ? AND (submitted_us, launch) < (?, ?) ORDER "
                              "BY submitted_us DESC, launch DESC LIMIT ?",
                              {Bound(query.since_us), Bound(query.before_us), Bound(query.before),
                               limit},
                              &found));
      break;
    case By::kId:
      TROUPE_TRY(Select("WHERE launch > ? ORDER BY launch LIMIT ?", {Bound(query.launch), limit},
                        &found));
      break;
    case By::kJob:
      TROUPE_TRY(
          Select("WHERE job > ? ORDER BY job LIMIT ?", {Bound(query.text), limit}, &found));
      break;
  }
  for (EndedRecord& record : found) {
    for (wire::Event& event : record.events) event.attachment.clear();
  }
  return found;
}

Status SqliteArchive::Select(const std::string& which, const std::vector<Bound>& values,
                             std::vector<EndedRecord>* records) {
  const std::string sql =
      "SELECT launch, submitted_us, lived_us, crc, payload, attachment FROM ended " + which;
  TROUPE_ASSIGN(const Statement select, Prepare(sql));
  sqlite3_stmt* const made = select.get();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int column = static_cast<int>(i) + 1;
    if (values[i].kind == Bound::kNumber) BindNumber(made, column, values[i].number);
    if (values[i].kind == Bound::kBlob) BindBlob(made, column, values[i].bytes);
    if (values[i].kind == Bound::kText) BindText(made, column, values[i].bytes);
  }
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(made)) == SQLITE_ROW) {
    EndedRecord record;
    record.launch = LaunchId(IdOf(BlobColumn(made, 0)));
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
    records->push_back(std::move(record));
  }
  return code == SQLITE_DONE ? absl::OkStatus() : Error("read");
}

Status SqliteArchive::AddReturned(EndedRecord& record) {
  constexpr const char* kSelect =
      "SELECT position, crc, payload, attachment FROM returned WHERE launch = ? ORDER BY position";
  TROUPE_ASSIGN(const Statement select, Prepare(kSelect));
  sqlite3_stmt* const made = select.get();
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

StatusOr<std::vector<RequestId>> SqliteArchive::LatestRequests(std::uint64_t within_us,
                                                               std::size_t most) {
  constexpr const char* kSelect =
      "SELECT request FROM ended WHERE lived_us > (SELECT max(lived_us) FROM ended) - ? AND "
      "request IS NOT NULL ORDER BY lived_us DESC LIMIT ?";
  TROUPE_ASSIGN(const Statement select, Prepare(kSelect));
  sqlite3_stmt* const made = select.get();
  BindNumber(made, 1, within_us);
  BindNumber(made, 2, most);
  std::vector<RequestId> found;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(made)) == SQLITE_ROW)
    found.push_back(RequestId(IdOf(BlobColumn(made, 0))));
  if (code != SQLITE_DONE) return Error("read");
  std::reverse(found.begin(), found.end());
  return found;
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
