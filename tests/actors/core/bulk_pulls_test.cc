// The rules of actors/core/remote/bulk_pulls.h by their numbers.
#include "actors/core/remote/bulk_pulls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <vector>

namespace troupe::actors {
namespace {

store::ObjectId Id(std::uint64_t number) { return {ProcessId(1, 1), number}; }

std::vector<BulkFrame> Asks(BulkPulls& pulls) {
  std::vector<BulkFrame> asks;
  while (const std::optional<BulkFrame> ask = pulls.NextAsk()) asks.push_back(*ask);
  return asks;
}

BulkFrame PartOf(const BulkFrame& ask, std::uint64_t total) {
  BulkFrame part = ask;
  part.word = BulkWord::kPart;
  part.total = total;
  part.bytes = std::min(ask.bytes, total - ask.offset);
  return part;
}

TEST(BulkPulls, OnePartTellsTheSizeThenManyAreUnderWay) {
  BulkPulls pulls;
  const BulkPulls::PullId pull = pulls.Begin(Id(1));
  std::vector<BulkFrame> asks = Asks(pulls);
  ASSERT_EQ(asks.size(), 1u);
  EXPECT_EQ(asks[0].offset, 0u);
  const StatusOr<BulkPulls::Part> part = pulls.Begins(PartOf(asks[0], 100 * kBulkPartBytes));
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->pull, pull);
  EXPECT_TRUE(part->first);
  EXPECT_FALSE(pulls.Came(part->bytes));
  asks = Asks(pulls);
  ASSERT_EQ(asks.size(), BulkPulls::kPartsMax);  // BP-1
  for (std::size_t i = 0; i < asks.size(); ++i) EXPECT_EQ(asks[i].offset, (i + 1) * kBulkPartBytes);
}

TEST(BulkPulls, ASmallValueTakesItsTurnAmongTheParts) {  // BP-3
  BulkPulls pulls;
  pulls.Begin(Id(1));
  BulkFrame first = Asks(pulls)[0];
  ASSERT_TRUE(pulls.Begins(PartOf(first, 1000 * kBulkPartBytes)).ok());
  pulls.Came(kBulkPartBytes);
  std::vector<BulkFrame> asks = Asks(pulls);
  pulls.Begin(Id(2));
  ASSERT_TRUE(pulls.Begins(PartOf(asks[0], 1000 * kBulkPartBytes)).ok());
  pulls.Came(kBulkPartBytes);
  asks = Asks(pulls);
  ASSERT_EQ(asks.size(), 1u);
  EXPECT_EQ(asks[0].id, Id(2));
}

TEST(BulkPulls, WhatWasNotAskedForBreaksTheRules) {  // BP-2
  BulkPulls pulls;
  BulkFrame part;
  part.id = Id(1);
  part.bytes = 10;
  part.total = 10;
  EXPECT_FALSE(pulls.Begins(part).ok());
  EXPECT_FALSE(pulls.Gone(part).ok());
  pulls.Begin(Id(1));
  const BulkFrame ask = Asks(pulls)[0];
  for (int way = 0; way < 4; ++way) {
    BulkFrame wrong = PartOf(ask, 3 * kBulkPartBytes);
    if (way == 0) wrong.id = Id(2);
    if (way == 1) wrong.offset = 1;
    if (way == 2) wrong.bytes = 10;  // neither all of it nor to the end
    if (way == 3) wrong.bytes = kBulkPartBytes + 1;
    EXPECT_FALSE(pulls.Begins(wrong).ok()) << way;
  }
  ASSERT_TRUE(pulls.Begins(PartOf(ask, 3 * kBulkPartBytes)).ok());
  EXPECT_FALSE(pulls.Begins(PartOf(ask, 3 * kBulkPartBytes)).ok());  // in the middle of another
  pulls.Came(kBulkPartBytes);
  const BulkFrame next = Asks(pulls)[0];
  EXPECT_FALSE(pulls.Begins(PartOf(next, 4 * kBulkPartBytes)).ok());  // another size
}

TEST(BulkPulls, AnotherLinkGoesOnFromTheLastByte) {  // BP-4
  BulkPulls pulls;
  pulls.Begin(Id(1));
  const std::uint64_t total = 3 * kBulkPartBytes;
  ASSERT_TRUE(pulls.Begins(PartOf(Asks(pulls)[0], total)).ok());
  pulls.Came(1000);
  pulls.Unlinked();
  EXPECT_EQ(pulls.coming(), 0u);
  EXPECT_FALSE(pulls.Awaits());
  EXPECT_EQ(Asks(pulls)[0].offset, 1000u);
}

TEST(BulkPulls, WhatWasGivenUpIsLetPass) {  // BP-5, BP-6
  BulkPulls pulls;
  const BulkPulls::PullId pull = pulls.Begin(Id(1));
  const BulkFrame ask = Asks(pulls)[0];
  pulls.Cancel(pull);
  EXPECT_TRUE(pulls.empty());
  const StatusOr<BulkPulls::Part> part = pulls.Begins(PartOf(ask, 5));
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->pull, 0u);
  EXPECT_FALSE(pulls.Came(5));
  const BulkPulls::PullId other = pulls.Begin(Id(2));
  BulkFrame gone = Asks(pulls)[0];
  EXPECT_EQ(*pulls.Gone(gone), other);
  EXPECT_TRUE(pulls.empty());
}

/// Values of many sizes, links that end anywhere, pulls that are given up: every byte of every
/// other pull is put in its place once, and each of them ends.
TEST(BulkPulls, WhateverHappensEachByteComesOnce) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    BulkPulls pulls;
    std::map<BulkPulls::PullId, std::uint64_t> come;
    std::map<BulkPulls::PullId, std::uint64_t> sizes;
    std::vector<std::uint64_t> size_of(20);
    for (std::uint64_t& size : size_of) size = 1 + random() % (6 * kBulkPartBytes);
    std::deque<BulkFrame> asked;
    std::size_t begun = 0;
    for (int step = 0; step < 3000 && (begun < size_of.size() || !pulls.empty()); ++step) {
      if (begun < size_of.size() && random() % 4 == 0) {
        const BulkPulls::PullId pull = pulls.Begin(Id(begun));
        sizes[pull] = size_of[begun++];
        come[pull] = 0;
      }
      for (const BulkFrame& ask : Asks(pulls)) asked.push_back(ask);
      ASSERT_LE(asked.size(), BulkPulls::kPartsMax);
      if (random() % 40 == 0) {
        pulls.Unlinked();
        asked.clear();
      }
      if (random() % 60 == 0 && !pulls.empty()) {
        const BulkPulls::PullId pull = pulls.all().front();
        pulls.Cancel(pull);
        come.erase(pull);
      }
      if (asked.empty()) continue;
      const BulkFrame ask = asked.front();
      asked.pop_front();
      const StatusOr<BulkPulls::Part> part = pulls.Begins(PartOf(ask, size_of[ask.id.sequence]));
      ASSERT_TRUE(part.ok());
      // the rest is lost
      const std::uint64_t some = random() % 10 == 0 ? part->bytes / 2 : part->bytes;
      if (part->pull != 0) {
        ASSERT_EQ(part->offset, come[part->pull]);
        come[part->pull] += some;
      }
      const bool over = some != 0 && pulls.Came(some);
      ASSERT_EQ(over, part->pull != 0 && come[part->pull] == sizes[part->pull]);
      if (some != part->bytes) {
        pulls.Unlinked();
        asked.clear();
      }
    }
    ASSERT_TRUE(pulls.empty()) << seed;
    for (const auto& [pull, bytes] : come) ASSERT_EQ(bytes, sizes[pull]) << seed;
  }
}

}  // namespace
}  // namespace troupe::actors
