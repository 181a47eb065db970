// Method: a driver launch whose nodes answer by hand; its driver leases the ranks' shares and makes
// actors beside them. The ledger (holdings of the nodes) and what the driver is told are compared.
#include "head/core/placed/rank_shares.h"

#include "head/core/machine/snapshot.h"
#include "head/core/nodes/node_views.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

class Shares : public HeadFixture {
 protected:
  // Two nodes of two CPUs, a launch of three ranks: two on the first, one on the second.
  void SetUp() override {
    a_ = Join(1, 2);
    b_ = Join(2, 2);
    client_ = Open(wire::Role::kClient, Id128{9, 1});
    launch_ = Submit(client_, 3, 1, wire::LaunchMode::kDriver);
    ServeAll();
    ServeAll();
    ASSERT_EQ(LaunchOf(launch_).phase, wire::LaunchState::kRunning);
    first_ = LaunchOf(launch_).ranks[0].node == a_.id ? a_ : b_;
    other_ = first_.id == a_.id ? b_ : a_;
  }
  void ServeAll() {
    Serve(a_);
    Serve(b_);
  }
  void Lease(GroupId id, std::int32_t rank = -1, std::int32_t asker = 0) {
    wire::CreateGroup create;
    create.group = id;
    create.shares = true;
    create.share_rank = rank;
    wire::Relay relay = DriverOf(launch_);
    relay.rank = asker;
    SayFor(first_.session, relay, create, 60);
  }
  void GiveBack(GroupId id) {
    wire::RemoveGroup remove;
    remove.group = id;
    SayFor(first_.session, DriverOf(launch_), remove, 61);
  }
  void MakeActor(ActorId id, std::uint64_t cpus) {
    wire::CreateActor create;
    create.spec.actor = id;
    create.spec.class_name = "Counter";
    create.spec.run_resources = Amounts(cpus);
    SayFor(first_.session, DriverOf(launch_), create, 62);
  }
  bool Leased(GroupId id) const {
    const auto group = core_->state().groups.find(id);
    return group != core_->state().groups.end() &&
           group->second.state == wire::GroupState::kCreated;
  }
  std::string Waiting(GroupId id) {
    wire::GetGroup get;
    get.group = id;
    SayFor(first_.session, DriverOf(launch_), get, 63);
    return Last<wire::GroupUpdate>(first_.session).info.reason;
  }

  FakeNode a_, b_, first_, other_;
  SessionId client_;
  LaunchId launch_;
  const GroupId id_{4, 4};
  const GroupId second_{4, 5};
};

TEST_F(Shares, EachNodeIsAskedForExactlyItsRanks) {
  Lease(id_);
  EXPECT_FALSE(Leased(id_)) << "only the nodes decide what they hold";
  const auto places = core_->state().groups.at(id_).places;
  ASSERT_EQ(places.size(), 2u);
  for (const wire::BundlePlace& place : places) {
    EXPECT_EQ(place.resources, Amounts(place.node == first_.id ? 2 : 1));
  }
  EXPECT_EQ(Last<wire::Reserve>(other_.session).parent, LaunchOf(launch_).group);
  ServeAll();
  EXPECT_TRUE(Leased(id_));
}

TEST_F(Shares, P1_AnActorBesideARunWaitsAndNamesIt) {
  Lease(id_);
  ServeAll();
  MakeActor(ActorId(5, 5), 1);
  ServeAll();
  const auto info = Last<wire::ActorUpdate>(first_.session).info;
  EXPECT_EQ(info.state, wire::ActorState::kPending);
  EXPECT_NE(info.waiting_for.find("current().run on all ranks {CPU: 3}"), std::string::npos)
      << info.waiting_for;
  GiveBack(id_);
  EXPECT_FALSE(core_->state().groups.at(id_).live());
  EXPECT_EQ(core_->state().actors.at(ActorId(5, 5)).state, wire::ActorState::kPending)
      << "free only once the node says so";
  ServeAll();
  ServeAll();
  EXPECT_EQ(core_->state().actors.at(ActorId(5, 5)).state, wire::ActorState::kStarting);
}

TEST_F(Shares, P1_ARunBesideAnActorWaitsAndNamesIt) {
  MakeActor(ActorId(5, 5), 1);
  ServeAll();
  Lease(id_);
  ServeAll();
  EXPECT_FALSE(Leased(id_));
  const std::string why = Waiting(id_);
  EXPECT_NE(why.find("held by actor Counter (" + ActorId(5, 5).Short() + ") {CPU: 1}"),
            std::string::npos)
      << why;
  wire::KillActor kill;
  kill.actor = ActorId(5, 5);
  SayFor(first_.session, DriverOf(launch_), kill, 64);
  const Actor& actor = core_->state().actors.at(ActorId(5, 5));
  wire::ActorEnded ended;
  ended.actor = ActorId(5, 5);
  ended.incarnation = actor.incarnation;
  Say(actor.place.node == a_.id ? a_.session : b_.session, ended);
  ServeAll();
  ServeAll();
  EXPECT_TRUE(Leased(id_));
}

TEST_F(Shares, OneRanksShareLeavesTheOthersFree) {
  Lease(id_, 2);
  ServeAll();
  ASSERT_TRUE(Leased(id_));
  EXPECT_EQ(core_->state().groups.at(id_).places[0].node, LaunchOf(launch_).ranks[2].node);
  Lease(second_, 0);
  ServeAll();
  EXPECT_TRUE(Leased(second_));
  Lease(GroupId(4, 6), 2);
  ServeAll();
  EXPECT_FALSE(Leased(GroupId(4, 6)));
  EXPECT_NE(Waiting(GroupId(4, 6)).find("a run on rank 2"), std::string::npos);
}

TEST_F(Shares, OnlyTheDriverOfTheCurrentEpochMayLeaseThem) {
  Lease(id_, -1, 1);
  EXPECT_EQ(LastError(first_.session), ErrorCode::kInvalid);
  Lease(id_, 3);
  EXPECT_EQ(LastError(first_.session), ErrorCode::kInvalid);
  wire::CreateGroup create;
  create.group = id_;
  create.shares = true;
  SayFor(first_.session, DriverOf(launch_, 7), create, 60);
  EXPECT_EQ(LastError(first_.session), ErrorCode::kFenced);
  Say(client_, create, 65);
  EXPECT_EQ(LastError(client_), ErrorCode::kFenced);
  EXPECT_EQ(core_->state().groups.count(id_), 0u);
}

TEST_F(Shares, S3_TheyEndWithTheLaunch) {
  Lease(id_);
  ServeAll();
  Acquire(first_, launch_, 1, RequestId(12, 1));
  Complete(first_, launch_, 1, RequestId(12, 2));
  EXPECT_FALSE(core_->state().groups.at(id_).live());
  ServeAll();
  ServeAll();
  EXPECT_EQ(FreeOf(core_->state().nodes.at(first_.id)).Get("CPU"), 20000u);
}

TEST_F(Shares, ALateRepeatOfTheRequestLeasesNothing) {
  Lease(id_);
  ServeAll();
  GiveBack(id_);
  ServeAll();
  Lease(id_);
  EXPECT_FALSE(Leased(id_));
  durable_ = SnapshotOf(core_->state());
  Boot();
  EXPECT_FALSE(core_->state().groups.at(id_).live()) << "known after a restart from a snapshot too";
}

TEST_F(Shares, TheLatestThousandThatEndedAreRemembered) {
  for (std::uint64_t i = 0; i <= 1000; ++i) {
    const GroupId id(77, i);
    Lease(id);
    ServeAll();
    GiveBack(id);
    ServeAll();
  }
  EXPECT_EQ(core_->state().groups.count(GroupId(77, 0)), 0u);
  EXPECT_EQ(core_->state().groups.count(GroupId(77, 1)), 1u);
  EXPECT_EQ(core_->state().ended_groups.size(), 1000u);
}

TEST_F(Shares, ARestartedHeadKnowsWhatIsLeased) {
  Lease(id_);
  ServeAll();
  Boot();
  EXPECT_TRUE(Leased(id_));
  EXPECT_EQ(core_->state().nodes.at(other_.id).holdings.size(), 2u);
  durable_ = SnapshotOf(core_->state());
  Boot();
  EXPECT_TRUE(Leased(id_));
  EXPECT_EQ(core_->state().nodes.at(other_.id).holdings.size(), 2u);
}

}  // namespace
}  // namespace troupe::head
