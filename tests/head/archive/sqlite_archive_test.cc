// Method: records are written to an archive on disk and read from it, after it was opened again
// too; its file is damaged as disks do.
#include "head/journal/sqlite_archive.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace troupe::head {
namespace {

namespace fs = std::filesystem;

class ArchiveFile : public ::testing::Test {
 protected:
  ArchiveFile() : folder_(fs::temp_directory_path() / ("archive-" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    Open();
  }
  ~ArchiveFile() override {
    archive_.reset();
    fs::remove_all(folder_);
  }
  void Open() {
    archive_.reset();
    SqliteOptions options;
    options.folder = folder_;
    auto opened = SqliteArchive::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    archive_ = *std::move(opened);
  }
  // In no order of ids.
  static LaunchId Id(std::uint64_t number) {
    return LaunchId(number * 0x9E3779B97F4A7C15u, number);
  }
  static EndedRecord Record(std::uint64_t number) {
    EndedRecord record;
    record.launch = Id(number);
    record.submitted_us = 100 * number;
    record.lived_us = 1000 * number;
    wire::LaunchKept kept;
    kept.submitted.launch = record.launch;
    kept.submitted.spec.name = "launch " + std::to_string(number);
    wire::RankValueKept value;
    value.launch = record.launch;
    value.rank = 1;
    record.events.resize(2);
    record.events[0].body = kept;
    record.events[0].attachment = "of the driver";
    record.events[1].body = value;
    record.events[1].attachment = "of rank 1";
    return record;
  }
  std::vector<EndedRecord> Read(const ArchiveQuery& query) {
    auto records = archive_->Read(query);
    EXPECT_TRUE(records.ok()) << records.status();
    return records.ok() ? *records : std::vector<EndedRecord>();
  }
  std::vector<EndedRecord> ReadOne(std::uint64_t number) {
    ArchiveQuery query;
    query.by = ArchiveQuery::By::kLaunch;
    query.launch = Id(number);
    return Read(query);
  }
  std::vector<LaunchId> Page(std::size_t limit, std::uint64_t since_us = 0,
                             std::uint64_t before = 0) {
    ArchiveQuery query;
    query.limit = limit;
    query.since_us = since_us;
    if (before != 0) {
      query.before = Id(before);
      query.before_us = 100 * before;
    }
    return Ids(query);
  }
  std::vector<LaunchId> Ids(const ArchiveQuery& query) {
    std::vector<LaunchId> ids;
    for (const EndedRecord& record : Read(query)) ids.push_back(record.launch);
    return ids;
  }
  std::vector<LaunchId> Beginning(const std::string& text, std::size_t limit = 10) {
    ArchiveQuery query;
    query.by = ArchiveQuery::By::kPrefix;
    query.text = text;
    query.limit = limit;
    return Ids(query);
  }
  void Write(std::uint64_t first, std::uint64_t last) {
    std::vector<EndedRecord> records;
    for (std::uint64_t i = first; i <= last; ++i) records.push_back(Record(i));
    ASSERT_TRUE(archive_->Write(records).ok());
  }

  const fs::path folder_;
  std::unique_ptr<SqliteArchive> archive_;
};

TEST_F(ArchiveFile, ARecordIsReadAsItWasWritten) {
  Write(1, 5);
  Open();
  const auto found = ReadOne(3);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].events, Record(3).events);
  EXPECT_EQ(found[0].submitted_us, 300u);
  EXPECT_EQ(found[0].lived_us, 3000u);
  EXPECT_TRUE(ReadOne(6).empty());
  EXPECT_EQ(fs::status(folder_ / "archive.db").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(ArchiveFile, ARecordThatIsWrittenAgainTakesThePlaceOfTheFirst) {
  Write(1, 3);
  Write(2, 4);
  EXPECT_EQ(ReadOne(2).size(), 1u);
  EXPECT_EQ(Page(10).size(), 4u);
}

TEST_F(ArchiveFile, PagesAreTheLatestFirst) {
  Write(1, 10);
  EXPECT_EQ(Page(3), (std::vector<LaunchId>{Id(10), Id(9), Id(8)}));
  EXPECT_EQ(Page(2, 0, 8), (std::vector<LaunchId>{Id(7), Id(6)}));
  EXPECT_EQ(Page(10, 900), (std::vector<LaunchId>{Id(10), Id(9)}));
  EXPECT_EQ(Page(10, 900, 10), std::vector<LaunchId>{Id(9)});
  ArchiveQuery query;
  query.limit = 1;
  const auto page = Read(query);
  ASSERT_EQ(page.size(), 1u);
  EXPECT_EQ(page[0].events.size(), 1u) << "without what its ranks returned";
  EXPECT_EQ(page[0].events[0].attachment, "");
}

TEST_F(ArchiveFile, ALaunchIsFoundByItsSubmissionAndByHowItsIdOrItsJobsBegins) {
  std::vector<EndedRecord> records;
  for (std::uint64_t i = 1; i <= 50; ++i) records.push_back(Record(i));
  records[6].request = RequestId(70, 7);
  records[7].job = "train-1";
  records[8].job = "train-12";
  records[9].job = "trai%";
  ASSERT_TRUE(archive_->Write(records).ok());
  Open();
  ArchiveQuery query;
  query.by = ArchiveQuery::By::kRequest;
  query.limit = 2;
  query.request = RequestId(70, 7);
  EXPECT_EQ(Ids(query), std::vector<LaunchId>{Id(7)});
  query.request = RequestId(70, 8);
  EXPECT_TRUE(Ids(query).empty());
  const std::string hex = Id(9).Hex();
  EXPECT_EQ(Beginning(hex), std::vector<LaunchId>{Id(9)});
  EXPECT_EQ(Beginning(hex.substr(0, 12)), std::vector<LaunchId>{Id(9)});
  EXPECT_EQ(Beginning("train-"), (std::vector<LaunchId>{Id(8), Id(9)}));
  EXPECT_EQ(Beginning("train-12"), std::vector<LaunchId>{Id(9)});
  EXPECT_EQ(Beginning("trai%"), std::vector<LaunchId>{Id(10)});
  EXPECT_TRUE(Beginning("x").empty());
  EXPECT_TRUE(Beginning(std::string(33, '0')).empty());
  const std::vector<LaunchId> some = Beginning("", 20);
  EXPECT_EQ(some.size(), 20u + 3u);
  EXPECT_TRUE(std::is_sorted(some.begin(), some.begin() + 20));
}

TEST_F(ArchiveFile, PagesInTheOrderOfIdsAndOfJobsGoOnWhereTheLastOneEnded) {
  std::vector<EndedRecord> records;
  for (std::uint64_t i = 1; i <= 20; ++i) records.push_back(Record(i));
  for (const std::size_t i : {3, 11, 5}) records[i].job = "job-" + std::to_string(i);
  ASSERT_TRUE(archive_->Write(records).ok());
  std::vector<LaunchId> all;
  ArchiveQuery query;
  query.by = ArchiveQuery::By::kId;
  query.limit = 6;
  for (;;) {
    const std::vector<LaunchId> page = Ids(query);
    if (page.empty()) break;
    all.insert(all.end(), page.begin(), page.end());
    query.launch = page.back();
  }
  EXPECT_EQ(all.size(), 20u);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  query.by = ArchiveQuery::By::kJob;
  query.limit = 2;
  EXPECT_EQ(Ids(query), (std::vector<LaunchId>{Id(12), Id(4)}));
  query.text = "job-3";
  EXPECT_EQ(Ids(query), std::vector<LaunchId>{Id(6)});
}

TEST_F(ArchiveFile, AReaderSeesWhatWasWrittenSinceAndHoldsUpNobody) {
  Write(1, 5);
  SqliteOptions options;
  options.folder = folder_;
  auto reader = SqliteArchive::OpenReader(options);
  ASSERT_TRUE(reader.ok()) << reader.status();
  ArchiveQuery query;
  query.limit = 100;
  EXPECT_EQ((*reader)->Read(query)->size(), 5u);
  Write(6, 9);
  EXPECT_EQ((*reader)->Read(query)->size(), 9u);
  EXPECT_FALSE((*reader)->Write({Record(10)}).ok());
  EXPECT_EQ(*archive_->Forget(3000), 2u);
  EXPECT_EQ((*reader)->Read(query)->size(), 7u);
}

TEST_F(ArchiveFile, AnArchiveOfAnOlderHeadGetsWhatItLacks) {
  archive_.reset();
  fs::remove(folder_ / "archive.db");
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ / "archive.db").c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db,
                         "CREATE TABLE ended(number INTEGER PRIMARY KEY AUTOINCREMENT, launch BLOB "
                         "NOT NULL UNIQUE, submitted_us INTEGER NOT NULL, lived_us INTEGER NOT "
                         "NULL, crc INTEGER NOT NULL, payload BLOB NOT NULL, attachment BLOB)",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  Open();
  EndedRecord record = Record(1);
  record.job = "train";
  ASSERT_TRUE(archive_->Write({record}).ok());
  EXPECT_EQ(Beginning("tra"), std::vector<LaunchId>{Id(1)});
}

TEST_F(ArchiveFile, TheLatestSubmissionsAreReadAtAStart) {
  EXPECT_TRUE(archive_->LatestRequests(60, 10)->empty()) << "nothing is over";
  std::vector<EndedRecord> records;
  for (std::uint64_t number = 1; number <= 9; ++number) {
    records.push_back(Record(number));
    if (number != 8) records.back().request = RequestId(6, number);
  }
  ASSERT_TRUE(archive_->Write(records).ok());
  Open();
  const std::vector<RequestId> latest = {RequestId(6, 7), RequestId(6, 9)};
  EXPECT_EQ(*archive_->LatestRequests(2500, 10), latest) << "the oldest first";
  EXPECT_EQ(*archive_->LatestRequests(2500, 1), std::vector<RequestId>{RequestId(6, 9)});
}

TEST_F(ArchiveFile, OldRecordsAreRemovedInPieces) {
  Write(1, 1500);
  EXPECT_EQ(*archive_->Forget(1'400'000), 1000u);
  EXPECT_EQ(*archive_->Forget(1'400'000), 399u);
  EXPECT_EQ(*archive_->Forget(1'400'000), 0u);
  EXPECT_TRUE(ReadOne(1399).empty());
  EXPECT_EQ(ReadOne(1400).size(), 1u);
}

TEST_F(ArchiveFile, VariablesOfALaunchAreEncrypted) {
  SqliteOptions options;
  options.folder = folder_ / "sealed";
  options.seal = std::make_shared<EnvironmentSeal>(Secret(std::string(32, 'k')));
  fs::create_directories(options.folder);
  EndedRecord record = Record(1);
  wire::EnvVar variable;
  variable.name = "PASSWORD_NAME";
  variable.value = "password-value";
  auto& kept = wire::Get<wire::LaunchKept>(record.events[0].body);
  kept.submitted.spec.environment.env.push_back(variable);
  {
    auto archive = *SqliteArchive::Open(options);
    ASSERT_TRUE(archive->Write({record}).ok());
    ArchiveQuery query;
    query.by = ArchiveQuery::By::kLaunch;
    query.launch = record.launch;
    EXPECT_EQ(archive->Read(query)->at(0).events, record.events);
  }
  for (const auto& file : fs::directory_iterator(options.folder)) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    EXPECT_EQ(bytes.find("PASSWORD_NAME"), std::string::npos);
    EXPECT_EQ(bytes.find("password-value"), std::string::npos);
  }
}

TEST_F(ArchiveFile, OneThatIsNoDatabaseIsPutAsideAndBegunAnew) {
  Write(1, 5);
  archive_.reset();
  std::ofstream(folder_ / "archive.db", std::ios::binary | std::ios::trunc)
      << std::string(8192, 'x');
  Open();
  EXPECT_TRUE(Page(10).empty());
  EXPECT_TRUE(fs::exists(folder_ / "archive.db.damaged"));
  Write(6, 7);
  EXPECT_EQ(Page(10).size(), 2u);
}

}  // namespace
}  // namespace troupe::head
