// Method: a clock moved by hand.
#include "runtime/base/seldom.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(Seldom, SE1_OnceInAWhileAndTheRestIsCounted) {
  Seldom line;
  const Instant start{std::chrono::hours(1)};
  EXPECT_EQ(line.Due(start), 0u);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(line.Due(start + std::chrono::milliseconds(i)), std::nullopt);
  EXPECT_EQ(line.Due(start + Seldom::kEvery), 1000u);
  EXPECT_EQ(line.Due(start + 3 * Seldom::kEvery), 0u);
}

}  // namespace
}  // namespace troupe
