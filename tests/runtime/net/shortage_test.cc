// Method: rows of shortages and recoveries.
#include "runtime/net/shortage.h"

#include <gtest/gtest.h>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{Duration(1h)};

TEST(Shortage, SH1_SH2_SaidOncePerRow) {
  Shortage shortage;
  EXPECT_EQ(shortage.Over(kStart), std::nullopt);
  for (int row = 0; row < 3; ++row) {
    const Instant now = kStart + row * 1min;
    EXPECT_TRUE(shortage.Ran(now));
    EXPECT_FALSE(shortage.Ran(now + 50ms));
    EXPECT_FALSE(shortage.Ran(now + 100ms));
    EXPECT_TRUE(shortage.lasts());
    EXPECT_EQ(shortage.Over(now + 100ms + Shortage::kQuiet), 3u);
    EXPECT_EQ(shortage.Over(now + 100ms + Shortage::kQuiet), std::nullopt);
    EXPECT_FALSE(shortage.lasts());
  }
}

TEST(Shortage, SH3_OneThatComesAndGoesIsOneRow) {
  Shortage shortage;
  EXPECT_TRUE(shortage.Ran(kStart));
  Instant now = kStart;
  for (int i = 0; i < 100; ++i) {
    now += Shortage::kQuiet - 1ms;
    EXPECT_EQ(shortage.Over(now), std::nullopt);
    EXPECT_FALSE(shortage.Ran(now));
  }
  EXPECT_EQ(shortage.Over(now + Shortage::kQuiet), 101u);
}

}  // namespace
}  // namespace troupe::net
