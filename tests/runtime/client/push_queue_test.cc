// The rules of runtime/client/push_queue.h by their numbers.
#include "runtime/client/push_queue.h"

#include <gtest/gtest.h>

#include <string>

namespace troupe::client {
namespace {

Push PushOf(std::size_t bytes, std::uint64_t id = 0) {
  Push push;
  push.id = id;
  push.attachment = std::string(bytes, 'x');
  return push;
}

TEST(PushQueue, PQ1_TheOldestComesFirst) {
  PushQueue queue;
  EXPECT_FALSE(queue.Take());
  for (std::uint64_t id = 1; id <= 3; ++id) EXPECT_TRUE(queue.Add(PushOf(10, id)));
  for (std::uint64_t id = 1; id <= 3; ++id) EXPECT_EQ(queue.Take()->id, id);
  EXPECT_TRUE(queue.empty());
}

TEST(PushQueue, PQ2_WhatPilesUpIsLimitedByWhatWaitsAndNotByWhatWasTaken) {
  PushQueue queue;
  constexpr std::size_t kHalf = kPushBytesMax / 2 - kPushOverhead;
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_TRUE(queue.Add(PushOf(kHalf)));
    EXPECT_TRUE(queue.Add(PushOf(kHalf))) << "exactly so much";
    EXPECT_FALSE(queue.Add(PushOf(0))) << "an empty one counts too";
    while (queue.Take()) {
    }
  }
}

}  // namespace
}  // namespace troupe::client
