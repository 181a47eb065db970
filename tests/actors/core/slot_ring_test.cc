// Method: random puts and takes, in order and not, against a std::map.
#include "actors/core/session/slot_ring.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <memory>
#include <vector>

#include "runtime/base/random.h"

namespace troupe::actors {
namespace {

TEST(SlotRing, SR1_SequencesHaveNoGap) {
  SlotRing<int*> ring;
  int item = 0;
  for (std::uint64_t i = 1; i <= 1000; ++i) EXPECT_EQ(ring.Put(&item), i);
}

TEST(SlotRing, SR2_TakesEachOnceInAnyOrder) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Prng random(seed);
    SlotRing<int*> ring;
    std::map<std::uint64_t, int*> model;
    std::vector<int> items(20000);
    for (int& item : items) {
      if (random.Chance(550)) model[ring.Put(&item)] = &item;
      if (model.empty() || !random.Chance(500)) continue;
      auto taken = model.begin();
      std::advance(taken, random.Below(std::min<std::size_t>(model.size(), 40)));
      const std::uint64_t sequence = taken->first;
      ASSERT_EQ(ring.Take(sequence), taken->second);
      ASSERT_EQ(ring.Take(sequence), nullptr);
      model.erase(taken);
      ASSERT_EQ(ring.size(), model.size());
    }
    std::vector<int*> seen;
    ring.ForEach([&](int* item) { seen.push_back(item); });
    auto next = model.begin();
    ASSERT_EQ(seen.size(), model.size());
    for (int* item : seen) ASSERT_EQ(item, (next++)->second) << "the oldest first";
    while (int* item = ring.TakeFront()) {
      ASSERT_EQ(item, model.begin()->second);
      model.erase(model.begin());
    }
    EXPECT_TRUE(model.empty());
  }
}

TEST(SlotRing, SR2_NeverGivenIsNull) {
  SlotRing<int*> ring;
  int item = 0;
  EXPECT_EQ(ring.Take(0), nullptr);
  EXPECT_EQ(ring.Take(1), nullptr);
  ring.Put(&item);
  EXPECT_EQ(ring.Take(0), nullptr);
  EXPECT_EQ(ring.Take(2), nullptr);
  EXPECT_EQ(ring.Take(~std::uint64_t{0}), nullptr);
}

TEST(SlotRing, SR2_AnOwningPointerIsMovedInAndOutAndEndsWithTheRing) {
  const auto value = std::make_shared<int>(7);
  {
    SlotRing<std::shared_ptr<int>> ring;
    for (int i = 0; i < 200; ++i) ring.Put(value);  // grows
    EXPECT_EQ(value.use_count(), 201);
    EXPECT_EQ(ring.Take(5), value);
    EXPECT_EQ(ring.Take(5), nullptr);
    EXPECT_EQ(value.use_count(), 200);
  }
  EXPECT_EQ(value.use_count(), 1);
}

TEST(SlotRing, SR3_SpanFollowsTheOldest) {
  SlotRing<int*> ring;
  int item = 0;
  for (int i = 0; i < 100000; ++i) ring.Take(ring.Put(&item));
  EXPECT_EQ(ring.span(), 0u);
  ring.Put(&item);
  for (int i = 0; i < 1000; ++i) ring.Take(ring.Put(&item));
  EXPECT_EQ(ring.span(), 1001u);
  ring.TakeFront();
  EXPECT_EQ(ring.span(), 0u);
}

}  // namespace
}  // namespace troupe::actors
