// Method: slots that are done in the orders that matter; which of them say that somebody waits.
#include "actors/caller/wait_progress.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "actors/core/call/call_frame.h"

namespace troupe::actors {
namespace {

class Slots {
 public:
  explicit Slots(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) slots_.push_back(Answer::New(i + 1));
  }
  ~Slots() {
    for (Answer* slot : slots_) slot->Release();
  }
  /// True: it had to wake somebody.
  bool Finish(std::size_t i) {
    slots_[i]->Fill(kFlagReply, "");
    return slots_[i]->Finish();
  }
  WaitProgress Until(std::size_t needed) { return {slots_.data(), slots_.size(), needed}; }
  bool AnybodyHangs() const {
    for (const Answer* slot : slots_) {
      if (slot->waiters != nullptr) return true;
    }
    return false;
  }

 private:
  std::vector<Answer*> slots_;
};

TEST(WaitProgress, WP2_WhoWaitsForAllIsWokenOnceWhenTheyComeInOrder) {
  Slots slots(5);
  WaitProgress all = slots.Until(5);
  Waiter waiter;
  EXPECT_TRUE(all.Loose());
  all.Hang(waiter);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_FALSE(slots.Finish(i)) << i;
    EXPECT_FALSE(all.Satisfied());
    EXPECT_FALSE(all.Loose());
  }
  EXPECT_TRUE(slots.Finish(4));
  EXPECT_TRUE(all.Satisfied());
  all.Unhang();
  EXPECT_FALSE(slots.AnybodyHangs());
}

TEST(WaitProgress, WP1_WokenTooEarlyItHangsOnAnotherOne) {
  Slots slots(3);
  WaitProgress all = slots.Until(3);
  Waiter waiter;
  all.Hang(waiter);
  EXPECT_TRUE(slots.Finish(2));
  EXPECT_FALSE(all.Satisfied());
  EXPECT_TRUE(all.Loose());
  all.Unhang();
  all.Hang(waiter);
  EXPECT_FALSE(slots.Finish(0));
  EXPECT_FALSE(all.Loose());
  EXPECT_TRUE(slots.Finish(1));
  EXPECT_TRUE(all.Satisfied());
  all.Unhang();
  EXPECT_FALSE(slots.AnybodyHangs());
}

TEST(WaitProgress, WP1_ItDoesNotHangOnWhatIsDone) {
  Slots slots(3);
  WaitProgress all = slots.Until(3);
  Waiter waiter;
  for (const std::size_t i : {2u, 1u}) EXPECT_FALSE(slots.Finish(i));
  all.Hang(waiter);
  EXPECT_TRUE(slots.Finish(0));
  EXPECT_TRUE(all.Satisfied());
  all.Unhang();

  Slots done(1);
  WaitProgress one = done.Until(1);
  EXPECT_FALSE(done.Finish(0));
  one.Hang(waiter);
  EXPECT_FALSE(done.AnybodyHangs());
  EXPECT_TRUE(one.Satisfied());
}

TEST(WaitProgress, WP1_WhoWaitsForSomeIsWokenByAnyOfThem) {
  Slots slots(3);
  WaitProgress two = slots.Until(2);
  Waiter waiter;
  two.Hang(waiter);
  EXPECT_FALSE(two.Loose());
  EXPECT_TRUE(slots.Finish(2));
  EXPECT_FALSE(two.Satisfied());
  EXPECT_TRUE(slots.Finish(0));
  EXPECT_TRUE(two.Satisfied());
  two.Unhang();
  EXPECT_FALSE(slots.AnybodyHangs());
}

TEST(WaitProgress, WP3_TheSameSlotTwice) {
  Answer* const slot = Answer::New(1);
  Answer* const twice[] = {slot, slot};
  WaitProgress all(twice, 2, 2);
  Waiter waiter;
  all.Hang(waiter);
  slot->Fill(kFlagReply, "");
  EXPECT_TRUE(slot->Finish());
  EXPECT_TRUE(all.Satisfied());
  all.Unhang();
  EXPECT_EQ(slot->waiters, nullptr);
  slot->Release();
}

}  // namespace
}  // namespace troupe::actors
