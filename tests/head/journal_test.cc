// Method: a journal is written with SQLite, its files are damaged byte by byte as disks and crashes
// do, and it is opened again: what was acknowledged is there, or the head refuses and names the
// repair.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mount.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>

#include "head/journal/journal_thread.h"
#include "head/journal/memory_journal.h"
#include "head/journal/row_codec.h"
#include "head/journal/sqlite_journal.h"
#include "head/journal/state_lock.h"
#include "head/journal/wal_scan.h"

namespace troupe::head {
namespace {

namespace fs = std::filesystem;

Row MakeRow(std::uint64_t sequence) {
  Row row;
  row.sequence = sequence;
  wire::ValueWritten written;
  written.key = "key " + std::to_string(sequence);
  written.version = sequence;
  row.event.body = written;
  row.event.attachment = "value " + std::to_string(sequence);
  return row;
}

class JournalFiles : public ::testing::Test {
 protected:
  JournalFiles() : folder_(fs::temp_directory_path() / ("journal-" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~JournalFiles() override { fs::remove_all(folder_); }

  StatusOr<std::unique_ptr<SqliteJournal>> Open() {
    SqliteOptions options;
    options.folder = folder_;
    return SqliteJournal::Open(options);
  }
  // Commits one row each, then copies the files as a crash would leave them.
  void Write(std::uint64_t rows) {
    auto journal = Open();
    ASSERT_TRUE(journal.ok()) << journal.status();
    for (std::uint64_t i = 1; i <= rows; ++i) ASSERT_TRUE((*journal)->Append({MakeRow(i)}).ok());
    fs::copy_file(Db(), folder_ / "crashed-db");
    fs::copy_file(Log(), folder_ / "crashed-log");
    journal->reset();
    fs::rename(folder_ / "crashed-db", Db());
    fs::rename(folder_ / "crashed-log", Log());
  }
  std::string Read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void Overwrite(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  std::uint64_t Replayed(SqliteJournal& journal, Status* status = nullptr) {
    std::uint64_t count = 0;
    const Status result = journal.Replay([&count](const Row& row) {
      ++count;
      EXPECT_EQ(row.sequence, count);
      EXPECT_EQ(row.event, MakeRow(count).event);
    });
    if (status != nullptr) *status = result;
    return count;
  }
  void Sql(const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(Db().c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
  }
  fs::path Db() const { return folder_ / "journal.db"; }
  fs::path Log() const { return folder_ / "journal.db-wal"; }
  const fs::path folder_;
};

TEST_F(JournalFiles, S4_WhatWasCommittedIsReplayed) {
  Write(20);
  auto journal = Open();
  ASSERT_TRUE(journal.ok()) << journal.status();
  EXPECT_EQ(Replayed(**journal), 20u);
}

TEST_F(JournalFiles, ATornTailLosesOnlyWhatWasNotAcknowledged) {
  Write(5);
  const std::string log = Read(Log());
  Overwrite(Log(), log.substr(0, log.size() - 700));  // within the last commit's frame
  auto journal = Open();
  ASSERT_TRUE(journal.ok()) << journal.status();
  EXPECT_EQ(Replayed(**journal), 4u);
}

TEST_F(JournalFiles, AFlippedBitInTheMiddleOfTheLogRefusesToStart) {
  Write(10);
  std::string log = Read(Log());
  log[log.size() / 2] = static_cast<char>(log[log.size() / 2] ^ 4);
  Overwrite(Log(), log);
  const auto journal = Open();
  ASSERT_FALSE(journal.ok());
  EXPECT_NE(MessageOf(journal.status()).find("troupe journal repair"), std::string::npos);
  const auto repaired = RepairJournal(folder_);
  ASSERT_TRUE(repaired.ok()) << repaired.status();
  auto again = Open();
  ASSERT_TRUE(again.ok()) << again.status();
  Status status;
  const std::uint64_t kept = Replayed(**again, &status);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GT(kept, 0u);
  EXPECT_LT(kept, 10u);
  EXPECT_TRUE(fs::exists(Log().string() + ".damaged"));
}

TEST_F(JournalFiles, ATransactionThatACrashCutOffIsNoDamageOnceItIsHalfOverwritten) {
  Write(3);
  // with a small cache: pages go to the log before the commit that never comes
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(Db().c_str(), &db), SQLITE_OK);
  EXPECT_EQ(
      sqlite3_exec(
          db,
          "PRAGMA journal_mode=WAL; PRAGMA cache_size=2; BEGIN; WITH RECURSIVE n(i) AS (SELECT 100 "
          "UNION ALL SELECT i + 1 FROM n WHERE i < 200) INSERT INTO events SELECT i, 'x', 0, "
          "zeroblob(3000), NULL FROM n",
          nullptr, nullptr, nullptr),
      SQLITE_OK);
  fs::copy_file(Db(), folder_ / "crashed-db");
  fs::copy_file(Log(), folder_ / "crashed-log");
  sqlite3_close(db);
  fs::rename(folder_ / "crashed-db", Db());
  fs::rename(folder_ / "crashed-log", Log());
  auto journal = Open();
  ASSERT_TRUE(journal.ok()) << journal.status();
  ASSERT_TRUE((*journal)->Append({MakeRow(4)}).ok());
  const std::string log = Read(Log());
  EXPECT_LT(ScanWal(log).good_bytes + 20 * 4096, log.size())
      << "there is no stale tail to be confused by";
  EXPECT_TRUE(ScanWal(log).sound());
}

TEST_F(JournalFiles, AGapInTheSequenceRefusesToStart) {
  Write(6);
  Sql("DELETE FROM events WHERE sequence = 3");
  auto journal = Open();
  ASSERT_TRUE(journal.ok());
  Status status;
  EXPECT_EQ(Replayed(**journal, &status), 2u);
  EXPECT_NE(MessageOf(status).find("event 3 is missing"), std::string::npos);
  EXPECT_NE(MessageOf(status).find("journal repair"), std::string::npos);
}

TEST_F(JournalFiles, AChangedRowDoesNotMatchItsChecksum) {
  Write(3);
  Sql("UPDATE events SET attachment = CAST('another' AS BLOB) WHERE sequence = 2");
  auto journal = Open();
  ASSERT_TRUE(journal.ok());
  Status status;
  EXPECT_EQ(Replayed(**journal, &status), 1u);
  EXPECT_NE(MessageOf(status).find("checksum"), std::string::npos);
}

TEST_F(JournalFiles, TheChecksumCoversTheSequenceNumber) {
  const auto bytes = EncodeRow(MakeRow(7));
  ASSERT_TRUE(bytes.ok());
  const std::string attachment = MakeRow(7).event.attachment;
  EXPECT_TRUE(DecodeRow(7, bytes->payload, attachment, bytes->crc).ok());
  EXPECT_FALSE(DecodeRow(8, bytes->payload, attachment, bytes->crc).ok());
}

TEST_F(JournalFiles, EveryFlippedByteOfTheLogIsSeenOrHarmless) {
  Write(4);
  const std::string log = Read(Log());
  const std::uint64_t frames = ScanWal(log).good_frames;
  ASSERT_GT(frames, 3u);
  for (std::size_t at = 32; at < log.size(); at += 97) {
    std::string bad = log;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    const WalVerdict verdict = ScanWal(bad);
    EXPECT_LT(verdict.good_frames, frames);
    const bool last = at >= verdict.good_bytes && verdict.good_frames + 1 == frames;
    EXPECT_EQ(verdict.sound(), last) << at;
  }
}

std::vector<wire::Event> Events(std::uint64_t count) {
  std::vector<wire::Event> events;
  for (std::uint64_t i = 1; i <= count; ++i) events.push_back(MakeRow(i).event);
  return events;
}

TEST_F(JournalFiles, S4_ASnapshotStandsForAllRowsUpToIt) {
  {
    auto journal = Open();
    ASSERT_TRUE(journal.ok()) << journal.status();
    for (std::uint64_t i = 1; i <= 10; ++i) ASSERT_TRUE((*journal)->Append({MakeRow(i)}).ok());
    ASSERT_TRUE((*journal)->Snapshot(8, Events(3)).ok());
    ASSERT_TRUE((*journal)->Append({MakeRow(11)}).ok());
  }
  auto journal = Open();
  ASSERT_TRUE(journal.ok()) << journal.status();
  std::vector<std::uint64_t> sequences;
  std::vector<wire::Event> events;
  const Status status = (*journal)->Replay([&](const Row& row) {
    sequences.push_back(row.sequence);
    events.push_back(row.event);
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(sequences, (std::vector<std::uint64_t>{8, 8, 8, 9, 10, 11}));
  EXPECT_EQ(events[2], MakeRow(3).event);
  EXPECT_EQ(events[3], MakeRow(9).event);
  ASSERT_TRUE((*journal)->Snapshot(11, Events(2)).ok());
  sequences.clear();
  EXPECT_TRUE((*journal)->Replay([&](const Row& row) { sequences.push_back(row.sequence); }).ok());
  EXPECT_EQ(sequences, (std::vector<std::uint64_t>{11, 11}));
}

TEST_F(JournalFiles, ADamagedSnapshotRefusesToStart) {
  const char* const damages[] = {
      "DELETE FROM snapshot WHERE position = 2", "DELETE FROM snapshot WHERE position = 3",
      "UPDATE snapshot SET attachment = CAST('x' AS BLOB) WHERE position = 1",
      "UPDATE snapshot_of SET sequence = 4", "DELETE FROM events WHERE sequence = 6"};
  for (const char* damage : damages) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    {
      auto journal = Open();
      ASSERT_TRUE(journal.ok()) << journal.status();
      for (std::uint64_t i = 1; i <= 7; ++i) ASSERT_TRUE((*journal)->Append({MakeRow(i)}).ok());
      ASSERT_TRUE((*journal)->Snapshot(5, Events(3)).ok());
    }
    Sql(damage);
    auto journal = Open();
    ASSERT_TRUE(journal.ok());
    const Status status = (*journal)->Replay([](const Row&) {});
    EXPECT_NE(MessageOf(status).find("journal repair"), std::string::npos)
        << damage << ": " << status;
  }
}

// Whole events of unknown kind are no damage: repair gives none of them up.
TEST_F(JournalFiles, AnEventOfANewerVersionIsRefusedAndKept) {
  Write(5);
  const std::string payload = "no event";
  Sql("INSERT INTO events VALUES(6, 'Newer', " + std::to_string(RowCrc(6, payload, "")) +
      ", CAST('" + payload + "' AS BLOB), NULL)");
  auto journal = Open();
  ASSERT_TRUE(journal.ok()) << journal.status();
  const Status status = (*journal)->Replay([](const Row&) {});
  EXPECT_EQ(ErrorCodeOf(status), ErrorCode::kVersionMismatch) << status;
  EXPECT_NE(MessageOf(status).find("event 6 is whole"), std::string::npos) << status;
  EXPECT_NE(MessageOf(status).find("journal restore"), std::string::npos) << status;
  EXPECT_EQ(MessageOf(status).find("journal repair"), std::string::npos) << status;
  journal->reset();
  EXPECT_EQ(ErrorCodeOf(RepairJournal(folder_).status()), ErrorCode::kVersionMismatch);
  Sql("DELETE FROM events WHERE sequence = 6 AND kind = 'Newer'");
  EXPECT_EQ(Replayed(**Open()), 5u) << "the others are there";
}

// A file system of its own, small enough to fill; root only.
TEST_F(JournalFiles, AFullDiskKeepsWhatWasAcknowledgedAndGoesOnWithRoom) {
  if (mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=16m") != 0)
    GTEST_SKIP() << "cannot mount a small file system";
  {
    auto journal = Open();
    ASSERT_TRUE(journal.ok()) << journal.status();
    EXPECT_FALSE((*journal)->low_space());
    std::uint64_t next = 1;
    Row row = MakeRow(next);
    row.event.attachment = std::string(256 << 10, 'x');
    Status status;
    bool warned = false;
    for (; next < 1000; ++next) {
      row.sequence = next;
      status = (*journal)->Append({row});
      if (!status.ok()) break;
      warned = warned || (*journal)->low_space();
    }
    EXPECT_TRUE(IsDiskFull(status)) << status;
    EXPECT_TRUE(warned) << "the ballast let it go on for a while";
    EXPECT_FALSE(fs::exists(folder_ / "ballast"));
    (*journal)->Reclaim();
    EXPECT_TRUE((*journal)->low_space()) << "there is no room yet";
    ASSERT_EQ(mount("tmpfs", folder_.c_str(), "tmpfs", MS_REMOUNT, "size=64m"), 0);
    EXPECT_TRUE((*journal)->Append({row}).ok()) << "the same row again";
    (*journal)->Reclaim();
    EXPECT_FALSE((*journal)->low_space());
    EXPECT_TRUE(fs::exists(folder_ / "ballast"));
    std::uint64_t replayed = 0;
    EXPECT_TRUE((*journal)->Replay([&](const Row&) { ++replayed; }).ok());
    EXPECT_EQ(replayed, next);
  }
  EXPECT_EQ(umount(folder_.c_str()), 0);
}

TEST_F(JournalFiles, OneHeadPerFolder) {
  const auto first = StateLock::Take(folder_);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = StateLock::Take(folder_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(ErrorCodeOf(second.status()), ErrorCode::kAlreadyExists);
}

TEST(JournalThread, S5_TellsOfDurabilityInOrderAndBatches) {
  MemoryJournal journal;
  std::promise<void> done;
  std::uint64_t last = 0;
  {
    JournalThread thread(
        journal,
        [&](std::uint64_t sequence, bool) {
          EXPECT_GT(sequence, last);
          last = sequence;
          if (sequence == 100) done.set_value();
        },
        [](Status status) { ADD_FAILURE() << status; });
    for (std::uint64_t i = 1; i <= 100; ++i) thread.Submit({MakeRow(i)});
    done.get_future().wait();
  }
  EXPECT_EQ(journal.rows().size(), 100u);
}

TEST(JournalThread, S5_AFullDiskHoldsTheBatchBackUntilThereIsRoom) {
  MemoryJournal journal;
  journal.Break(absl::Status(absl::StatusCode::kOutOfRange, "no room"));
  std::promise<std::uint64_t> durable;
  std::promise<void> tried;
  journal.on_refused = [&tried] { tried.set_value(); };
  JournalThread thread(
      journal, [&](std::uint64_t sequence, bool) { durable.set_value(sequence); },
      [](Status status) { ADD_FAILURE() << status; });
  thread.Submit({MakeRow(1)});
  tried.get_future().wait();
  EXPECT_EQ(durable.get_future().get(), 1u);
}

TEST(JournalThread, AFailureIsFinal) {
  MemoryJournal journal;
  journal.Break(MakeError(ErrorCode::kInternal, "EIO"));
  std::promise<Status> failed;
  JournalThread thread(
      journal, [](std::uint64_t, bool) { ADD_FAILURE(); },
      [&failed](Status status) { failed.set_value(status); });
  thread.Submit({MakeRow(1)});
  EXPECT_FALSE(failed.get_future().get().ok());
  thread.Submit({MakeRow(2)});
  EXPECT_TRUE(journal.rows().empty());
}

}  // namespace
}  // namespace troupe::head
