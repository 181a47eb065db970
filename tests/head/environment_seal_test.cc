// Method: events with variables are written to a journal and a snapshot with a key; the files are
// searched for them, and opened with that key, another one, and none.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "head/journal/row_codec.h"
#include "head/journal/sqlite_journal.h"

namespace troupe::head {
namespace {

namespace fs = std::filesystem;

constexpr char kValue[] = "wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY";
constexpr char kName[] = "AWS_SECRET_ACCESS_KEY";

wire::RuntimeEnvironment Environment() {
  wire::RuntimeEnvironment environment;
  environment.working_directory = "/w";
  for (const char* name : {kName, "EMPTY"}) {
    wire::EnvVar each;
    each.name = name;
    each.value = name == kName ? kValue : "";
    environment.env.push_back(each);
  }
  return environment;
}

std::vector<wire::Event> Events() {
  wire::LaunchSubmitted launch;
  launch.spec.environment = Environment();
  wire::ActorCreated actor;
  actor.spec.environment = Environment();
  wire::LaunchKept launch_kept;
  launch_kept.submitted = launch;
  wire::ActorKept actor_kept;
  actor_kept.created = actor;
  std::vector<wire::Event> events(4);
  events[0].body = launch;
  events[1].body = actor;
  events[2].body = launch_kept;
  events[3].body = actor_kept;
  return events;
}

std::shared_ptr<const EnvironmentSeal> Key(char byte) {
  return std::make_shared<EnvironmentSeal>(Secret(std::string(32, byte)));
}

class SealedJournal : public ::testing::Test {
 protected:
  SealedJournal() : folder_(fs::temp_directory_path() / ("sealed-" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~SealedJournal() override { fs::remove_all(folder_); }

  std::unique_ptr<SqliteJournal> Open(std::shared_ptr<const EnvironmentSeal> seal) {
    SqliteOptions options;
    options.folder = folder_;
    options.seal = std::move(seal);
    auto journal = SqliteJournal::Open(options);
    EXPECT_TRUE(journal.ok()) << journal.status();
    return journal.ok() ? *std::move(journal) : nullptr;
  }
  void Write(std::shared_ptr<const EnvironmentSeal> seal) {
    auto journal = Open(std::move(seal));
    std::vector<Row> rows;
    for (wire::Event& event : Events()) rows.push_back({rows.size() + 1, std::move(event)});
    ASSERT_TRUE(journal->Append(rows).ok());
    ASSERT_TRUE(journal->Snapshot(2, Events()).ok());
  }
  std::string AllFiles() {
    std::string all;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      std::ifstream file(entry.path(), std::ios::binary);
      all.append(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return all;
  }

  const fs::path folder_;
};

TEST_F(SealedJournal, HasNeitherNamesNorValuesOfVariablesInItsFiles) {
  Write(Key('k'));
  EXPECT_EQ(AllFiles().find(kValue), std::string::npos);
  EXPECT_EQ(AllFiles().find(kName), std::string::npos);
  std::vector<Row> rows;
  ASSERT_TRUE(Open(Key('k'))->Replay([&](const Row& row) { rows.push_back(row); }).ok());
  ASSERT_EQ(rows.size(), 6u);  // the snapshot's four, and two after it
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(rows[i].event.body, Events()[i].body) << i;
  EXPECT_EQ(rows[5].event.body, Events()[3].body);
}

TEST_F(SealedJournal, IsNotOpenedWithAnotherKeyAndSaysSo) {
  Write(Key('k'));
  const Status status = Open(Key('l'))->Replay([](const Row&) {});
  EXPECT_NE(MessageOf(status).find("ca.key"), std::string::npos) << status;
  EXPECT_EQ(MessageOf(status).find(kValue), std::string::npos);
}

TEST_F(SealedJournal, WhatAnEarlierVersionWroteIsReadAsItIs) {
  Write(nullptr);
  std::vector<Row> rows;
  ASSERT_TRUE(Open(Key('k'))->Replay([&](const Row& row) { rows.push_back(row); }).ok());
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[0].event.body, Events()[0].body);
}

TEST(EnvironmentSeal, RefusesWhatIsNoSealedText) {
  wire::LaunchSubmitted launch;
  wire::EnvVar all;
  all.sealed = true;
  for (const char* text : {"", "!!", "aaaaaaaa", "mfrggzdfmztwq2lknnwg23tpobyxe43uov3ho6dzpi"}) {
    all.value = text;
    launch.spec.environment.env = {all};
    wire::EventBody body = launch;
    EXPECT_FALSE(Key('k')->Unseal(body).ok()) << text;
  }
}

}  // namespace
}  // namespace troupe::head
