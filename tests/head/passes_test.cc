// Method: groups that wait behind others, with a cluster of one or two nodes: when the queue is
// gone over, and who is looked at again for what reason.
#include "head/core/machine/snapshot.h"
#include "head/core/placed/schedule.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

class Passes : public HeadFixture {
 protected:
  /// A head anew, with another time after which the first in the queue keeps a place.
  void KeepPlacesAfter(Duration wait) {
    options_.keep_after = wait;
    Boot();
    client_ = Open(wire::Role::kClient, Id128{9, 1});
  }
  /// A node half taken by the first; the large one wants all of it, the small one came behind that.
  FakeNode LargeOneWaits() {
    const FakeNode a = Join(1, 4);
    Create(first_, 2);
    Serve(a);
    Create(large_, 4);
    Create(small_, 1);
    Serve(a);
    return a;
  }
  static wire::CreateGroup Asking(GroupId id, std::uint64_t cpus, std::int32_t priority = 0) {
    wire::CreateGroup create;
    create.group = id;
    create.priority = priority;
    create.bundles.resize(1);
    create.bundles[0].resources = Amounts(cpus);
    return create;
  }
  void Create(GroupId id, std::uint64_t cpus, std::int32_t priority = 0) {
    Say(client_, Asking(id, cpus, priority), 50);
  }
  void Wait(const FakeNode& node, int minutes) {
    for (int second = 0; second < 60 * minutes; ++second) {
      Advance(std::chrono::seconds(1));
      Say(node.session, wire::Heartbeat());
    }
  }
  /// The head dies and starts again; the node comes back with what the first group holds there.
  void BootWithFirstOn(FakeNode& node, std::uint64_t number = 1) {
    Boot();
    client_ = Open(wire::Role::kClient, Id128{9, 1});
    wire::RegisterNode report;
    report.incarnation = node.incarnation;
    report.holdings.emplace_back();
    report.holdings[0].group = first_;
    report.holdings[0].attempt = GroupOf(first_).attempt;
    node = Join(number, 4, 0, report);
  }
  /// Fitting groups run now; after so many minutes the free resources are kept for the one that
  /// waits.
  void ExpectAPlaceKeptIn(const FakeNode& node, int minutes) {
    Wait(node, minutes / 2);
    Create(GroupId(4, 8), 1);
    Serve(node);
    EXPECT_EQ(GroupOf(GroupId(4, 8)).state, wire::GroupState::kCreated)
        << "it has not waited long enough";
    Remove(GroupId(4, 8));
    Serve(node);
    Wait(node, minutes - minutes / 2 + 1);
    Create(GroupId(4, 9), 1);
    Serve(node);
    EXPECT_TRUE(GroupOf(GroupId(4, 9)).waiting()) << "what it waited for before the restart counts";
  }
  void Remove(GroupId id) {
    wire::RemoveGroup remove;
    remove.group = id;
    Say(client_, remove, 51);
  }
  const Group& GroupOf(GroupId id) const { return core_->state().groups.at(id); }
  Effects Handle(const Input& input) { return core_->Handle(input, now_, WallUs()); }
  Effects Handle(const wire::CreateGroup& create) {
    MessageFrom input;
    input.session = client_;
    input.message.id = 50;
    input.message.body = create;
    return Handle(input);
  }

  const GroupId first_{4, 1};
  const GroupId large_{4, 2};
  const GroupId small_{4, 3};
  SessionId client_ = Open(wire::Role::kClient, Id128{9, 1});
};

TEST_F(Passes, OnePassForAllThatCame) {
  Join(1, 4);
  const Effects one = Handle(Asking(first_, 1));
  EXPECT_TRUE(one.plan_soon);
  EXPECT_EQ(one.append.size(), 1u) << "submitted, not yet placed";
  const Effects two = Handle(Asking(small_, 1));
  EXPECT_FALSE(two.plan_soon) << "it is on its way";
  EXPECT_EQ(Handle(PlanNow()).append.size(), 2u) << "an attempt for each";
  EXPECT_TRUE(Handle(Asking(large_, 1)).plan_soon) << "the next is asked for anew";
}

TEST_F(Passes, AGrantIsNoReasonToLookAtTheQueue) {
  const FakeNode a = Join(1, 4);
  Create(first_, 1);
  const auto asked = Take<wire::Reserve>(a.session);
  ASSERT_EQ(asked.size(), 1u);
  MessageFrom grant;
  grant.session = a.session;
  wire::ReserveReply reply;
  reply.group = first_;
  reply.attempt = 1;
  reply.granted = true;
  reply.free = Amounts(3);
  reply.free_version = 1;
  grant.message.body = reply;
  EXPECT_FALSE(Handle(grant).plan_soon);
  reply.free = Amounts(2);  // the node gave one CPU away without the head
  reply.free_version = 2;
  grant.message.body = reply;
  EXPECT_FALSE(Handle(grant).plan_soon);
  reply.free = Amounts(3);
  reply.free_version = 3;
  grant.message.body = reply;
  EXPECT_TRUE(Handle(grant).plan_soon) << "it is there again";
}

// However many wait: one that comes does not cost a look at all of them.
TEST_F(Passes, WhoFoundNoRoomIsNotLookedAtUntilSomethingIsFree) {
  KeepPlacesAfter(std::chrono::hours(2));
  const FakeNode a = Join(1, 4);
  Create(first_, 4);
  Serve(a);
  Create(large_, 2);
  Create(small_, 1);
  EXPECT_EQ(core_->state().queue.open, std::set<QueueKey>());
  MessageFrom input;
  input.session = client_;
  input.message.body = Asking(GroupId(4, 4), 1);
  Handle(input);
  EXPECT_EQ(core_->state().queue.open, std::set<QueueKey>({GroupOf(GroupId(4, 4)).key()}));
  Handle(PlanNow());
  EXPECT_EQ(core_->state().queue.open, std::set<QueueKey>());
  Remove(first_);
  Serve(a);
  for (const GroupId& id : {large_, small_, GroupId(4, 4)}) EXPECT_FALSE(GroupOf(id).waiting());
}

TEST_F(Passes, APlaceInTheQueueIsCountedFromTheNearerEnd) {
  const FakeNode a = Join(1, 4);
  Create(first_, 4);
  Serve(a);
  for (std::uint64_t i = 0; i < 7; ++i) Create(GroupId(5, i), 4);
  for (std::uint64_t i = 0; i < 7; ++i) {
    wire::GetGroup get;
    get.group = GroupId(5, i);
    Say(client_, get, 60 + i);
    EXPECT_EQ(Last<wire::GroupUpdate>(client_).info.queue_place, i + 1);
  }
}

// The large one keeps what is free; when it is given up nothing has grown, and yet there is room.
TEST_F(Passes, P6_WhatWasKeptIsOthersWhenItsKeeperLeaves) {
  LargeOneWaits();
  EXPECT_TRUE(GroupOf(small_).waiting()) << "what is free is kept for the large one";
  Remove(large_);
  EXPECT_FALSE(GroupOf(small_).waiting());
}

// A group of higher priority waits on the other node: it keeps a place there, and the former
// keeper's is free.
TEST_F(Passes, P6_WhatWasKeptIsOthersWhenAHigherOneKeepsAPlace) {
  wire::RegisterNode report;
  report.labels = {{"disk", "ssd"}};
  const FakeNode a = Join(1, 4);
  const FakeNode b = Join(2, 4, 0, report);
  Create(first_, 2);
  wire::CreateGroup on_b = Asking(GroupId(4, 5), 2);
  on_b.bundles[0].labels = {{"disk", "ssd"}};
  Say(client_, on_b, 50);
  wire::CreateGroup large = Asking(large_, 4);
  large.bundles[0].labels = {{"disk", "!ssd"}};
  Say(client_, large, 50);
  wire::CreateGroup small = Asking(small_, 1);
  small.bundles[0].labels = {{"disk", "!ssd"}};
  Say(client_, small, 50);
  Serve(a);
  Serve(b);
  EXPECT_TRUE(GroupOf(small_).waiting());
  wire::CreateGroup high = Asking(GroupId(4, 6), 4, 1);
  high.bundles[0].labels = {{"disk", "ssd"}};
  Say(client_, high, 50);
  EXPECT_TRUE(GroupOf(high.group).waiting());
  EXPECT_FALSE(GroupOf(small_).waiting()) << "only the first that waits keeps a place";
}

// The node where the keeper was to go is lost: its place is looked for anew at once.
TEST_F(Passes, P6_AKeepersPlaceMovesWhenItsNodeIsLost) {
  const FakeNode a = Join(1, 4);
  const FakeNode b = Join(2, 4);
  Create(first_, 3);
  Serve(a);
  Serve(b);
  Create(GroupId(4, 5), 2);  // these two on b
  Create(GroupId(4, 6), 2);
  Serve(a);
  Serve(b);
  ASSERT_EQ(GroupOf(GroupId(4, 6)).places[0].node, GroupOf(GroupId(4, 5)).places[0].node);
  Create(large_, 4);  // keeps the rest of a, with least in use
  wire::DrainNode drain;
  drain.node = GroupOf(first_).places[0].node;
  Say(client_, drain, 60);
  Remove(GroupId(4, 5));
  Serve(a);
  Serve(b);
  Create(small_, 1);
  EXPECT_TRUE(GroupOf(small_).waiting()) << "what is free there is kept for the large one by now";
  Remove(GroupId(4, 6));
  Serve(a);
  Serve(b);
  Serve(a);
  Serve(b);
  EXPECT_EQ(GroupOf(large_).state, wire::GroupState::kCreated);
}

TEST_F(Passes, P6_APlaceIsKeptOnceTheFirstHasWaitedLongEnough) {
  KeepPlacesAfter(std::chrono::hours(2));
  const FakeNode a = LargeOneWaits();
  EXPECT_EQ(GroupOf(small_).state, wire::GroupState::kCreated) << "whoever fits goes";
  Remove(small_);
  Wait(a, 121);
  const GroupId late(4, 7);
  Create(late, 1);
  Serve(a);
  EXPECT_TRUE(GroupOf(late).waiting()) << "what is free is kept for the large one by now";
  Remove(first_);
  Serve(a);
  Serve(a);
  EXPECT_EQ(GroupOf(large_).state, wire::GroupState::kCreated);
}

TEST_F(Passes, P6_ALaunchGoesOnWaitingOverARestartOfTheHead) {
  KeepPlacesAfter(std::chrono::hours(2));
  FakeNode a = Join(1, 4);
  Create(first_, 2);
  Serve(a);
  Submit(client_, 4);
  Wait(a, 110);
  BootWithFirstOn(a);
  ExpectAPlaceKeptIn(a, 10);
}

TEST_F(Passes, P6_AGroupGoesOnWaitingOverARestartOfTheHead) {
  KeepPlacesAfter(std::chrono::hours(2));
  FakeNode a = LargeOneWaits();
  Remove(small_);
  Wait(a, 100);
  BootWithFirstOn(a);
  Wait(a, 10);
  durable_ = SnapshotOf(core_->state());  // a snapshot has it too
  BootWithFirstOn(a);
  ExpectAPlaceKeptIn(a, 10);
}

// A group that had a place waits from the moment it lost it.
TEST_F(Passes, P6_AGroupThatLostItsPlaceWaitsSinceThen) {
  KeepPlacesAfter(std::chrono::hours(2));
  const FakeNode a = Join(1, 4);
  Create(large_, 4);
  Serve(a);
  ASSERT_EQ(GroupOf(large_).state, wire::GroupState::kCreated);
  FakeNode b = Join(2, 4);
  Create(first_, 2);
  Serve(b);
  ASSERT_EQ(GroupOf(first_).state, wire::GroupState::kCreated);
  for (int second = 0; second < 300 * 60; ++second) {
    Say(a.session, wire::Heartbeat());
    Say(b.session, wire::Heartbeat());
    Advance(std::chrono::seconds(1));
  }
  Say(a.session, wire::Goodbye());
  Feed(SessionClosed{a.session});
  ASSERT_TRUE(GroupOf(large_).waiting());
  Wait(b, 110);
  BootWithFirstOn(b, 2);
  ExpectAPlaceKeptIn(b, 10);
}

// There was room for one that pauses after a refusal: it has not to wait first to keep it.
TEST_F(Passes, P6_OneThatPausesKeepsItsPlaceAtOnce) {
  KeepPlacesAfter(std::chrono::hours(2));
  const FakeNode a = Join(1, 4);
  Create(large_, 4);
  RefuseReserve(a);
  ASSERT_TRUE(GroupOf(large_).waiting());
  Create(small_, 1);
  EXPECT_TRUE(GroupOf(small_).waiting());
}

}  // namespace
}  // namespace troupe::head
