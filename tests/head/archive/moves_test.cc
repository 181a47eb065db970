// Method: archive_fixture.h.
//   AR-1 at most ended_max launches that are over stay in memory, however quickly they end
//   AR-4 a repeat of a submission whose launch has left memory is no second launch
#include <algorithm>

#include "head/core/machine/moved_submissions.h"
#include "head/core/machine/snapshot.h"
#include "tests/head/archive/archive_fixture.h"

namespace troupe::head {
namespace {

using namespace std::chrono_literals;

TEST_F(Archive, AR1_TheLatestStayInMemory) {
  const std::vector<LaunchId> launches = EndSome(50);
  EXPECT_EQ(core_->state().launches.size(), 50u) << "nothing was written yet";
  while (!archived_.empty()) Written();
  EXPECT_LE(core_->state().launches.size(), kEndedMax);
  EXPECT_TRUE(InMemory(launches.back()));
  EXPECT_EQ(core_->state().ended.size(), core_->state().launches.size());
  EXPECT_EQ(kept_.size(), 50 - core_->state().launches.size());
  // and each next one moves the one before
  for (int i = 0; i < 20; ++i) {
    End();
    if (!archived_.empty()) Written();
    EXPECT_LE(core_->state().launches.size(), kEndedMax);
  }
}

TEST(ArchiveBatch, AR1_TheMoreThereAreTooManyTheMoreMoveAtOnce) {
  EXPECT_EQ(BatchOf(0, 10'000), 0u);
  EXPECT_EQ(BatchOf(10'000, 10'000), 0u);
  EXPECT_EQ(BatchOf(10'001, 10'000), 64u) << "not one commit for each";
  EXPECT_EQ(BatchOf(10'300, 10'000), 300u);
  EXPECT_EQ(BatchOf(90'000, 10'000), 512u) << "the loop is not held up";
  EXPECT_EQ(BatchOf(5, 4), 3u) << "some stay";
  EXPECT_EQ(BatchOf(1, 0), 1u);
}

// A commit of the archive takes as long as so many launches take to end: the number in memory does
// not grow with the length of the burst.
TEST(ArchiveBatch, AR1_ABurstOfAnyLengthIsBoundedByNumber) {
  constexpr std::size_t kKeep = 1000, kEndsPerCommit = 400;
  EndedLaunches ended;
  std::uint64_t number = 0;
  std::size_t most = 0;
  for (int commits = 0; commits < 500; ++commits) {
    std::vector<LaunchId> moving = ended.BeginMove(kKeep);
    for (std::size_t i = 0; i < kEndsPerCommit; ++i, ++number)
      ended.Add(number, LaunchId(1, number));
    EXPECT_TRUE(ended.BeginMove(kKeep).empty() || moving.empty()) << "one at a time";
    most = std::max(most, ended.size());
    ended.EndMove();
    for (const LaunchId& id : moving) ended.Remove(id.lo, id);
  }
  EXPECT_LE(most, kKeep + 3 * kEndsPerCommit);
}

TEST_F(Archive, AR1_HowQuicklyTheyEndIsNoReasonToStay) {
  options_.repeats_us = 60'000'000;
  Boot();
  node_ = Join(1, 4);
  client_ = Open(wire::Role::kClient, Id128(9, 9), true);
  EndSome(20);  // within 20 seconds
  while (!archived_.empty()) Written();
  EXPECT_LE(core_->state().launches.size(), kEndedMax);
}

TEST_F(Archive, AR1_WhatCouldNotBeWrittenIsWrittenAgainThoughNothingElseEnds) {
  EndSome(50);
  ASSERT_FALSE(archived_.empty());
  Written(false);
  EXPECT_EQ(core_->state().launches.size(), 50u);
  EXPECT_TRUE(archived_.empty()) << "not at once: the disk may fail again";
  Advance(500ms);
  EXPECT_TRUE(archived_.empty());
  Advance(600ms);
  ASSERT_FALSE(archived_.empty());
  while (!archived_.empty()) Written();
  EXPECT_LE(core_->state().launches.size(), kEndedMax);
}

class Repeats : public Archive {
 protected:
  Repeats() { Begin(); }
  void Begin() {
    options_.repeats_us = 60'000'000;
    Boot();
    node_ = Join(1, 4);
    client_ = Open(wire::Role::kClient, Id128(9, 9), true);
  }
  // Without a key: nobody repeats it later than who lost the answer.
  LaunchId RunOne(const wire::SubmitLaunch& submit) {
    Ask(submit);
    const LaunchId launch = Last<wire::LaunchAccepted>(client_).launch;
    Serve(node_);
    Serve(node_);
    Finish(node_, launch, 0);
    Serve(node_);
    return launch;
  }
  wire::SubmitLaunch Submission() {
    wire::SubmitLaunch submit;
    submit.request = RequestId(77, 7);
    submit.spec = SpecOfOne();
    return submit;
  }
};

TEST_F(Repeats, AR4_ARepeatFindsTheLaunchThatHasLeftMemory) {
  const wire::SubmitLaunch submit = Submission();
  const LaunchId first = RunOne(submit);
  EndSome(kEndedMax);
  while (!archived_.empty()) Written();
  ASSERT_FALSE(InMemory(first));
  sent_.clear();
  Ask(submit);
  EXPECT_EQ(Count<wire::LaunchAccepted>(client_), 0u) << "it waits for the record";
  Answer();
  EXPECT_EQ(Last<wire::LaunchAccepted>(client_).launch, first);
  EXPECT_FALSE(InMemory(first));
  EXPECT_EQ(core_->state().requests.count(submit.request), 0u);
}

TEST_F(Repeats, AR4_NothingIsReadForOthersNorAfterAMinute) {
  const wire::SubmitLaunch submit = Submission();
  RunOne(submit);
  EndSome(kEndedMax);
  while (!archived_.empty()) Written();
  EXPECT_FALSE(core_->state().ended.moved.empty());
  wire::SubmitLaunch other = Submission();
  other.request = RequestId(77, 8);
  Ask(other);
  EXPECT_TRUE(recalls_.empty());
  node_ = Join(1, 4);
  Advance(61s);
  EXPECT_TRUE(core_->state().ended.moved.empty()) << "though nothing moves";
  Ask(submit);
  EXPECT_TRUE(recalls_.empty());
}

TEST_F(Repeats, AR4_ARestartedHeadRemembersWhatItIsGiven) {
  const wire::SubmitLaunch submit = Submission();
  const LaunchId first = RunOne(submit);
  EndSome(kEndedMax);
  while (!archived_.empty()) Written();
  for (const EndedRecord& record : kept_) options_.moved.push_back(record.request);
  ASSERT_FALSE(options_.moved.front().IsNil()) << "the record has the submission's id";
  durable_ = SnapshotOf(core_->state());
  Begin();
  sent_.clear();
  Ask(submit);
  Answer();
  EXPECT_EQ(Last<wire::LaunchAccepted>(client_).launch, first);
  Advance(61s);
  EXPECT_TRUE(core_->state().ended.moved.empty());
}

TEST(MovedSubmissions, AR4_AreBoundedByNumber) {
  MovedSubmissions moved;
  const std::size_t count = MovedSubmissions::kMovedMax + 10;
  for (std::uint64_t i = 1; i <= count; ++i) moved.Add(RequestId(5, i), 100);
  EXPECT_EQ(moved.size(), MovedSubmissions::kMovedMax);
  EXPECT_FALSE(moved.Has(RequestId(5, 10)));
  EXPECT_TRUE(moved.Has(RequestId(5, 11)));
  moved.Add(RequestId(), 100);
  EXPECT_EQ(moved.size(), MovedSubmissions::kMovedMax) << "an id that says nothing";
  moved.DropBefore(101);
  EXPECT_TRUE(moved.empty());
  EXPECT_FALSE(moved.Has(RequestId(5, 11)));
}

}  // namespace
}  // namespace troupe::head
