// Method: one slot through its life, small and large; then many threads racing to answer it.
#include "actors/slots/answer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace troupe::actors {
namespace {

TEST(Answer, KeepsSmallAndLargeAnswers) {
  for (const std::size_t size : {0u, 1u, 48u, 49u, 100000u}) {
    Answer* slot = Answer::New(size);
    EXPECT_FALSE(slot->done());
    const std::string bytes(size, 'b');
    EXPECT_TRUE(slot->Claim());
    EXPECT_FALSE(slot->Claim());
    slot->Fill(9, bytes);
    EXPECT_FALSE(slot->Finish());  // nobody watches
    EXPECT_TRUE(slot->done());
    EXPECT_EQ(slot->bytes(), bytes);
    EXPECT_EQ(slot->flags(), 9);
    EXPECT_EQ(slot->id(), size);
    slot->Release();
  }
}

TEST(Answer, FinishTellsWhetherSomebodyWatches) {
  Answer* slot = Answer::New(1);
  EXPECT_TRUE(slot->Watch());
  EXPECT_TRUE(slot->Finish());
  slot->Release();
  slot = Answer::New(2);
  EXPECT_FALSE(slot->Finish());
  EXPECT_FALSE(slot->Watch());
  slot->Release();
}

TEST(Answer, OneThatIsWaitedForIsNotAbandoned) {
  Answer* slot = Answer::New(1);
  EXPECT_TRUE(slot->Abandoned());
  slot->AddReference();
  EXPECT_FALSE(slot->Abandoned());
  slot->Release();
  EXPECT_TRUE(slot->Watch());  // by what holds no reference, and is to be told all the same
  EXPECT_FALSE(slot->Abandoned());
  slot->Release();
}

TEST(Answer, ManyThreadsOneAnswer) {
  for (int round = 0; round < 200; ++round) {
    Answer* slot = Answer::New(1);
    std::atomic<int> claimed{0};
    std::atomic<int> told{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      slot->AddReference();
      threads.emplace_back([&, slot] {
        if (slot->Claim()) {
          ++claimed;
          slot->Fill(0, std::string(200, 'x'));
          if (slot->Finish()) ++told;
        } else if (!slot->Watch()) {
          EXPECT_EQ(slot->bytes().size(), 200u);
        }
        slot->Release();
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(claimed, 1);
    EXPECT_TRUE(slot->done());
    slot->Release();
  }
}

}  // namespace
}  // namespace troupe::actors
