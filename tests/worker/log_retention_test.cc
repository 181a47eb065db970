// Method: the pure retention with limits that are reached; the keeper over real files, both its
// loops driven by hand, so that every order of scan, start and end is chosen.
#include "worker/core/log_retention.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/random.h"
#include "runtime/os/directory.h"
#include "worker/log_keeper.h"

namespace troupe::worker {
namespace {

using Names = std::vector<std::string>;

TEST(LogRetention, WhatIsTooOldGoesTheOldestFirst) {
  LogRetention retention(RetentionLimits{.age_us = 100});
  retention.Put("b", 20, 1);
  retention.Put("a", 10, 1);
  retention.Put("c", 90, 1);
  EXPECT_EQ(retention.Overdue(110), Names{});
  EXPECT_EQ(retention.Overdue(121), (Names{"a", "b"}));
  EXPECT_EQ(retention.kept(), 1u);
  EXPECT_EQ(retention.Overdue(5), Names{}) << "a clock that went back removes nothing";
}

TEST(LogRetention, OverSizeOrNumberTheOldestGoButNeverWhatEndedLast) {
  LogRetention retention(RetentionLimits{.age_us = 1000, .bytes = 10, .folders = 2});
  retention.Put("a", 1, 6);
  retention.Put("b", 2, 5);
  EXPECT_EQ(retention.Overdue(3), Names{"a"});
  EXPECT_EQ(retention.kept_bytes(), 5u);
  retention.Put("c", 3, 1);
  retention.Put("d", 4, 1);
  EXPECT_EQ(retention.Overdue(5), Names{"b"}) << "three folders where two are allowed";
  retention.Put("e", 5, 1000);
  EXPECT_EQ(retention.Overdue(6), (Names{"c", "d"})) << "e alone is over the limit and stays";
  EXPECT_EQ(retention.Overdue(2000), Names{"e"});
}

TEST(LogRetention, WhatIsInUseNeverGoesAndCountsFromItsLastEnd) {
  LogRetention retention(RetentionLimits{.age_us = 10});
  retention.Put("a", 0, 1);
  retention.Take("a");
  retention.Take("a");
  EXPECT_EQ(retention.Overdue(1000), Names{});
  retention.Put("a", 0, 1);
  EXPECT_EQ(retention.Overdue(1000), Names{}) << "found on disk while in use";
  EXPECT_FALSE(retention.Release("a"));
  EXPECT_TRUE(retention.Release("a"));
  EXPECT_FALSE(retention.Release("a")) << "once";
  retention.Put("a", 1000, 1);
  EXPECT_EQ(retention.Overdue(1010), Names{});
  EXPECT_EQ(retention.Overdue(1011), Names{"a"});
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

}  // namespace
}  // namespace troupe::worker
