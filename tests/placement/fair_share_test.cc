// Method: windows and orders by hand. FS-1 and FS-2 of placement/fair_share.h.
#include "placement/fair_share.h"

#include <gtest/gtest.h>

namespace troupe::placement {
namespace {

constexpr std::uint64_t kHour = UsageWindow::kHourUs;

TEST(UsageWindow, FS1_TheDominantShareIsTheLargestPartOfWhatADayCouldGive) {
  const Resources total = Resources::Of({{"CPU", 64 * kUnit}, {"GPU", 8 * kUnit}});
  const Parts parts = PartsOf(Resources::Of({{"CPU", 16 * kUnit}, {"GPU", 4 * kUnit}}), total);
  UsageWindow window;
  window.Add(0, 12 * kHour, parts);
  EXPECT_DOUBLE_EQ(window.DominantShare(12 * kHour), 0.25);  // half of the GPUs, half of a day
  EXPECT_DOUBLE_EQ(window.DominantShare(12 * kHour, {{"CPU", 18 * 3600.0}}), 0.875);
  EXPECT_EQ(window.hours().size(), 12u);
}

TEST(UsageWindow, FS1_WhatIsOlderThanADayCountsNoMore) {
  UsageWindow window;
  window.Add(0, kHour, {{"GPU", 1.0}});
  EXPECT_DOUBLE_EQ(window.DominantShare(24 * kHour), 1.0 / 24);
  EXPECT_DOUBLE_EQ(window.DominantShare(24 * kHour + kHour / 4), 0.75 / 24);
  EXPECT_DOUBLE_EQ(window.DominantShare(25 * kHour), 0.0);
  window.Forget(24 * kHour);
  EXPECT_FALSE(window.empty());
  window.Forget(25 * kHour);
  EXPECT_TRUE(window.empty());
}

TEST(UsageWindow, FS1_WhatIsHeldOfALostNodeIsAllThereIs) {
  const Parts parts = PartsOf(Resources::Of({{"GPU", 4 * kUnit}, {"license", kUnit}}), Resources());
  EXPECT_EQ(parts, (Parts{{"GPU", 1.0}}));
}

// The orders of the requests, as they are picked.
std::vector<std::uint64_t> Picked(FairOrder& order,
                                  const std::vector<std::vector<std::uint64_t>>& lines) {
  std::vector<std::uint64_t> picked;
  while (const auto next = order.Pick()) picked.push_back(lines[next->line][next->item]);
  return picked;
}

TEST(FairOrder, FS1_TheOwnerWithTheSmallestShareGoesFirstOfEqualsTheEarliest) {
  const std::vector<std::vector<std::uint64_t>> lines = {{1, 2}, {5, 6}, {4, 7}};
  FairOrder order;
  order.AddLine(0.5, false, lines[0]);
  order.AddLine(0.1, false, lines[1]);
  order.AddLine(0.1, false, lines[2]);
  EXPECT_EQ(Picked(order, lines), (std::vector<std::uint64_t>{4, 5, 6, 7, 1, 2}));
}

TEST(FairOrder, FS1_WhoIsGrantedSomethingHoldsMoreAtOnce) {
  FairOrder order;
  order.AddLine(0, false, {1, 2, 3});
  order.AddLine(0, false, {4, 5, 6});
  std::vector<std::size_t> turns;
  std::vector<double> shares = {0, 0};
  while (const auto next = order.Pick()) {
    turns.push_back(next->line);
    order.SetShare(next->line, shares[next->line] += 0.1);
  }
  EXPECT_EQ(turns, (std::vector<std::size_t>{0, 1, 0, 1, 0, 1}));
}

TEST(FairOrder, FS2_WhoWasPassedOverGoesFirstWithOneRequest) {
  const std::vector<std::vector<std::uint64_t>> lines = {{8, 9}, {1, 2}};
  FairOrder order;
  order.AddLine(0.9, true, lines[0]);
  order.AddLine(0.1, false, lines[1]);
  EXPECT_EQ(Picked(order, lines), (std::vector<std::uint64_t>{8, 1, 2, 9}));
}

}  // namespace
}  // namespace troupe::placement
