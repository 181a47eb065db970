#include "head/journal/snapshot_table.h"

#include <sqlite3.h>

#include <memory>
#include <string>
#include <string_view>

#include "head/journal/blob_column.h"
#include "head/journal/row_codec.h"
#include "runtime/base/fault.h"
#include "runtime/net/digest.h"

namespace troupe::head {

const char kSnapshotTables[] =
    "CREATE TABLE IF NOT EXISTS snapshot(position INTEGER PRIMARY KEY, kind TEXT NOT NULL, crc "
    "INTEGER "
    "NOT NULL, payload BLOB NOT NULL, attachment BLOB);"
    "CREATE TABLE IF NOT EXISTS snapshot_of(sequence INTEGER NOT NULL, count INTEGER NOT NULL, crc "
    "INTEGER NOT NULL)";

namespace {

using Statement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;

Status Broken(sqlite3* db, const std::string& doing) {
  const std::string text = "snapshot: " + doing + ": " + sqlite3_errmsg(db);
  if ((sqlite3_errcode(db) & 0xff) == SQLITE_FULL)
    return absl::Status(absl::StatusCode::kOutOfRange, text);
  return MakeError(ErrorCode::kInternal, text);
}

StatusOr<Statement> Prepare(sqlite3* db, const char* sql) {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v2(db, sql, -1, &made, nullptr) != SQLITE_OK) return Broken(db, sql);
  return Statement(made, sqlite3_finalize);
}

Status Execute(sqlite3* db, const std::string& sql) {
  if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return Broken(db, sql);
  return absl::OkStatus();
}

std::uint32_t HeaderCrc(std::uint64_t sequence, std::uint64_t count) {
  return net::Crc32c(std::to_string(sequence) + " " + std::to_string(count));
}

Status InsertEvent(sqlite3* db, sqlite3_stmt* insert, std::uint64_t position,
                   const wire::Event& event, const EnvironmentSeal* seal) {
  Row row;
  row.sequence = position;
  row.event = event;
  TROUPE_ASSIGN(const RowBytes bytes, EncodeRow(row, seal));
  const std::string_view kind = wire::NameOf(event.body);
  sqlite3_bind_int64(insert, 1, static_cast<sqlite3_int64>(position));
  sqlite3_bind_text(insert, 2, kind.data(), static_cast<int>(kind.size()), SQLITE_STATIC);
  sqlite3_bind_int64(insert, 3, bytes.crc);
  sqlite3_bind_blob64(insert, 4, bytes.payload.data(), bytes.payload.size(), SQLITE_STATIC);
  sqlite3_bind_blob64(insert, 5, event.attachment.data(), event.attachment.size(), SQLITE_STATIC);
  const int code = sqlite3_step(insert);
  sqlite3_reset(insert);
  return code == SQLITE_DONE ? absl::OkStatus() : Broken(db, "insert");
}

}  // namespace

Status WriteSnapshot(sqlite3* db, std::uint64_t sequence, const std::vector<wire::Event>& events,
                     const EnvironmentSeal* seal) {
  TROUPE_TRY(Execute(
      db, "DELETE FROM snapshot; DELETE FROM snapshot_of; DELETE FROM events WHERE sequence <= " +
              std::to_string(sequence)));
  TROUPE_ASSIGN(
      const Statement insert,
      Prepare(
          db,
          "INSERT INTO snapshot(position, kind, crc, payload, attachment) VALUES(?, ?, ?, ?, ?)"));
  std::uint64_t position = 0;
  for (const wire::Event& event : events) {
    if (position == events.size() / 2) FaultAt("journal.snapshot.middle");
    TROUPE_TRY(InsertEvent(db, insert.get(), ++position, event, seal));
  }
  return Execute(db, "INSERT INTO snapshot_of VALUES(" + std::to_string(sequence) + ", " +
                         std::to_string(position) + ", " +
                         std::to_string(HeaderCrc(sequence, position)) + ")");
}

StatusOr<std::uint64_t> ReadSnapshot(sqlite3* db, const std::function<void(const Row&)>& visit,
                                     const EnvironmentSeal* seal) {
  TROUPE_ASSIGN(const Statement header,
                Prepare(db, "SELECT sequence, count, crc FROM snapshot_of"));
  int code = sqlite3_step(header.get());
  if (code == SQLITE_DONE) return 0;
  if (code != SQLITE_ROW) return Broken(db, "read");
  const auto sequence = static_cast<std::uint64_t>(sqlite3_column_int64(header.get(), 0));
  const auto count = static_cast<std::uint64_t>(sqlite3_column_int64(header.get(), 1));
  if (static_cast<std::uint32_t>(sqlite3_column_int64(header.get(), 2)) !=
      HeaderCrc(sequence, count)) {
    return MakeError(ErrorCode::kInvalid, "the snapshot's header does not match its checksum");
  }
  TROUPE_ASSIGN(
      const Statement rows,
      Prepare(db, "SELECT position, crc, payload, attachment FROM snapshot ORDER BY position"));
  std::uint64_t expected = 0;
  while ((code = sqlite3_step(rows.get())) == SQLITE_ROW) {
    const auto position = static_cast<std::uint64_t>(sqlite3_column_int64(rows.get(), 0));
    const auto crc = static_cast<std::uint32_t>(sqlite3_column_int64(rows.get(), 1));
    if (position != ++expected) break;
    StatusOr<wire::Event> event =
        DecodeRow(position, BlobColumn(rows.get(), 2), BlobColumn(rows.get(), 3), crc, seal);
    if (!event.ok())
      return MakeError(ErrorCodeOf(event.status()), "the snapshot's " + MessageOf(event.status()));
    visit({sequence, *std::move(event)});
  }
  if (code != SQLITE_DONE && code != SQLITE_ROW) return Broken(db, "read");
  if (code == SQLITE_ROW || expected != count) {
    return MakeError(ErrorCode::kInvalid,
                     "the snapshot has a gap: event " +
                         std::to_string(expected + (code == SQLITE_ROW ? 0 : 1)) + " of " +
                         std::to_string(count) + " is missing");
  }
  return sequence;
}

}  // namespace troupe::head
