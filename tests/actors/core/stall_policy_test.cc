// Method: the rule alone, fed with samples a second apart; names carry the rule's numbers.
#include "actors/core/policy/stall_policy.h"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

class Stall : public ::testing::Test {
 protected:
  /// A look one second after the one before.
  bool Look(bool unanswered, Duration since_answer) {
    now_ += 1s;
    return rule_.Lost(now_, {unanswered, since_answer});
  }
  Instant now_{1000s};
  StallPolicy rule_;
};

TEST_F(Stall, ST1_FiveSecondsWithoutAnAnswerAreALoss) {
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Look(true, Duration(1s) * (i + 1))) << i;
  EXPECT_TRUE(Look(true, 6s));
}

TEST_F(Stall, ST1_SilenceBeforeAnythingWasAwaitedDoesNotCount) {
  EXPECT_FALSE(Look(false, 600s));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Look(true, 601s + i * Duration(1s))) << i;
  EXPECT_TRUE(Look(true, 606s));
}

TEST_F(Stall, ST2_AnAnswerInBetweenBeginsTheCountAnew) {
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 4; ++i) EXPECT_FALSE(Look(true, Duration(1s) * (i + 1)));
    EXPECT_FALSE(Look(true, 100ms));  // always something on its way, now and then answered
  }
}

TEST_F(Stall, ST3_ABusyPeerThatAnswersProbesIsNeverLost) {
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(Look(i % 60 == 0, Duration(1s) * (i % 60)));
}

TEST_F(Stall, ST4_AnIdleConnectionIsNeverLost) {
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(Look(false, Duration(1s) * i));
}

}  // namespace
}  // namespace troupe::actors
