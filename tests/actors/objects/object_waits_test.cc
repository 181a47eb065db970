// Slots, replies and completions that wait, by hand: who is found, who is taken out and when, and
// that what is only known is not kept.
#include "actors/objects/object_waits.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace troupe::actors {
namespace {

const ProcessId kHere(1, 1);
const ProcessId kFrom(2, 2);
const ProcessId kNobody(3, 3);

store::ObjectId Own(std::uint64_t number) { return {kHere, number}; }

class Nothing : public Completion {
 public:
  void Run() override {}
};

std::unique_ptr<Completion> Then() { return std::make_unique<Nothing>(); }

TEST(ObjectWaits, ASlotIsFoundWhileItLives) {
  ObjectWaits waits;
  EXPECT_FALSE(waits.SlotOf(Own(1)));
  AnswerRef slot(Answer::New(1));
  waits.Live(Own(1), slot.get());
  EXPECT_EQ(waits.SlotOf(Own(1)).get(), slot.get());
  EXPECT_TRUE(slot->Abandoned()) << "who is found adds a reference, and gives it back";
  waits.Ended(Own(1), slot.get());
  EXPECT_FALSE(waits.SlotOf(Own(1)));
}

TEST(ObjectWaits, TheEndOfAnEarlierSlotLeavesTheLatest) {
  ObjectWaits waits;
  AnswerRef first(Answer::New(1));
  AnswerRef second(Answer::New(1));
  waits.Live(Own(1), first.get());
  waits.Live(Own(1), second.get());
  waits.Ended(Own(1), first.get());
  EXPECT_EQ(waits.SlotOf(Own(1)).get(), second.get());
}

TEST(ObjectWaits, AllWhoWaitForAValueAreTakenOnce) {
  ObjectWaits waits;
  AnswerRef first(Answer::New(1));
  AnswerRef second(Answer::New(1));
  AnswerRef gone(Answer::New(1));
  for (const AnswerRef* slot : {&first, &second, &gone}) waits.AwaitValue(Own(1), slot->get());
  waits.Ended(Own(1), gone.get());
  EXPECT_TRUE(waits.ValueAwaited(Own(1)) && !waits.ValueAwaited(Own(2)));
  EXPECT_EQ(waits.TakeAwaiting(Own(1)).size(), 2u);
  EXPECT_FALSE(waits.ValueAwaited(Own(1)));
  EXPECT_TRUE(waits.TakeAwaiting(Own(1)).empty());
}

TEST(ObjectWaits, ObjectsAreFoundByTheMemoryTheyWaitFor) {
  ObjectWaits waits;
  waits.AwaitMemory({kFrom, 1}, Own(1));
  waits.AwaitMemory({kFrom, 1}, Own(2));
  waits.AwaitMemory({kFrom, 2}, Own(3));
  EXPECT_EQ(waits.TakeAwaitingMemory({kFrom, 1}), (std::vector<store::ObjectId>{Own(1), Own(2)}));
  EXPECT_TRUE(waits.TakeAwaitingMemory({kFrom, 1}).empty());
}

TEST(ObjectWaits, AReplyKeepsItsSlotUntilItIsTaken) {
  ObjectWaits waits;
  AnswerRef slot(Answer::New(1));
  waits.Arrive({kFrom, 1}, {AnswerRef::Another(slot.get()), {}, {}, {}});
  EXPECT_FALSE(slot->Abandoned());
  {
    const std::vector<ArrivingResult> arrived = waits.TakeArrived({kFrom, 1});
    ASSERT_EQ(arrived.size(), 1u);
    EXPECT_EQ(arrived[0].slot.get(), slot.get());
  }
  EXPECT_TRUE(slot->Abandoned());
  EXPECT_TRUE(waits.TakeArrived({kFrom, 1}).empty());
}

TEST(ObjectWaits, WhatFollowsArrivalsIsDueWhenAMakerHasNoneLeft) {
  ObjectWaits waits;
  std::unique_ptr<Completion> then = Then();
  EXPECT_FALSE(waits.AfterArrivals(&then));
  EXPECT_NE(then, nullptr) << "nothing is on its way";
  waits.Arrive({kFrom, 1}, {AnswerRef(Answer::New(1)), {}, {}, {}});
  waits.Arrive({kFrom, 2}, {AnswerRef(Answer::New(2)), {}, {}, {}});
  EXPECT_TRUE(waits.AfterArrivals(&then));
  EXPECT_EQ(then, nullptr);
  EXPECT_TRUE(waits.TakeAfterArrivals(kNobody).empty());
  EXPECT_EQ(waits.TakeArrived({kFrom, 1}).size(), 1u);
  EXPECT_TRUE(waits.TakeAfterArrivals(kFrom).empty()) << "another one is on its way";
  EXPECT_EQ(waits.TakeArrived({kFrom, 2}).size(), 1u);
  EXPECT_EQ(waits.TakeAfterArrivals(kFrom).size(), 1u);
  EXPECT_TRUE(waits.TakeAfterArrivals(kFrom).empty());
}

TEST(ObjectWaits, OneCompletionWaitsForTheEndOfAnObject) {
  ObjectWaits waits;
  EXPECT_EQ(waits.TakeForgotten(Own(1)), nullptr);
  std::unique_ptr<Completion> first = Then();
  std::unique_ptr<Completion> second = Then();
  waits.WhenForgotten(Own(1), &first);
  waits.WhenForgotten(Own(1), &second);
  EXPECT_EQ(first, nullptr);
  EXPECT_NE(second, nullptr) << "it is left to who brought it";
  EXPECT_NE(waits.TakeForgotten(Own(1)), nullptr);
  EXPECT_EQ(waits.TakeForgotten(Own(1)), nullptr);
}

}  // namespace
}  // namespace troupe::actors
