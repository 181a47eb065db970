// Method: the pure retention with limits that are reached; the keeper over real files, both its
// loops driven by hand, so that every order of scan, start and end is chosen.
#include "worker/core/log_retention.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/random.h"
#include "runtime/os/directory.h"
#include "worker/log_keeper.h"

namespace troupe::worker {
namespace {

using Names = std::vector<std::string>;

TEST(LogRetention, WhatIsTooOldGoesTheOldestFirst) {
  LogRetention retention(RetentionLimits{.age_us = 100});
  retention.Put("b", {20, 1, 1});
  retention.Put("a", {10, 1, 1});
  retention.Put("c", {90, 1, 1});
  EXPECT_EQ(retention.Overdue(110), Names{});
  EXPECT_EQ(retention.Overdue(121), (Names{"a", "b"}));
  EXPECT_EQ(retention.kept(), 1u);
  EXPECT_EQ(retention.Overdue(5), Names{}) << "a clock that went back removes nothing";
}

TEST(LogRetention, OverSizeOrNumberTheOldestGoButNeverWhatEndedLast) {
  LogRetention retention(RetentionLimits{.age_us = 1000, .bytes = 10, .folders = 2});
  retention.Put("a", {1, 6, 1});
  retention.Put("b", {2, 5, 1});
  EXPECT_EQ(retention.Overdue(3), Names{"a"});
  EXPECT_EQ(retention.kept_bytes(), 5u);
  retention.Put("c", {3, 1, 1});
  retention.Put("d", {4, 1, 1});
  EXPECT_EQ(retention.Overdue(5), Names{"b"}) << "three folders where two are allowed";
  retention.Put("e", {5, 1000, 1});
  EXPECT_EQ(retention.Overdue(6), (Names{"c", "d"})) << "e alone is over the limit and stays";
  EXPECT_EQ(retention.Overdue(2000), Names{"e"});
}

TEST(LogRetention, WhatIsInUseNeverGoesAndCountsFromItsLastEnd) {
  LogRetention retention(RetentionLimits{.age_us = 10});
  retention.Put("a", {0, 1, 1});
  retention.Take("a");
  retention.Take("a");
  EXPECT_EQ(retention.Overdue(1000), Names{});
  retention.Put("a", {0, 1, 1});
  EXPECT_EQ(retention.Overdue(1000), Names{}) << "found on disk while in use";
  EXPECT_FALSE(retention.Release("a"));
  EXPECT_TRUE(retention.Release("a"));
  EXPECT_FALSE(retention.Release("a")) << "once";
  retention.Put("a", {1000, 1, 1});
  EXPECT_EQ(retention.Overdue(1010), Names{});
  EXPECT_EQ(retention.Overdue(1011), Names{"a"});
}

TEST(LogRetention, OverTheNumberOfFilesTheOldestGoAndPackedOnesAreNone) {
  LogRetention retention(RetentionLimits{.age_us = 1000, .files = 10});
  retention.Put("a", {1, 1, 6});
  retention.Put("b", {2, 1, 0});
  retention.Put("c", {3, 1, 6});
  EXPECT_EQ(retention.Overdue(4), Names{"a"});
  EXPECT_EQ(retention.kept_files(), 6u);
}

TEST(LogRetention, ManySmallOnesArePackedButForTheLatest) {
  LogRetention retention(RetentionLimits{.loose_most = 4, .loose_least = 1, .small_bytes = 10});
  for (const char* name : {"a", "b", "c"})
    retention.Put(name, {static_cast<std::uint64_t>(name[0]), 5, 3});
  retention.Put("large", {50, 11, 3});
  EXPECT_TRUE(retention.BeginPacking().empty()) << "three small ones, and the fourth is large";
  retention.Put("d", {200, 5, 3});
  const auto chosen = retention.BeginPacking();
  ASSERT_EQ(chosen.size(), 3u);
  EXPECT_EQ(chosen[0], std::pair(std::string("a"), std::uint64_t{'a'}));
  EXPECT_TRUE(retention.BeginPacking().empty()) << "one after the other";
  retention.Take("b");
  EXPECT_EQ(retention.EndPacking(true), (Names{"a", "c"})) << "somebody writes to b again";
  EXPECT_EQ(retention.kept_files(), 6u);
  retention.Put("e", {201, 5, 3});
  retention.Put("f", {202, 5, 3});
  retention.Put("g", {203, 5, 3});
  EXPECT_EQ(retention.BeginPacking().size(), 3u);
  EXPECT_TRUE(retention.EndPacking(false).empty());
  EXPECT_EQ(retention.BeginPacking().size(), 3u) << "tried again";
}

class WallClock final : public Clock {
 public:
  Instant Now() const override { return Instant(); }
  std::uint64_t WallTimeUs() const override { return now_us; }
  std::uint64_t now_us = 4'000'000'000ull * 1'000'000;
};

class Keeper : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/troupe-keeper-XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { os::RemoveTree(folder_); }

  static ProcessId Process(int n) {
    Prng random(static_cast<std::uint64_t>(n));
    return ProcessId::Random(random);
  }
  void Write(LogFiles& logs, const std::string& folder, std::size_t bytes) {
    const auto files = *logs.Create(LogPlace{folder, "rank-0"});
    const std::string text(bytes, 'x');
    ASSERT_EQ(write(files.out.get(), text.data(), text.size()), static_cast<ssize_t>(bytes));
  }
  bool Has(const std::string& name) const { return std::filesystem::exists(folder_ + "/" + name); }
  std::size_t Entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_),
                                                  std::filesystem::directory_iterator()));
  }
  static void RunAll(async::asio::io_context& loop) {
    loop.restart();
    loop.run();
  }

  std::string folder_;
  async::asio::io_context loop_;
  async::asio::io_context helper_;
  WallClock clock_;
};

TEST_F(Keeper, WhenALaunchHasEndedOlderOnesMakeRoom) {
  auto logs = *LogFiles::Open(folder_, 1u << 20);
  LogKeeper keeper(loop_.get_executor(), helper_.get_executor(), clock_, logs,
                   RetentionLimits{.bytes = 100});
  const LogPlace a{"aa/epoch-1", "rank-0"};
  const LogPlace again{"aa/epoch-2", "rank-0"};
  keeper.Began(Process(1), a);
  Write(logs, a.folder, 80);
  keeper.Began(Process(2), again);
  keeper.Ended(Process(1));
  EXPECT_EQ(keeper.retention().kept(), 0u) << "its second epoch writes there";
  keeper.Ended(Process(2));
  EXPECT_EQ(keeper.retention().kept_bytes(), 80u);
  keeper.Ended(Process(2));
  ++clock_.now_us;
  keeper.Began(Process(3), LogPlace{"bb", "actor"});
  Write(logs, "bb", 80);
  EXPECT_TRUE(Has("aa"));
  keeper.Ended(Process(3));
  EXPECT_FALSE(Has("aa")) << "out of sight at once";
  EXPECT_EQ(ErrorCodeOf(logs.Read("aa/epoch-1/rank-0.out", 0, 0).status()), ErrorCode::kNotFound);
  EXPECT_EQ(Entries(), 2u) << "bb, and what the helper is to remove";
  RunAll(helper_);
  EXPECT_EQ(Entries(), 1u);
  EXPECT_TRUE(Has("bb"));
}

TEST_F(Keeper, WhatEarlierLivesLeftIsFoundAndWhatTheyDetachedIsRemoved) {
  auto logs = *LogFiles::Open(folder_, 1u << 20);
  Write(logs, "cc/epoch-1", 10);
  Write(logs, "dd/epoch-1", 10);
  Write(logs, "ee/epoch-1", 10);
  ASSERT_TRUE(logs.Detach("ee").ok());
  EXPECT_EQ(Entries(), 3u);
  LogKeeper keeper(loop_.get_executor(), helper_.get_executor(), clock_, logs, RetentionLimits());
  keeper.Start();
  keeper.Began(Process(1), LogPlace{"dd/epoch-2", "rank-0"});
  RunAll(helper_);
  RunAll(loop_);  // the clock is decades ahead of these files
  RunAll(helper_);
  EXPECT_FALSE(Has("cc"));
  EXPECT_TRUE(Has("dd")) << "in use again";
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(Keeper, ATickRemovesWhatHasBecomeTooOld) {
  auto logs = *LogFiles::Open(folder_, 1u << 20);
  LogKeeper keeper(loop_.get_executor(), helper_.get_executor(), clock_, logs,
                   RetentionLimits{.age_us = 1000});
  keeper.Began(Process(1), LogPlace{"aa", "actor"});
  Write(logs, "aa", 1);
  keeper.Ended(Process(1));
  clock_.now_us += 1000;
  keeper.Tidy();
  EXPECT_TRUE(Has("aa"));
  clock_.now_us += 1;
  keeper.Tidy();
  EXPECT_FALSE(Has("aa"));
}

class Packs : public Keeper {
 protected:
  static constexpr RetentionLimits kLimits{.loose_most = 4, .loose_least = 1};

  void EndOne(LogKeeper& keeper, LogFiles& logs, const std::string& top) {
    const LogPlace place{top + "/epoch-2", "rank-0"};
    const ProcessId process = Process(++started_);
    keeper.Began(process, place);
    const auto files = *logs.Create(place);
    const std::string text = "output of " + top + "\n";
    ASSERT_EQ(write(files.out.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ++clock_.now_us;
    keeper.Ended(process);
  }
  void RunBoth() {
    for (int i = 0; i < 3; ++i) {
      RunAll(helper_);
      RunAll(loop_);
    }
  }
  static std::string Output(const LogFiles& logs, const std::string& top, std::uint64_t from = 0) {
    const auto piece = logs.Read(top + "/epoch-2/rank-0.out", from, 0);
    return piece.ok() ? piece->text : "none";
  }

  int started_ = 0;
};

TEST_F(Packs, ManyFoldersAreOneFileAndAreReadAsBefore) {
  auto logs = *LogFiles::Open(folder_, 1u << 20);
  LogKeeper keeper(loop_.get_executor(), helper_.get_executor(), clock_, logs, kLimits);
  keeper.Start();
  RunBoth();
  for (const char* top : {"a1", "a2", "a3", "a4"}) EndOne(keeper, logs, top);
  EXPECT_EQ(Output(logs, "a2"), "output of a2\n") << "while they are packed";
  RunBoth();
  EXPECT_EQ(Entries(), 2u) << "a pack, and what ended last";
  EXPECT_TRUE(Has("a4"));
  for (const char* top : {"a1", "a2", "a3", "a4"}) {
    EXPECT_EQ(Output(logs, top), "output of " + std::string(top) + "\n");
    EXPECT_EQ(Output(logs, top, 10), std::string(top) + "\n");
    EXPECT_EQ(Output(logs, top, 13), "");
    EXPECT_EQ(logs.NewestEpoch(top), 2u);
  }
  EXPECT_EQ(logs.Read("a1/epoch-2/rank-0.err", 0, 0)->text, "");
  EXPECT_EQ(ErrorCodeOf(logs.Read("a1/epoch-1/rank-0.out", 0, 0).status()), ErrorCode::kNotFound);

  auto again = *LogFiles::Open(folder_, 1u << 20);  // by the next life of the worker
  LogKeeper next(loop_.get_executor(), helper_.get_executor(), clock_, again,
                 RetentionLimits{.age_us = ~std::uint64_t{0}});
  next.Start();
  RunBoth();
  EXPECT_EQ(Output(again, "a1"), "output of a1\n");
  EXPECT_EQ(next.retention().kept(), 4u);
}

TEST_F(Packs, WhoWritesAgainGoesOnBehindWhatIsPacked) {
  auto logs = *LogFiles::Open(folder_, 1u << 20);
  LogKeeper keeper(loop_.get_executor(), helper_.get_executor(), clock_, logs, kLimits);
  keeper.Start();
  RunBoth();
  for (const char* top : {"a1", "a2", "a3", "a4"}) EndOne(keeper, logs, top);
  RunBoth();
  EndOne(keeper, logs, "a1");
  EXPECT_EQ(Output(logs, "a1"), "output of a1\noutput of a1\n");
}

TEST_F(Packs, APackGoesWithTheLastFolderInIt) {
  auto logs = *LogFiles::Open(folder_, 1u << 20);
  LogKeeper keeper(loop_.get_executor(), helper_.get_executor(), clock_, logs,
                   RetentionLimits{.folders = 5, .loose_most = 4, .loose_least = 1});
  keeper.Start();
  RunBoth();
  for (int i = 0; i < 40; ++i) {
    EndOne(keeper, logs, "b" + std::to_string(i));
    RunBoth();
    EXPECT_LE(Entries(), 10u);
  }
  EXPECT_EQ(Output(logs, "b0"), "none");
  EXPECT_EQ(Output(logs, "b39"), "output of b39\n");
  EXPECT_EQ(keeper.retention().kept(), 5u);
}

TEST_F(Packs, OneThatWasNotWrittenWholeIsNone) {
  auto logs = *LogFiles::Open(folder_, 1u << 20);
  std::ofstream(folder_ + "/.pack-1.unfinished") << "troupe logs 1\n5 0";
  std::ofstream(folder_ + "/.pack-2") << "something else";
  std::ofstream(folder_ + "/.pack-3") << "troupe logs 1\n5 0 7 8\naa/x.out123";
  LogKeeper keeper(loop_.get_executor(), helper_.get_executor(), clock_, logs, kLimits);
  keeper.Start();
  RunBoth();
  EXPECT_FALSE(Has(".pack-1.unfinished"));
  EXPECT_EQ(keeper.retention().kept(), 0u);
  EXPECT_EQ(ErrorCodeOf(logs.Read("aa/x.out", 0, 0).status()), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace troupe::worker
