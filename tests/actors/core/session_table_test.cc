// Method: each rule of the table and of redialling at its edges.
#include "actors/core/session/session_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/core/session/redial_policy.h"

namespace troupe::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

using Table = SessionTable<int>;
constexpr Instant kStart{Duration(std::chrono::hours(1))};
std::size_t NoBytes(const int&) { return 0; }
SessionId Id(int n) { return SessionId(1, static_cast<std::uint64_t>(n)); }

TEST(SessionTable, SE1_FoundByWhoBeganItAlone) {
  Table table;
  ASSERT_TRUE(table.Begin(Id(1), "client a", 10));
  ASSERT_NE(table.Find(Id(1), "client a"), nullptr);
  EXPECT_EQ(*table.Find(Id(1), "client a"), 10);
  EXPECT_EQ(table.Find(Id(1), "client b"), nullptr);
  EXPECT_EQ(table.Find(Id(2), "client a"), nullptr);
}

TEST(SessionTable, SE3_AnIdIsInUseOnce) {
  Table table;
  ASSERT_TRUE(table.Begin(Id(1), "a", 10));
  EXPECT_FALSE(table.Begin(Id(1), "a", 11));
  EXPECT_FALSE(table.Begin(Id(1), "b", 11));
  table.End(Id(1));
  EXPECT_TRUE(table.Begin(Id(1), "b", 12));
}

TEST(SessionTable, SE2_DetachedOnesEndAfterTheirTime) {
  Table table;
  ASSERT_TRUE(table.Begin(Id(1), "a", 1));
  ASSERT_TRUE(table.Begin(Id(2), "a", 2));
  EXPECT_EQ(table.next_expiry(), std::nullopt);
  table.Detach(Id(1), kStart);
  table.Detach(Id(2), kStart + 10s);
  EXPECT_EQ(table.next_expiry(), kStart + Table::kKept);
  EXPECT_THAT(table.Expire(kStart + Table::kKept - 1ns, NoBytes), IsEmpty());
  table.Attach(Id(1));
  table.Detach(Id(1), kStart + 20s);
  EXPECT_THAT(table.Expire(kStart + Table::kKept + 10s, NoBytes), ElementsAre(2));
  EXPECT_EQ(table.Find(Id(2), "a"), nullptr);
  EXPECT_NE(table.Find(Id(1), "a"), nullptr);
  EXPECT_THAT(table.Expire(kStart + Table::kKept + 20s, NoBytes), ElementsAre(1));
  EXPECT_EQ(table.detached(), 0u);
  EXPECT_EQ(table.size(), 0u);
}

TEST(SessionTable, SE2_TheOldestGoWhenThereAreTooMany) {
  Table table;
  for (int i = 0; i <= static_cast<int>(Table::kDetachedMax); ++i) {
    ASSERT_TRUE(table.Begin(Id(i + 1), "a", i + 1));
    table.Detach(Id(i + 1), kStart + Duration(i));
  }
  EXPECT_THAT(table.Expire(kStart + 1s, NoBytes), ElementsAre(1));
  EXPECT_EQ(table.detached(), Table::kDetachedMax);
}

TEST(SessionTable, SE2_TheOldestGoWhenTheyHoldTooMuchButNeverTheLast) {
  Table table;
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(table.Begin(Id(i), "a", i));
    table.Detach(Id(i), kStart + Duration(i));
  }
  const auto half = [](const int&) { return Table::kDetachedBytesMax / 2; };
  EXPECT_THAT(table.Expire(kStart + 1s, half), ElementsAre(1));
  const auto huge = [](const int&) { return Table::kDetachedBytesMax * 2; };
  EXPECT_THAT(table.Expire(kStart + 1s, huge), ElementsAre(2));
  EXPECT_EQ(table.detached(), 1u);
}

TEST(RedialPolicy, RD1_CountsFromTheLossHoweverOftenItEnds) {
  RedialPolicy rule(5s, false);
  rule.Connected(kStart);
  rule.Welcomed();
  auto step = rule.Lost(kStart + 100s);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->pause, 0s);
  EXPECT_EQ(step->limit, 5s);
  rule.Connected(kStart + 102s);
  step = rule.Lost(kStart + 103s);
  ASSERT_TRUE(step);
  EXPECT_GT(step->pause, 0s);
  EXPECT_EQ(step->pause + step->limit, 2s);
  rule.Connected(kStart + 104s);
  EXPECT_FALSE(rule.Lost(kStart + 105s));
}

TEST(RedialPolicy, RD2_AWelcomeOrALastingConnectionBeginsAnew) {
  RedialPolicy rule(5s, false);
  ASSERT_TRUE(rule.Lost(kStart));
  rule.Connected(kStart + 1s);
  rule.Welcomed();
  auto step = rule.Lost(kStart + 50s);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->limit, 5s);
  rule.Connected(kStart + 51s);  // not welcomed: its actor is in a long method
  step = rule.Lost(kStart + 57s);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->limit, 5s);
}

TEST(RedialPolicy, RD3_PausesDoubleUpToTheirLimit) {
  RedialPolicy rule(1h, false);
  Duration before{};
  for (int i = 0; i < 20; ++i) {
    const auto step = rule.Lost(kStart + Duration(i));
    ASSERT_TRUE(step);
    EXPECT_TRUE(step->pause == before * 2 || i < 2 || step->pause == RedialPolicy::kPauseMax) << i;
    before = step->pause;
  }
  EXPECT_EQ(before, RedialPolicy::kPauseMax);
}

TEST(RedialPolicy, RD4_OnThisHostOnce) {
  RedialPolicy rule(5s, true);
  EXPECT_TRUE(rule.Lost(kStart));
  EXPECT_FALSE(rule.Lost(kStart + 10s));
  rule.Welcomed();
  EXPECT_TRUE(rule.Lost(kStart + 11s));
}

}  // namespace
}  // namespace troupe::actors
