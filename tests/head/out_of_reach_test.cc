// Method: actors on a node that falls silent for good, for a while, or ends with a verdict, on a
// clock moved by hand.
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

using std::chrono::seconds;

class OutOfReachActors : public HeadFixture {
 protected:
  void SetUp() override {
    node_ = Join(1, 4);
    client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
  }
  /// An actor that is alive on the node; `cpus` are reserved for it.
  ActorId Make(std::uint64_t number, std::uint64_t cpus = 0, const std::string& name = {}) {
    wire::CreateActor create;
    create.spec.actor = ActorId(12, number);
    create.spec.name = name;
    create.spec.class_name = "Counter";
    if (cpus > 0) create.spec.run_resources = Amounts(cpus);
    Say(client_, create, 60 + number);
    Serve(node_);
    StartActors(node_);
    EXPECT_EQ(Shown(create.spec.actor).state, wire::ActorState::kAlive);
    return create.spec.actor;
  }
  wire::ActorInfo Shown(ActorId actor) {
    Say(client_, wire::WatchActor{actor, false}, 90);
    return Last<wire::ActorUpdate>(client_).info;
  }
  /// The node registers again, as the process it was, which still runs `held`.
  void Return(std::vector<ActorId> held) {
    wire::RegisterNode report;
    report.incarnation = node_.incarnation;
    for (const ActorId& actor : held) report.actors.push_back({actor, 1});
    node_ = Join(1, 4, 0, report);
  }

  FakeNode node_;
  SessionId client_;
};

TEST_F(OutOfReachActors, OneThatReservedNothingGoesOnWhenItsNodeIsBack) {
  const ActorId actor = Make(1);
  Advance(seconds(6));
  EXPECT_EQ(Last<wire::ActorUpdate>(client_).info.state, wire::ActorState::kUnavailable)
      << "its callers are told";
  EXPECT_EQ(Last<wire::ActorUpdate>(client_).info.failure.cause,
            "node node-a is lost: not heard of for 5000 ms");
  Return({actor});
  EXPECT_EQ(Last<wire::ActorUpdate>(client_).info.state, wire::ActorState::kAlive);
  EXPECT_TRUE(Take<wire::EndActor>(node_.session).empty());
  for (int i = 0; i < 160; ++i) {
    Say(node_.session, wire::Heartbeat());
    Advance(std::chrono::milliseconds(500));
  }
  EXPECT_EQ(Shown(actor).state, wire::ActorState::kAlive);
}

TEST_F(OutOfReachActors, OneThatReservedSomethingEndsThen) {
  const ActorId actor = Make(1, 2);
  Advance(seconds(6));
  EXPECT_EQ(Shown(actor).state, wire::ActorState::kUnavailable);
  Return({actor});
  EXPECT_FALSE(Take<wire::EndActor>(node_.session).empty());
  EXPECT_EQ(Shown(actor).state, wire::ActorState::kDead);
  Serve(node_);
  EXPECT_TRUE(core_->state().nodes.at(node_.id).holdings.empty());
}

TEST_F(OutOfReachActors, OneThatIsNotThereAnyMoreIsDead) {
  const ActorId actor = Make(1);
  Advance(seconds(6));
  Return({});
  EXPECT_EQ(Shown(actor).state, wire::ActorState::kAlive) << "how it ended may be on its way";
  Say(node_.session, wire::Heartbeat());
  EXPECT_EQ(Shown(actor).state, wire::ActorState::kDead);
}

TEST_F(OutOfReachActors, WithoutAReturnItIsDeadOnceItMustHaveFencedItself) {
  const ActorId actor = Make(1, 1, "counter");
  Advance(seconds(74));
  EXPECT_EQ(Shown(actor).state, wire::ActorState::kUnavailable);
  wire::CreateActor again;
  again.spec.actor = ActorId(12, 9);
  again.spec.name = "counter";
  Say(client_, again, 70);
  EXPECT_EQ(LastError(client_), ErrorCode::kAlreadyExists) << "it may still run under its name";
  Advance(seconds(2));
  const wire::ActorInfo info = Last<wire::ActorUpdate>(client_).info;
  EXPECT_EQ(info.state, wire::ActorState::kDead);
  EXPECT_EQ(info.failure.cause,
            "node node-a is lost: not heard of for 5000 ms, and has not come back");
  Join(2, 4);
  Say(client_, again, 71);
  EXPECT_EQ(Last<wire::ActorUpdate>(client_).info.actor, again.spec.actor);
}

TEST_F(OutOfReachActors, HeadsThatAreRestartedAgainAndAgainDoNotPutItOff) {
  const ActorId actor = Make(1);
  Advance(seconds(6));
  for (int i = 0; i < 2; ++i) {
    Boot();
    client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
    Advance(seconds(34));
    EXPECT_EQ(Shown(actor).state, wire::ActorState::kUnavailable);
  }
  Boot();
  client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
  Advance(seconds(2));
  EXPECT_EQ(Shown(actor).state, wire::ActorState::kDead);
}

TEST_F(OutOfReachActors, AHeadOnAHostThatBootedMeanwhileWaitsAsLong) {
  const ActorId actor = Make(1);
  Advance(seconds(6));
  options_.boot_id = "another";
  Boot();
  client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
  Advance(seconds(74));
  EXPECT_EQ(Shown(actor).state, wire::ActorState::kUnavailable);
  Advance(seconds(2));
  EXPECT_EQ(Shown(actor).state, wire::ActorState::kDead);
}

TEST_F(OutOfReachActors, OneThatWasKilledMeanwhileEndsWhenItsNodeIsBack) {
  const ActorId actor = Make(1);
  Advance(seconds(6));
  wire::KillActor kill;
  kill.actor = actor;
  kill.no_restart = true;
  Say(client_, kill, 71);
  Return({actor});
  EXPECT_FALSE(Take<wire::EndActor>(node_.session).empty());
  EXPECT_EQ(Shown(actor).state, wire::ActorState::kDead);
}

// Actors that are started again: the life before may run on the node that was lost, and is waited
// for no longer than that.
class FormerLives : public OutOfReachActors {
 protected:
  void SetUp() override {
    OutOfReachActors::SetUp();
    actor_ = Restartable(2, 0);
    Advance(seconds(6));
    ASSERT_EQ(Shown(actor_).state, wire::ActorState::kPending);
    other_ = Join(2, 4);
    Advance(seconds(1));
    ASSERT_EQ(Shown(actor_).state, wire::ActorState::kPending)
        << "a node with room is not all it waits for";
  }
  ActorId Restartable(std::uint64_t number, std::uint64_t cpus) {
    wire::CreateActor create;
    create.spec.actor = ActorId(12, number);
    create.spec.class_name = "Counter";
    create.spec.max_restarts = -1;
    if (cpus > 0) create.spec.run_resources = Amounts(cpus);
    Say(client_, create, 60 + number);
    Serve(node_);
    StartActors(node_);
    EXPECT_EQ(Shown(create.spec.actor).state, wire::ActorState::kAlive);
    return create.spec.actor;
  }
  void Ended(std::uint64_t incarnation) {
    wire::ActorEnded ended;
    ended.actor = actor_;
    ended.incarnation = incarnation;
    Say(node_.session, ended);
    Advance(std::chrono::milliseconds(50));
  }
  void ExpectsNextLife() {
    EXPECT_EQ(Shown(actor_).state, wire::ActorState::kStarting) << Shown(actor_).waiting_for;
    EXPECT_EQ(Shown(actor_).address.incarnation, 2u);
  }

  ActorId actor_;
  FakeNode other_;
};

TEST_F(FormerLives, ANodeThatIsBackWithoutItHasEndedIt) {
  Return({});
  Advance(std::chrono::milliseconds(50));
  ExpectsNextLife();
}

TEST_F(FormerLives, ANodeThatIsBackWithItSaysWhenItHasEnded) {
  Return({actor_});
  EXPECT_EQ(Last<wire::EndActor>(node_.session).incarnation, 1u);
  Advance(std::chrono::milliseconds(50));
  EXPECT_EQ(Shown(actor_).state, wire::ActorState::kPending) << "two lives of one actor";
  EXPECT_EQ(Shown(actor_).waiting_for, "node node-a is to end its process of before");
  Ended(1);
  ExpectsNextLife();
}

TEST_F(FormerLives, AWorkerThatIsStartedAnewHasEndedIt) {
  wire::RegisterNode report;
  report.pid = 77;
  node_ = Join(1, 4, 0, report);
  Advance(std::chrono::milliseconds(50));
  ExpectsNextLife();
}

TEST_F(FormerLives, ANodeThatIsLostAgainHasItUntilItsNewFence) {
  Return({actor_});
  Advance(seconds(6));
  for (int i = 0; i < 68; ++i) {
    Say(other_.session, wire::Heartbeat());
    Advance(seconds(1));
  }
  EXPECT_EQ(Shown(actor_).state, wire::ActorState::kPending);
  Say(other_.session, wire::Heartbeat());
  Advance(seconds(2));
  ExpectsNextLife();
}

TEST_F(FormerLives, AHeadThatRestartsEveryMinuteDoesNotPutItOff) {
  for (int i = 0; i < 2; ++i) {
    Boot();
    other_ = Join(2, 4);
    client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
    for (int second = 0; second < 33; ++second) {
      Say(other_.session, wire::Heartbeat());
      Advance(seconds(1));
    }
    EXPECT_EQ(Shown(actor_).state, wire::ActorState::kPending);
  }
  Boot();
  other_ = Join(2, 4);
  client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
  for (int second = 0; second < 4; ++second) {
    Say(other_.session, wire::Heartbeat());
    Advance(seconds(1));
  }
  ExpectsNextLife();
}

TEST_F(FormerLives, AHeadThatRestartsBetweenTheReturnAndTheEndStillWaitsForIt) {
  Return({actor_});
  Boot();
  other_ = Join(2, 4);
  client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
  Advance(seconds(1));
  EXPECT_EQ(Shown(actor_).state, wire::ActorState::kPending);
  Return({actor_});
  EXPECT_EQ(Last<wire::EndActor>(node_.session).incarnation, 1u);
  Ended(1);
  ExpectsNextLife();
}

TEST_F(FormerLives, OneThatReservedSomethingIsPlacedAsSoon) {
  wire::CreateActor create;
  create.spec.actor = ActorId(12, 5);
  create.spec.class_name = "Counter";
  create.spec.max_restarts = -1;
  create.spec.run_resources = Amounts(3);
  Return({});
  Say(client_, create, 80);
  Advance(std::chrono::milliseconds(50));
  Serve(node_);
  Serve(other_);
  StartActors(node_);
  StartActors(other_);
  ASSERT_EQ(Shown(create.spec.actor).state, wire::ActorState::kAlive);
  actor_ = create.spec.actor;
  const FakeNode lost = Shown(actor_).node == node_.id ? node_ : other_;
  const FakeNode stays = Shown(actor_).node == node_.id ? other_ : node_;
  for (int i = 0; i < 7; ++i) {
    Say(stays.session, wire::Heartbeat());
    Advance(seconds(1));
  }
  ASSERT_EQ(Shown(actor_).state, wire::ActorState::kPending);
  wire::RegisterNode report;
  report.incarnation = lost.incarnation;
  const FakeNode back = Join(lost.id.lo, 4, 0, report);
  Advance(std::chrono::milliseconds(50));
  Serve(back);
  Serve(stays);
  ExpectsNextLife();
}

TEST_F(OutOfReachActors, AVerdictIsADeath) {
  const ActorId actor = Make(1);
  Feed(SessionClosed{node_.session});
  Feed(ProbeDone{node_.id, node_.incarnation, true});
  EXPECT_EQ(Shown(actor).state, wire::ActorState::kDead);
}

}  // namespace
}  // namespace troupe::head
