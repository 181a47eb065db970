// Method: an actor whose process waits for what its maker is to bring, seen by its maker, over
// restarts of the process.
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

class AwaitingActors : public HeadFixture {
 protected:
  void SetUp() override {
    node_ = Join(1, 4);
    client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
    wire::CreateActor create;
    create.spec.actor = ActorId(12, 1);
    create.spec.class_name = "Counter";
    create.spec.max_restarts = 3;
    Say(client_, create, 60);
  }
  void Started(std::uint64_t incarnation, bool awaits, std::uint64_t pid) {
    wire::ActorStarted started;
    started.actor = ActorId(12, 1);
    started.incarnation = incarnation;
    started.awaits = awaits;
    started.address.pid = static_cast<std::int32_t>(pid);
    started.address.incarnation = incarnation;
    Say(node_.session, started);
  }
  wire::ActorInfo Shown() {
    Say(client_, wire::WatchActor{ActorId(12, 1), false}, 90);
    return Last<wire::ActorUpdate>(client_).info;
  }

  FakeNode node_;
  SessionId client_;
};

TEST_F(AwaitingActors, ItsMakerIsToldWhereAndItIsNotAlive) {
  static_cast<void>(Take<wire::ActorUpdate>(client_));
  Started(1, true, 501);
  const std::vector<wire::ActorUpdate> told = Take<wire::ActorUpdate>(client_);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].info.state, wire::ActorState::kStarting);
  EXPECT_EQ(told[0].info.address.pid, 501);
  EXPECT_EQ(told[0].info.address.incarnation, 1u);
  EXPECT_EQ(Shown().address.pid, 501) << "who asks anew hears of it";
  Started(1, false, 501);
  EXPECT_EQ(Shown().state, wire::ActorState::kAlive);
  Started(1, true, 501);
  EXPECT_EQ(Shown().state, wire::ActorState::kAlive) << "a word that came late";
}

TEST_F(AwaitingActors, A1_NobodyIsToldOfTheAddressOfAFormerLife) {
  Started(1, false, 501);
  ASSERT_EQ(Shown().address.pid, 501);
  wire::ActorEnded ended;
  ended.actor = ActorId(12, 1);
  ended.incarnation = 1;
  ended.failure.cause = "SIGKILL";
  Say(node_.session, ended);
  Advance(std::chrono::milliseconds(100));
  ASSERT_EQ(Shown().state, wire::ActorState::kStarting);
  EXPECT_EQ(Shown().address.pid, 0) << "its process before is gone";
  EXPECT_EQ(Shown().address.incarnation, 2u);
  Boot();
  client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
  ASSERT_EQ(Shown().state, wire::ActorState::kStarting);
  EXPECT_EQ(Shown().address.pid, 0) << "nor does a head that was started again know better";
}

TEST_F(AwaitingActors, TheNextProcessAwaitsItAnew) {
  Started(1, true, 501);
  wire::ActorEnded ended;
  ended.actor = ActorId(12, 1);
  ended.incarnation = 1;
  ended.failure.cause = "SIGKILL";
  Say(node_.session, ended);
  EXPECT_NE(Shown().state, wire::ActorState::kDead);
  EXPECT_EQ(Shown().address.pid, 0) << "that process is gone";
  Advance(std::chrono::milliseconds(100));
  ASSERT_EQ(Shown().state, wire::ActorState::kStarting);
  EXPECT_EQ(Shown().address.pid, 0);
  Started(2, true, 502);
  EXPECT_EQ(Shown().address.pid, 502);
  EXPECT_EQ(Shown().address.incarnation, 2u);
}

}  // namespace
}  // namespace troupe::head
