// Method: processes for tasks of one client fill the cluster, others come; whose maker is told of
// it, how often, of whom.
#include "head/core/placed/room_notices.h"

#include "head/core/machine/snapshot.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

class Room : public HeadFixture {
 protected:
  void SetUp() override {
    node_ = Join(1, 4, 2);
    holder_ = Open(wire::Role::kClient, Id128{9, 1}, true);
    other_ = Open(wire::Role::kClient, Id128{9, 2}, true);
  }
  ActorId Make(SessionId client, std::vector<wire::Resource> resources, bool leased) {
    wire::CreateActor create;
    create.spec.actor = ActorId(12, ++actors_);
    create.spec.class_name = "troupe.task";
    create.spec.resources = create.spec.run_resources = std::move(resources);
    create.spec.leased = leased;
    Say(client, create, 60);
    Serve(node_);
    StartActors(node_);
    return create.spec.actor;
  }
  /// Processes for tasks of the first client: they hold all CPUs.
  std::vector<ActorId> Fill() {
    std::vector<ActorId> made;
    for (int i = 0; i < 4; ++i) made.push_back(Make(holder_, Amounts(1), true));
    Wanted();
    return made;
  }
  /// The actors of the first client whose room it was told others want, since it was last asked.
  std::vector<ActorId> Wanted() {
    std::vector<ActorId> wanted;
    for (const wire::ActorUpdate& update : Take<wire::ActorUpdate>(holder_)) {
      if (update.info.room_wanted) wanted.push_back(update.info.actor);
    }
    return wanted;
  }
  static std::vector<wire::Resource> Gpu() {
    std::vector<wire::Resource> gpu = Amounts(0, 1);
    gpu.erase(gpu.begin());
    return gpu;
  }

  FakeNode node_;
  SessionId holder_;
  SessionId other_;
  std::uint64_t actors_ = 0;
};

TEST_F(Room, ItsHolderIsToldOfWhoBeginsToWait) {
  const std::vector<ActorId> made = Fill();
  Make(other_, Amounts(1), true);
  EXPECT_EQ(Wanted(), made);
  const wire::ActorState state = core_->state().actors.at(made[0]).state;
  EXPECT_EQ(state, wire::ActorState::kAlive) << "a word, not an order";
}

TEST_F(Room, NobodyIsToldWhileThereIsRoom) {
  Make(holder_, Amounts(1), true);
  Make(other_, Amounts(1), true);
  EXPECT_TRUE(Wanted().empty());
}

TEST_F(Room, MoreLeasesOfItsOwnAreNoReason) {
  Fill();
  Make(holder_, Amounts(1), true);
  EXPECT_TRUE(Wanted().empty());
  Advance(kRoomWordEvery);
  Make(holder_, Amounts(1), false);
  EXPECT_EQ(Wanted().size(), 4u) << "an actor of its own is";
}

TEST_F(Room, WhoHasALeaseAndWantsMoreIsNoReason) {
  for (int i = 0; i < 3; ++i) Make(holder_, Amounts(1), true);
  Make(other_, Amounts(1), true);
  Make(other_, Amounts(1), true);
  EXPECT_TRUE(Wanted().empty());
}

TEST_F(Room, OnlyOfWhatItHolds) {
  Fill();
  for (int i = 0; i < 3; ++i) Make(other_, Gpu(), false);
  EXPECT_TRUE(Wanted().empty()) << "the third waits for a GPU";
}

TEST_F(Room, ActorsThatAreNotLeasedAreLeftAlone) {
  for (int i = 0; i < 4; ++i) Make(holder_, Amounts(1), false);
  Make(other_, Amounts(1), true);
  EXPECT_TRUE(Wanted().empty());
}

TEST_F(Room, ManyWhoComeAreOneWordAndNobodyIsForgotten) {
  const std::vector<ActorId> made = Fill();
  Make(other_, Amounts(1), true);
  EXPECT_EQ(Wanted().size(), 4u);
  for (int i = 0; i < 10; ++i) Make(other_, Amounts(1), true);
  EXPECT_TRUE(Wanted().empty()) << "it has just been said";
  Advance(kRoomWordEvery);
  Make(other_, Gpu(), false);
  EXPECT_EQ(Wanted(), made) << "with the next pass";
  Advance(kRoomWordEvery);
  Make(other_, Gpu(), false);
  EXPECT_TRUE(Wanted().empty()) << "those that wait have been told of";
}

TEST_F(Room, WhoComesToHoldItSoonAfterIsToldToo) {
  std::vector<ActorId> made = Fill();
  Make(other_, Amounts(1), true);
  Make(Open(wire::Role::kClient, Id128{9, 3}, true), Amounts(1), true);
  Wanted();
  wire::KillActor kill;
  kill.actor = made[0];
  Say(holder_, kill, 61);
  wire::ActorEnded ended;
  ended.actor = made[0];
  ended.incarnation = 1;
  Say(node_.session, ended);
  Serve(node_);
  Serve(node_);
  StartActors(node_);
  const wire::ActorInfo first = Last<wire::ActorUpdate>(other_).info;
  EXPECT_EQ(first.state, wire::ActorState::kAlive);
  EXPECT_TRUE(first.room_wanted) << "the third client waits still";
  Advance(kRoomWantedFor);
  Say(other_, wire::WatchActor{first.actor, false}, 90);
  EXPECT_FALSE(Last<wire::ActorUpdate>(other_).info.room_wanted);
}

TEST_F(Room, AGroupOfBundlesWaitsTooAndARestartedHeadKnowsTheLeases) {
  const std::vector<ActorId> made = Fill();
  Boot();
  holder_ = Open(wire::Role::kClient, Id128{9, 1}, true);
  EXPECT_EQ(core_->state().leased_actors.size(), 4u);
  wire::RegisterNode report;
  report.incarnation = node_.incarnation;
  for (const ActorId& id : made) {
    const Actor& actor = core_->state().actors.at(id);
    report.holdings.emplace_back();
    report.holdings.back().group = actor.own_group;
    report.holdings.back().attempt = 1;
    report.actors.emplace_back();
    report.actors.back().actor = id;
    report.actors.back().incarnation = 1;
  }
  node_ = Join(1, 4, 2, report);
  for (const ActorId& id : made) Say(holder_, wire::WatchActor{id, false}, 90);
  Wanted();
  wire::CreateGroup create;
  create.group = GroupId(4, 1);
  create.bundles.resize(1);
  create.bundles[0].resources = Amounts(2);
  Say(Open(wire::Role::kClient, Id128{9, 2}, true), create, 50);
  EXPECT_EQ(Wanted(), made);
}

TEST_F(Room, WhoLeasesIsToldWhatStartsAndNothingOfWhatWaits) {
  Fill();
  Take<wire::ActorUpdate>(holder_);
  wire::CreateActor create;
  create.spec.actor = ActorId(12, ++actors_);
  create.spec.resources = create.spec.run_resources = Amounts(1);
  create.spec.leased = true;
  Say(holder_, create, 60);
  Serve(node_);
  EXPECT_EQ(Take<wire::ActorUpdate>(holder_).size(), 1u) << "the answer: it waits";
  Serve(Join(2, 1));
  const std::vector<wire::ActorUpdate> told = Take<wire::ActorUpdate>(holder_);
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().info.state, wire::ActorState::kStarting);
}

TEST_F(Room, TheEndOfALeaseIsTheEndOfIt) {
  const std::vector<ActorId> made = Fill();
  for (const ActorId& id : made) {
    wire::ActorEnded ended;
    ended.actor = id;
    ended.incarnation = 1;
    ended.graceful = true;
    Say(node_.session, ended);
  }
  EXPECT_TRUE(core_->state().leased_actors.empty());
}

}  // namespace
}  // namespace troupe::head
