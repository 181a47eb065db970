// Method: a maker and a taker of random items against each other, with what is said delayed at
// random.
#include "actors/core/call/item_window.h"

#include <gtest/gtest.h>

#include <deque>

#include "runtime/base/random.h"

namespace troupe::actors {
namespace {

TEST(ItemWindow, IW1_IW2_BoundedAndNeverBothWait) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Prng random(seed);
    const std::uint32_t ahead =
        seed % 3 == 0 ? 0 : 1 + static_cast<std::uint32_t>(random.Below(40));
    const std::size_t most = seed % 2 == 0 ? 100 : (16u << 20);
    ItemWindow window(ahead);
    TakenReport report(ahead);
    std::deque<std::size_t> under_way;
    std::deque<std::uint64_t> said;
    std::uint64_t taken = 0, taken_bytes = 0, kept = 0;
    for (int i = 0; i < 5000; ++i) {
      if (window.MaySend() && random.Chance(600)) {
        under_way.push_back(random.Below(most));
        kept += under_way.back();
        window.Sent(under_way.back());
      }
      ASSERT_LE(under_way.size(), ahead == 0 ? ItemWindow::kItemsMax : ahead);
      ASSERT_LT(kept, ItemWindow::kBytesMax + most);
      if (!under_way.empty() && random.Chance(500)) {
        ++taken;
        taken_bytes += under_way.front();
        kept -= under_way.front();
        under_way.pop_front();
        if (report.Due(taken, taken_bytes)) said.push_back(taken);
      }
      if (!said.empty() && random.Chance(300)) {
        window.Taken(said.front());
        if (random.Chance(200)) window.Taken(said.front() / 2);  // an old word, again
        said.pop_front();
      }
      ASSERT_TRUE(window.MaySend() || !under_way.empty() || !said.empty());
    }
  }
}

TEST(ItemWindow, AWordOnWhatWasNeverSentChangesNothing) {
  ItemWindow window(1);
  window.Taken(5);
  window.Sent(1);
  EXPECT_FALSE(window.MaySend());
  window.Taken(1);
  EXPECT_TRUE(window.MaySend());
}

}  // namespace
}  // namespace troupe::actors
