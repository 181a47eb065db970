// Method: a rank makes actors on the other node of its launch, which falls silent; the launch goes
// on without that node, or fails. Names carry the invariants of head/core/placed/actors.h.
#include "tests/head/gang/regroup_fixture.h"

namespace troupe::head {
namespace {

using std::chrono::seconds;

class ActorsOfALaunch : public Regroups, public ::testing::WithParamInterface<wire::RankDeath> {
 protected:
  static wire::CreateActor Counter(std::uint64_t number) {
    wire::CreateActor create;
    create.spec.actor = ActorId(12, number);
    create.spec.class_name = "Counter";
    return create;
  }
  void Begin() {
    Run(GetParam(), 1);
    ASSERT_EQ(NodeOf(0).id, a_.id);
  }
  /// Rank 0 makes it, on node b if that is there; what a node is told to start starts.
  void Make(wire::CreateActor create) {
    create.spec.node = b_.id;
    create.spec.node_soft = true;
    SayFor(a_.session, DriverOf(launch_), std::move(create), ++asked_);
  }
  wire::StartActor StartedOn(const FakeNode& node) {
    const auto started = Last<wire::StartActor>(node.session);
    StartActors(node);
    return started;
  }
  void KillIt(const ActorId& actor) {
    wire::KillActor kill;
    kill.actor = actor;
    kill.no_restart = true;
    SayFor(a_.session, DriverOf(launch_), kill, ++asked_);
  }
  /// Node b is not heard for so long.
  void Silence(seconds time) {
    Pass(time, false);
    Serve(a_);
  }

  void ExpectANextLife(wire::CreateActor create) {
    create.spec.max_restarts = 1;
    Make(std::move(create));
    Serve(b_);
    EXPECT_EQ(StartedOn(b_).incarnation, 1u);
    Silence(seconds(70));
    ASSERT_TRUE(Open());
    EXPECT_EQ(Count<wire::StartActor>(a_.session), 0u);
    Silence(seconds(7));
    ASSERT_EQ(Count<wire::StartActor>(a_.session), 1u);
    EXPECT_EQ(StartedOn(a_).incarnation, 2u);
  }

  std::uint64_t asked_ = 0;
};

TEST_P(ActorsOfALaunch, AN4_AreFencedByTheirNodeIfTheLaunchGoesOnWithoutIt) {
  Begin();
  const bool goes_on = GetParam() != wire::RankDeath::kFail;
  Make(Counter(1));
  EXPECT_FALSE(StartedOn(b_).recreatable) << "no other one can follow";
  wire::CreateActor named = Counter(2);
  named.spec.name = "counter";
  Make(named);
  EXPECT_EQ(StartedOn(b_).recreatable, goes_on);
  wire::CreateActor restarted = Counter(3);
  restarted.spec.max_restarts = 1;
  Make(restarted);
  EXPECT_EQ(StartedOn(b_).recreatable, goes_on);
}

TEST_P(ActorsOfALaunch, AN4_TheNextOneOfTheNameStartsWhenTheLostNodeHasFencedTheOneBefore) {
  if (GetParam() == wire::RankDeath::kFail) return;  // the epoch ends, and its names with it
  Begin();
  wire::CreateActor first = Counter(1);
  first.spec.name = "counter";
  Make(first);
  StartedOn(b_);
  Silence(seconds(20));
  ASSERT_TRUE(Open());
  KillIt(first.spec.actor);
  wire::CreateActor next = Counter(2);
  next.spec.name = "counter";
  Make(next);
  Silence(seconds(50));
  EXPECT_EQ(Count<wire::StartActor>(a_.session), 0u);
  Silence(seconds(7));
  ASSERT_EQ(Count<wire::StartActor>(a_.session), 1u);
  EXPECT_EQ(StartedOn(a_).actor, next.spec.actor);
}

TEST_P(ActorsOfALaunch, A2_OneThatMayBeStartedAgainHasItsNextLifeOnceItsLostNodeHasFencedIt) {
  if (GetParam() == wire::RankDeath::kFail) return;  // the epoch ends, and the actor too
  Begin();
  ExpectANextLife(Counter(1));
}

TEST_P(ActorsOfALaunch, A2_SoHasOneWithAReservationOfItsOwn) {
  if (GetParam() == wire::RankDeath::kFail) return;
  Begin();
  wire::CreateActor create = Counter(1);
  create.spec.run_resources = Amounts(1);
  ExpectANextLife(std::move(create));
}

INSTANTIATE_TEST_SUITE_P(HoweverItsRanksMayDie, ActorsOfALaunch,
                         ::testing::Values(wire::RankDeath::kFail, wire::RankDeath::kShrink,
                                           wire::RankDeath::kReplace));

}  // namespace
}  // namespace troupe::head
