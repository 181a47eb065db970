// Segments of a pool of this process, mapped as if they were another's: what keeps a mapping, what
// is asked for once, what is known of those that nobody has.
#include "actors/objects/segment_map.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/store/pool.h"

namespace troupe::actors {
namespace {

const ProcessId kSelf(1, 1);
const ProcessId kMaker(2, 2);
const ProcessId kOther(3, 3);

class SegmentMapTest : public testing::Test {
 protected:
  /// A segment with a value in it: its descriptor, as it comes over a link.
  GuardedFd Segment(std::uint64_t* bytes) {
    StatusOr<store::Writing> writing = pool_.Begin(100 << 10);
    EXPECT_TRUE(writing.ok());
    location_ = pool_.Lend(*writing, kSelf);
    StatusOr<UniqueFd> fd = pool_.DescriptorOf(location_.slot.segment, bytes);
    EXPECT_TRUE(fd.ok());
    return GuardedFd(fd->Release());
  }
  SegmentKey Mapped(SegmentMap& segments) {
    std::uint64_t bytes = 0;
    GuardedFd fd = Segment(&bytes);
    EXPECT_TRUE(segments.Map(SegmentOf(location_), std::move(fd), bytes).ok());
    return SegmentOf(location_);
  }

  store::Pool pool_{kMaker, NodeId()};
  store::Location location_;
};

TEST_F(SegmentMapTest, WhatIsMappedIsReadWhereItLies) {
  SegmentMap segments(kSelf);
  const SegmentKey key = Mapped(segments);
  ASSERT_NE(segments.Find(key), nullptr);
  EXPECT_TRUE(segments.Find(key)->reading.At(location_).ok());
  EXPECT_EQ(segments.Find({kMaker, key.second + 1}), nullptr);
  EXPECT_EQ(segments.foreign(), 1u);
  SegmentMap makers(kMaker);
  Mapped(makers);
  EXPECT_EQ(makers.foreign(), 0u) << "its own are not another's";
}

TEST_F(SegmentMapTest, WhatIsClosedLivesAsLongAsPinsAndViews) {
  SegmentMap segments(kSelf);
  const SegmentKey key = Mapped(segments);
  const store::ObjectId id{kSelf, 1};
  segments.Pin(id, segments.Find(key));
  segments.Retire(key);
  ASSERT_NE(segments.Find(key), nullptr) << "an object lies in it";
  std::shared_ptr<ObjectMapping> view = segments.Find(key);
  segments.Unpin(id);
  EXPECT_EQ(segments.Find(key), view) << "a view is left";
  view.reset();
  EXPECT_EQ(segments.Find(key), nullptr);
  EXPECT_EQ(segments.foreign(), 0u);
}

TEST_F(SegmentMapTest, TheEndOfAMakerRetiresWhatIsKeptOfIt) {
  SegmentMap segments(kSelf);
  const SegmentKey key = Mapped(segments);
  EXPECT_TRUE(segments.ForgetMaker(kOther).empty());
  EXPECT_EQ(segments.ForgetMaker(kMaker), std::vector<SegmentKey>{key});
  EXPECT_EQ(segments.Find(key), nullptr);
  EXPECT_TRUE(segments.ForgetMaker(kMaker).empty());
}

TEST_F(SegmentMapTest, OneProcessIsAskedAndOnlyItsAnswerCounts) {
  SegmentMap segments(kSelf);
  const SegmentKey key{kMaker, 7};
  EXPECT_TRUE(segments.Want(key, kMaker));
  EXPECT_FALSE(segments.Want(key, kOther)) << "it was asked of another one";
  EXPECT_TRUE(segments.WantedFrom(key, kMaker));
  EXPECT_FALSE(segments.WantedFrom(key, kOther));
  EXPECT_EQ(segments.AllWantedFrom(kMaker), std::vector<SegmentKey>{key});
  EXPECT_TRUE(segments.AllWantedFrom(kOther).empty());
}

TEST_F(SegmentMapTest, WhatNobodyHasIsKnownWithItsReasonUntilItComes) {
  SegmentMap segments(kSelf);
  std::uint64_t bytes = 0;
  GuardedFd fd = Segment(&bytes);
  const SegmentKey key = SegmentOf(location_);
  EXPECT_EQ(segments.WhyMissing(key), nullptr);
  segments.Want(key, kMaker);
  segments.Miss(key, "its process has ended");
  ASSERT_NE(segments.WhyMissing(key), nullptr);
  EXPECT_EQ(*segments.WhyMissing(key), "its process has ended");
  EXPECT_FALSE(segments.WantedFrom(key, kMaker)) << "it is awaited no longer";
  ASSERT_TRUE(segments.Map(key, std::move(fd), bytes).ok());
  EXPECT_EQ(segments.WhyMissing(key), nullptr);
}

TEST_F(SegmentMapTest, WhatIsNoSegmentIsNotMapped) {
  SegmentMap segments(kSelf);
  std::uint64_t bytes = 0;
  GuardedFd fd = Segment(&bytes);
  const SegmentKey key = SegmentOf(location_);
  segments.Want(key, kMaker);
  EXPECT_FALSE(segments.Map(key, std::move(fd), bytes + 1).ok()) << "it is smaller than was said";
  EXPECT_EQ(segments.Find(key), nullptr);
  EXPECT_FALSE(segments.WantedFrom(key, kMaker));
}

}  // namespace
}  // namespace troupe::actors
