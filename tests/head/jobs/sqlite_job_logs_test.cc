// Method: logs are written to a database on disk and read from it, after it was opened again too.
#include "head/journal/sqlite_job_logs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace troupe::head {
namespace {

namespace fs = std::filesystem;

class JobLogs : public ::testing::Test {
 protected:
  JobLogs() : folder_(fs::temp_directory_path() / ("job-logs-" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    Open();
  }
  ~JobLogs() override {
    logs_.reset();
    fs::remove_all(folder_);
  }
  void Open() {
    logs_.reset();
    SqliteJobLogs::Limits limits;
    limits.logs_max = 3;
    limits.bytes_max = 100;
    auto opened = SqliteJobLogs::Open(folder_, limits);
    ASSERT_TRUE(opened.ok()) << opened.status();
    logs_ = *std::move(opened);
  }
  void Write(std::uint64_t number, const std::string& text, std::uint64_t epoch = 1) {
    ASSERT_TRUE(logs_->Write({LaunchId(7, number), epoch, 5, 1000 * number, text}).ok());
  }
  std::string TextOf(std::uint64_t number, std::uint64_t epoch = 0) {
    const auto found = logs_->Read(LaunchId(7, number), epoch);
    EXPECT_TRUE(found.ok()) << found.status();
    return *found ? (*found)->text : "none";
  }

  const std::string folder_;
  std::unique_ptr<SqliteJobLogs> logs_;
};

TEST_F(JobLogs, KL2_TheLogOfTheLatestAttemptIsThereAlsoAfterARestart) {
  Write(1, "first");
  Write(1, std::string("sec\0nd", 6), 2);
  Open();
  EXPECT_EQ(TextOf(1), std::string("sec\0nd", 6));
  EXPECT_EQ(TextOf(1, 2), std::string("sec\0nd", 6));
  EXPECT_EQ(TextOf(1, 1), "none");
  EXPECT_EQ((*logs_->Read(LaunchId(7, 1), 0))->offset, 5u);
}

TEST_F(JobLogs, TheOldestGoBeyondNumberAndBytes) {
  for (std::uint64_t number = 1; number <= 4; ++number) Write(number, "text");
  EXPECT_EQ(TextOf(1), "none");
  EXPECT_EQ(TextOf(2), "text");
  Open();
  Write(5, std::string(95, 'x'));
  EXPECT_EQ(TextOf(3), "none");
  EXPECT_EQ(TextOf(4), "text");
  Write(4, "text");
  Write(6, "y");
  EXPECT_EQ(TextOf(5), std::string(95, 'x')) << "a log that is replaced counts once";
}

TEST_F(JobLogs, WhatIsOlderThanTheRetentionGoes) {
  Write(1, "text");
  Write(2, "text");
  ASSERT_TRUE(logs_->Forget(2000).ok());
  EXPECT_EQ(TextOf(1), "none");
  EXPECT_EQ(TextOf(2), "text");
}

TEST_F(JobLogs, ADatabaseThatIsNoneIsPutAside) {
  Write(1, "text");
  logs_.reset();
  fs::remove(folder_ + "/job_logs.db-wal");
  std::ofstream(folder_ + "/job_logs.db", std::ios::trunc) << std::string(8192, 'x');
  Open();
  EXPECT_EQ(TextOf(1), "none");
  EXPECT_TRUE(fs::exists(folder_ + "/job_logs.db.damaged"));
}

}  // namespace
}  // namespace troupe::head
