// Method: slots that are answered by values and by errors before, while and after somebody watches
// for errors.
#include "actors/caller/failure_watch.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "actors/caller/wait_progress.h"

namespace troupe::actors {
namespace {

class Watched {
 public:
  explicit Watched(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) slots_.push_back(Answer::New(i + 1));
  }
  ~Watched() {
    for (Answer* slot : slots_) slot->Release();
  }
  Answer* operator[](std::size_t i) const { return slots_[i]; }
  /// True: somebody is to be told.
  bool Complete(std::size_t i, std::uint16_t flags = 0) {
    slots_[i]->Fill(kFlagReply | flags, "");
    return slots_[i]->Finish();
  }
  void HangAll(FailureWatch& failures) {
    failures.Reserve(slots_.size());
    for (Answer* slot : slots_) failures.Hang(slot);
  }
  static void UnhangAll(FailureWatch& failures) {
    AnswerList loose;
    while (failures.UnhangSome(1, &loose)) {
    }
  }

 private:
  std::vector<Answer*> slots_;
};

TEST(FailureWatch, FW2_AValueTellsNobody) {
  Watched slots(3);
  FailureWatch failures;
  slots.HangAll(failures);
  EXPECT_FALSE(slots.Complete(1));
  EXPECT_FALSE(failures.met());
  Watched::UnhangAll(failures);
  EXPECT_EQ(slots[1]->waiters, nullptr);
}

TEST(FailureWatch, FW1_AnErrorThatComesIsTold) {
  for (const std::uint16_t how : {kFlagTaskError, kFlagRuntimeError}) {
    Watched slots(3);
    FailureWatch failures;
    slots.HangAll(failures);
    EXPECT_TRUE(slots.Complete(2, how)) << "the reactor is to look who waits";
    ASSERT_NE(slots[2]->waiters, nullptr);
    EXPECT_EQ(slots[2]->waiters->failures, &failures);
    Waiter waiter;
    failures.Attach(&waiter);
    EXPECT_EQ(failures.Meet(), &waiter);
    EXPECT_TRUE(failures.met());
    Watched::UnhangAll(failures);
  }
}

TEST(FailureWatch, FW1_AnErrorThatWasThereIsMetAtOnce) {
  Watched slots(2);
  EXPECT_FALSE(slots.Complete(1, kFlagTaskError));
  FailureWatch failures;
  slots.HangAll(failures);
  EXPECT_TRUE(failures.met());
  EXPECT_EQ(slots[1]->waiters, nullptr);
  Watched::UnhangAll(failures);
}

TEST(FailureWatch, FW3_ItKeepsWhatItHangsOn) {
  Answer* const slot = Answer::New(1);
  FailureWatch failures;
  failures.Reserve(1);
  failures.Hang(slot);
  slot->Release();  // drops the Ref meanwhile
  slot->Fill(kFlagReply | kFlagTaskError, "");
  EXPECT_TRUE(slot->Finish());
  Watched::UnhangAll(failures);
}

TEST(WaitProgress, WP4_AnErrorEndsAWaitForAll) {
  Watched slots(2);
  FailureWatch failures;
  slots.HangAll(failures);
  Answer* const first[] = {slots[0]};
  WaitProgress one(first, 1, 1, &failures);
  Waiter waiter;
  one.Hang(waiter);
  EXPECT_FALSE(one.Satisfied());
  EXPECT_TRUE(slots.Complete(1, kFlagTaskError));
  EXPECT_EQ(failures.Meet(), &waiter);
  EXPECT_TRUE(one.Satisfied());
  one.Unhang();
  EXPECT_EQ(failures.Meet(), nullptr) << "nobody waits any more";
  Watched::UnhangAll(failures);
}

}  // namespace
}  // namespace troupe::actors
