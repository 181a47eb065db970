// Method: one node that is full, and requests of several priorities that wait for it.
#include "head/core/machine/snapshot.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

using wire::LaunchMode;
using wire::LaunchState;

class Priorities : public HeadFixture {
 protected:
  void BootWith(Preemption policy) {
    options_.preemption = policy;
    Boot();
    node_ = Join(1, 4);
    client_ = Open(wire::Role::kClient, Id128{9, 1});
  }
  LaunchId Launched(std::uint32_t ranks, std::int32_t priority, std::uint32_t attempts = 1) {
    return Submit(client_, ranks, attempts, LaunchMode::kDistributed, priority);
  }
  LaunchId Running(std::uint32_t ranks, std::int32_t priority, std::uint32_t attempts = 1) {
    const LaunchId id = Launched(ranks, priority, attempts);
    Answer();
    EXPECT_EQ(LaunchOf(id).phase, LaunchState::kRunning);
    return id;
  }
  void Answer() {
    for (int step = 0; step < 3; ++step) Serve(node_);
  }
  void Fail(LaunchId launch, std::uint64_t epoch) {
    const auto ranks = static_cast<std::uint32_t>(LaunchOf(launch).ranks.size());
    Finish(node_, launch, 0, epoch, wire::Outcome::kFailed);
    for (std::uint32_t rank = 1; rank < ranks; ++rank)
      Finish(node_, launch, rank, epoch, wire::Outcome::kCancelled);
  }
  LaunchState Phase(LaunchId id) const { return LaunchOf(id).phase; }
  std::uint32_t Place(LaunchId id) {
    wire::GetLaunch get;
    get.launch = id;
    Say(client_, get, 70);
    return Last<wire::LaunchUpdate>(client_).info.queue_place;
  }

  FakeNode node_;
  SessionId client_;
};

TEST_F(Priorities, TheHighestIsFirstInTheQueueOfEqualsTheEarliest) {
  BootWith(Preemption::kNever);
  const LaunchId first = Running(4, 0, 3);
  const LaunchId low = Launched(4, -1);
  const LaunchId plain = Launched(4, 0);
  const LaunchId other = Launched(4, 0);
  const LaunchId high = Launched(4, 7);
  EXPECT_EQ(Place(high), 1u);
  EXPECT_EQ(Place(plain), 2u);
  EXPECT_EQ(Place(other), 3u);
  EXPECT_EQ(Place(low), 4u);
  EXPECT_EQ(LaunchOf(first).epoch, 1u) << "nothing is preempted unless the policy says so";
  durable_ = SnapshotOf(core_->state());
  Boot();
  wire::RegisterNode report;
  report.incarnation = node_.incarnation;
  report.holdings.emplace_back();
  report.holdings.back().group = LaunchOf(first).group;
  report.holdings.back().attempt = 1;
  node_ = Join(1, 4, 0, report);
  client_ = Open(wire::Role::kClient, Id128{9, 1});
  EXPECT_EQ(Place(high), 1u) << "a restart keeps the order";
  EXPECT_EQ(Place(low), 4u);
  for (std::uint32_t rank = 0; rank < 4; ++rank) Finish(node_, first, rank);
  Answer();
  EXPECT_EQ(Phase(high), LaunchState::kRunning);
  EXPECT_EQ(Phase(plain), LaunchState::kQueued);
}

TEST_F(Priorities, AGroupOfHigherPriorityPassesTheFirstThatWaits) {
  BootWith(Preemption::kNever);
  const LaunchId running = Running(3, 0);
  const LaunchId waits = Launched(4, 0);
  wire::CreateGroup create;
  create.group = GroupId(4, 4);
  create.priority = 1;
  create.bundles.resize(1);
  create.bundles[0].resources = Amounts(1);
  Say(client_, create, 50);
  Answer();
  EXPECT_EQ(core_->state().groups.at(create.group).state, wire::GroupState::kCreated);
  create.group = GroupId(4, 5);
  create.priority = 0;
  Say(client_, create, 51);
  EXPECT_EQ(Last<wire::GroupUpdate>(client_).info.queue_place, 0u) << "nobody has looked at it yet";
  wire::GetGroup get;
  get.group = create.group;
  Say(client_, get, 52);
  EXPECT_EQ(Last<wire::GroupUpdate>(client_).info.queue_place, 2u)
      << "behind the launch of its priority";
  EXPECT_EQ(Last<wire::GroupUpdate>(client_).info.priority, 0);
  EXPECT_EQ(Place(waits), 1u);
  EXPECT_EQ(Phase(running), LaunchState::kRunning);
}

TEST_F(Priorities, ALaunchThatCanStartAgainMakesRoomAndLosesNoAttempt) {
  BootWith(Preemption::kRestartable);
  const LaunchId victim = Running(4, 0, 2);
  const LaunchId high = Launched(2, 5);
  EXPECT_EQ(Phase(victim), LaunchState::kQueued);
  EXPECT_EQ(LaunchOf(victim).preemptions, 1u);
  EXPECT_EQ(LaunchOf(victim).last_failure.cause,
            "preempted by launch " + high.Short() + " of priority 5");
  EXPECT_EQ(Last<wire::EndEpoch>(node_.session).launch, victim) << "its ranks are told";
  EXPECT_EQ(Place(high), 1u) << "its room is on the way";
  EXPECT_EQ(Place(victim), 2u);
  Answer();
  EXPECT_EQ(Phase(high), LaunchState::kRunning);
  EXPECT_EQ(Phase(victim), LaunchState::kQueued);
  for (std::uint32_t rank = 0; rank < 2; ++rank) Finish(node_, high, rank);
  Answer();
  EXPECT_EQ(LaunchOf(victim).epoch, 2u);
  Fail(victim, 2);
  Answer();
  EXPECT_EQ(LaunchOf(victim).epoch, 3u) << "epoch 1 was not an attempt";
  EXPECT_EQ(Folded(SnapshotOf(core_->state())).launches.at(victim).preemptions, 1u);
  Fail(victim, 3);
  EXPECT_FALSE(LaunchOf(victim).open()) << "two attempts";
}

TEST_F(Priorities, WhoMayStartOnlyOnceAndWhoIsEqualAreLeftAlone) {
  BootWith(Preemption::kRestartable);
  const LaunchId once = Running(2, 0);
  const LaunchId equal = Running(2, 5, 9);
  const LaunchId waits = Launched(1, 5);
  EXPECT_EQ(Place(waits), 1u);
  EXPECT_EQ(LaunchOf(once).epoch + LaunchOf(equal).epoch, 2u);
  EXPECT_EQ(Phase(once), LaunchState::kRunning);
  EXPECT_EQ(Phase(equal), LaunchState::kRunning);
}

TEST_F(Priorities, NobodyElseIsEndedForRoomThatIsOnItsWay) {
  BootWith(Preemption::kRestartable);
  const LaunchId oldest = Running(2, 0, 9);
  const LaunchId youngest = Running(2, 0, 9);
  const LaunchId high = Launched(2, 1);
  EXPECT_EQ(Phase(youngest), LaunchState::kQueued);
  Advance(std::chrono::seconds(1));
  const LaunchId small = Launched(1, 0);
  EXPECT_EQ(Phase(oldest), LaunchState::kRunning);
  EXPECT_EQ(LaunchOf(oldest).preemptions, 0u);
  Answer();
  EXPECT_EQ(Phase(high), LaunchState::kRunning);
  EXPECT_EQ(Phase(small), LaunchState::kQueued);
}

TEST_F(Priorities, AGroupIsPreemptedWithItsActorsIfAllOfThemCanStartAgain) {
  BootWith(Preemption::kRestartable);
  wire::CreateGroup create;
  create.group = GroupId(4, 4);
  create.bundles.resize(1);
  create.bundles[0].resources = Amounts(4);
  Say(client_, create, 50);
  Answer();
  const auto actor = [&](std::uint64_t number, std::int32_t restarts) {
    wire::CreateActor message;
    message.spec.actor = ActorId(12, number);
    message.spec.run_resources = Amounts(1);
    message.spec.group = create.group;
    message.spec.max_restarts = restarts;
    Say(client_, message, 60 + number, "class");
    return message.spec.actor;
  };
  const ActorId again = actor(1, 1);
  const ActorId never = actor(2, 0);
  const LaunchId high = Launched(1, 1);
  EXPECT_EQ(Phase(high), LaunchState::kQueued);
  EXPECT_EQ(core_->state().groups.at(create.group).state, wire::GroupState::kCreated);
  wire::KillActor kill;
  kill.actor = never;
  Say(client_, kill, 80);
  wire::ActorEnded ended;
  ended.actor = never;
  ended.incarnation = core_->state().actors.at(never).incarnation;
  Say(node_.session, ended);
  const LaunchId higher = Launched(2, 2);
  EXPECT_EQ(core_->state().groups.at(create.group).state, wire::GroupState::kRescheduling);
  EXPECT_EQ(core_->state().actors.at(again).restarts, 1u);
  Answer();
  EXPECT_EQ(Phase(higher), LaunchState::kRunning);
  EXPECT_EQ(Phase(high), LaunchState::kRunning) << "there is room for both";
}

}  // namespace
}  // namespace troupe::head
