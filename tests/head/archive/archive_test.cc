// Method: archive_fixture.h.
//   AR-2 one leaves memory only when its record is durable
//   AR-3 requests about one that has left are answered as before
#include "head/core/launched/archive/launch_list.h"
#include "head/core/machine/lived_time.h"
#include "head/core/machine/snapshot.h"
#include "tests/head/archive/archive_fixture.h"

namespace troupe::head {
namespace {

using namespace std::chrono_literals;

TEST_F(Archive, AR2_OneLeavesMemoryWhenItsRecordIsDurable) {
  const std::vector<LaunchId> launches = EndSome(kEndedMax + 1);
  ASSERT_FALSE(archived_.empty());
  EXPECT_EQ(archived_.front().launch, launches.front());
  EXPECT_TRUE(InMemory(launches.front()));
  Written(false);
  EXPECT_TRUE(InMemory(launches.front()));
  End();
  ASSERT_FALSE(archived_.empty()) << "it is tried again";
  Boot();  // a crash in between
  EXPECT_TRUE(InMemory(launches.front()));
  Written();
  EXPECT_FALSE(InMemory(launches.front()));
  Boot();
  EXPECT_FALSE(InMemory(launches.front()));
}

TEST_F(Archive, AR2_NothingMovesWhileTheDiskIsFull) {
  EndSome(kEndedMax);
  const LaunchId launch = Submit(client_, 1);
  Serve(node_);
  Serve(node_);
  Feed(DiskFull{true});
  Finish(node_, launch, 0);
  EXPECT_FALSE(LaunchOf(launch).open());
  EXPECT_TRUE(archived_.empty());
  Feed(DiskFull{false});
  End();
  EXPECT_FALSE(archived_.empty());
}

TEST_F(Archive, AR3_RequestsAboutOneThatHasLeftAreAnsweredAsBefore) {
  const LaunchId launch = EndSome(kEndedMax + 1).front();
  wire::GetLaunch get;
  get.launch = launch;
  wire::WaitMarker wait;
  wait.launch = launch;
  wire::GetResult result;
  result.launch = launch;
  wire::CancelLaunch cancel;
  cancel.launch = launch;
  Ask(get);
  wire::LaunchInfo before = Last<wire::LaunchUpdate>(client_).info;
  before.watchers = 0;  // nobody is told of it any more
  Ask(wait);
  const wire::Marker marker = Last<wire::MarkerReply>(client_).marker;
  Written();
  ASSERT_FALSE(InMemory(launch));
  sent_.clear();
  Ask(get);
  EXPECT_EQ(Count<wire::LaunchUpdate>(client_), 0u) << "it waits for the record";
  Answer();
  EXPECT_EQ(Last<wire::LaunchUpdate>(client_).info, before);
  Ask(wait);
  Answer();
  EXPECT_EQ(Last<wire::MarkerReply>(client_).marker, marker);
  Ask(result);
  Answer();
  EXPECT_EQ(Last<wire::ResultValue>(client_).outcome, wire::Outcome::kSucceeded);
  EXPECT_EQ(sent_.back().message.attachment, "value");
  Ask(cancel);
  Answer();
  EXPECT_EQ(Last<wire::LaunchUpdate>(client_).info, before);
  EXPECT_FALSE(InMemory(launch)) << "it is in memory for the step alone";
  EXPECT_EQ(core_->state().requests.size(), core_->state().launches.size());
  EXPECT_EQ(core_->state().ended.size(), core_->state().launches.size());
}

TEST_F(Archive, AR3_OneWithoutARecordIsATombstoneOrUnknown) {
  const LaunchId launch = EndSome(kEndedMax + 1).front();
  Written();
  kept_.clear();  // the retention is over
  wire::GetLaunch get;
  get.launch = launch;
  Ask(get);
  Answer();
  EXPECT_NE(Last<wire::ErrorReply>(client_).text.find("no longer kept"), std::string::npos);
  get.launch = LaunchId(1, 1);
  Ask(get);
  Answer();
  EXPECT_NE(Last<wire::ErrorReply>(client_).text.find("no launch"), std::string::npos);
  Ask(get);
  Answer("the disk failed");
  EXPECT_EQ(LastError(client_), ErrorCode::kInternal);
  EXPECT_NE(Last<wire::ErrorReply>(client_).text.find("the disk failed"), std::string::npos);
}

TEST_F(Archive, AR3_WhatASessionWaitsForEndsWithItAndIsBounded) {
  const LaunchId launch = EndSome(kEndedMax + 1).front();
  Written();
  wire::GetLaunch get;
  get.launch = launch;
  for (std::size_t i = 0; i < Recalls::kRecallsMax; ++i) Ask(get);
  EXPECT_EQ(recalls_.size(), Recalls::kRecallsMax);
  EXPECT_EQ(Count<wire::ErrorReply>(client_), 0u);
  Ask(get);
  EXPECT_EQ(LastError(client_), ErrorCode::kTooLarge);
  sent_.clear();
  Feed(SessionClosed{client_});
  Answer();
  EXPECT_EQ(Count<wire::LaunchUpdate>(client_), 0u);
}

TEST_F(Archive, AR3_WhoMayNotAskIsRefusedWithoutARecord) {
  const LaunchId launch = EndSome(kEndedMax + 1).front();
  Written();
  const SessionId observer = Open(wire::Role::kObserver, Id128(9, 10));
  wire::CancelLaunch cancel;
  cancel.launch = launch;
  Say(observer, cancel, 1);
  EXPECT_TRUE(recalls_.empty());
  EXPECT_EQ(Count<wire::ErrorReply>(observer), 1u);
}

TEST_F(Archive, AR3_AListIsToldInPages) {
  std::vector<LaunchId> launches = EndSome(23);
  while (!archived_.empty()) Written();
  std::vector<LaunchId> listed;
  wire::ListLaunches list;
  list.limit = 5;
  for (bool more = true; more;) {
    Ask(list);
    Answer();
    const auto page = Last<wire::LaunchList>(client_);
    ASSERT_FALSE(page.launches.empty());
    for (auto each = page.launches.rbegin(); each != page.launches.rend(); ++each)
      listed.push_back(each->launch);
    more = page.more;
    list.before = page.launches.front().launch;
    list.before_us = page.launches.front().submitted_us;
  }
  std::reverse(launches.begin(), launches.end());
  EXPECT_EQ(listed, launches);
  EXPECT_LE(core_->state().launches.size(), kEndedMax);

  wire::ListLaunches since;
  since.limit = 100;
  since.since_us = list.before_us + 20'000'000;  // begin of the last three
  Ask(since);
  Answer();
  EXPECT_EQ(Last<wire::LaunchList>(client_).launches.size(), 3u);
  EXPECT_FALSE(Last<wire::LaunchList>(client_).more);

  Ask(wire::ListLaunches());  // without a limit: what is in memory
  EXPECT_EQ(Last<wire::LaunchList>(client_).launches.size(), core_->state().launches.size());
  EXPECT_TRUE(Last<wire::LaunchList>(client_).more);
}

TEST_F(Archive, AR3_ARepeatOfASubmissionWithAKeyFindsTheLaunchThatHasLeft) {
  Advance(1s);
  wire::SubmitLaunch submit;
  submit.request = RequestId(77, 7);
  submit.spec = SpecOfOne();
  submit.spec.environment.travelled = {"request=" + submit.request.Hex()};
  Ask(submit);
  Answer();  // nothing yet
  const LaunchId first = Last<wire::LaunchAccepted>(client_).launch;
  Serve(node_);
  Serve(node_);
  Finish(node_, first, 0);
  Serve(node_);
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

  wire::ListLaunches list;  // and who asks for the launch of that submission
  list.limit = 10;
  list.request = submit.request;
  Ask(list);
  Answer();
  ASSERT_EQ(Last<wire::LaunchList>(client_).launches.size(), 1u);
  EXPECT_EQ(Last<wire::LaunchList>(client_).launches[0].launch, first);

  submit.request = RequestId(77, 8);  // without a key nothing is read
  submit.spec.environment.travelled.clear();
  Ask(submit);
  EXPECT_TRUE(recalls_.empty());
  EXPECT_EQ(Count<wire::LaunchAccepted>(client_), 2u);
}

TEST_F(Archive, AR3_SubmissionsThatWaitAreBoundedByTheirBytes) {
  wire::SubmitLaunch submit;
  submit.spec = SpecOfOne();
  submit.spec.environment.travelled = {"door=job", "about.id=a"};
  constexpr std::size_t kBytes = Recalls::kRecallBytesMax / 8;
  for (std::uint64_t i = 1; i <= 9; ++i) {
    submit.request = RequestId(78, i);
    Say(client_, submit, 100 + i, std::string(kBytes, 'x'));
  }
  EXPECT_EQ(recalls_.size(), 8u);
  EXPECT_EQ(LastError(client_), ErrorCode::kTooLarge);
}

TEST_F(Archive, AR3_LaunchesAreFoundByHowTheirIdsBegin) {
  const std::vector<LaunchId> launches = EndSome(12);
  while (!archived_.empty()) Written();
  for (const LaunchId& each : {launches.front(), launches.back()}) {
    wire::ListLaunches list;
    list.limit = 10;
    list.prefix = each.Hex().substr(0, 16);
    Ask(list);
    Answer();
    ASSERT_EQ(Last<wire::LaunchList>(client_).launches.size(), 1u);
    EXPECT_EQ(Last<wire::LaunchList>(client_).launches[0].launch, each);
  }
  wire::ListLaunches open;
  open.open_only = true;
  open.limit = 10;
  Ask(open);
  EXPECT_TRUE(recalls_.empty()) << "what is not over is in memory";
  EXPECT_TRUE(Last<wire::LaunchList>(client_).launches.empty());
  EXPECT_FALSE(Last<wire::LaunchList>(client_).more);
}

TEST_F(Archive, TheRetentionHoldsInMemoryAndInTheArchive) {
  const LaunchId launch = End();
  Advance(2 * 24h);
  EXPECT_TRUE(InMemory(launch));
  EXPECT_EQ(archived_until_us_, 0u);
  node_ = Join(1, 4);  // the head has not heard of it for days
  const LaunchId later = End();
  Advance(5 * 24h + 1h);
  EXPECT_FALSE(InMemory(launch));
  EXPECT_TRUE(InMemory(later));
  Feed(Tick());
  EXPECT_GT(archived_until_us_, 0u);
  EXPECT_LE(archived_until_us_, LivedUs(core_->state(), now_) - options_.retention_us);
  Advance(2 * 24h);
  EXPECT_FALSE(InMemory(later));
}

TEST_F(Archive, ASnapshotHasTheOrderInWhichTheyEnded) {
  const std::vector<LaunchId> launches = EndSome(kEndedMax);
  durable_ = SnapshotOf(core_->state());
  Boot();
  node_ = Join(1, 4);
  client_ = Open(wire::Role::kClient, Id128(9, 9), true);
  End();
  ASSERT_FALSE(archived_.empty());
  EXPECT_EQ(archived_.front().launch, launches.front());
}

}  // namespace
}  // namespace troupe::head
