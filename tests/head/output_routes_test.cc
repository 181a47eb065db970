// Method: a program makes actors, one of them makes others; what the program is told of where their
// output is, over its own absence, restarts of actors and of the head.
#include "head/core/nodes/output_routes.h"

#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

const ActorId kFirst(12, 1);
const ActorId kNested(12, 2);

class ShownOutput : public HeadFixture {
 protected:
  void SetUp() override {
    node_ = Join(1, 4);
    client_ = Open(wire::Role::kClient, Id128{9, 1}, false);
  }
  static wire::CreateActor Creation(ActorId id, bool shown) {
    wire::CreateActor create;
    create.spec.actor = id;
    create.spec.class_name = "Counter";
    create.spec.max_restarts = 1;
    create.spec.shown = shown;
    return create;
  }
  void MakeBoth(bool shown) {
    Say(client_, Creation(kFirst, shown), 60);
    StartActors(node_);
    wire::Relay relay;
    relay.process = ProcessId(kFirst.hi, kFirst.lo);
    relay.actor = kFirst;
    SayFor(node_.session, relay, Creation(kNested, true), 61);
    StartActors(node_);
  }
  void EndProcess(ActorId actor) {
    wire::ActorEnded ended;
    ended.actor = actor;
    ended.incarnation = 1;
    Say(node_.session, ended);
  }
  std::vector<std::pair<ActorId, bool>> Told() {
    std::vector<std::pair<ActorId, bool>> told;
    for (const wire::OutputOf& output : Take<wire::OutputOf>(client_)) {
      EXPECT_EQ(output.node, node_.id);
      EXPECT_EQ(output.node_name, "node-a");
      EXPECT_EQ(output.class_name, "Counter");
      told.emplace_back(output.actor, output.ended);
    }
    return told;
  }
  using Events = std::vector<std::pair<ActorId, bool>>;

  FakeNode node_;
  SessionId client_;
};

TEST_F(ShownOutput, ItsProgramIsToldOfItAndOfThatOfWhatItMakes) {
  MakeBoth(true);
  EXPECT_EQ(Told(), (Events{{kFirst, false}, {kNested, false}}));
  EXPECT_EQ(Count<wire::OutputOf>(node_.session), 0u)
      << "the actor that made the other shows nothing";
}

TEST_F(ShownOutput, AnEndAndTheNextProcess) {
  MakeBoth(true);
  static_cast<void>(Told());
  EndProcess(kNested);
  Advance(std::chrono::seconds(1));
  EXPECT_EQ(Told(), (Events{{kNested, true}, {kNested, false}}));
}

TEST_F(ShownOutput, WhoDoesNotShowItIsToldNothing) {
  MakeBoth(false);
  EXPECT_EQ(Told(), Events());
}

TEST_F(ShownOutput, WhoComesBackIsToldOfWhatLives) {
  MakeBoth(true);
  static_cast<void>(Told());
  SessionClosed closed;
  closed.session = client_;
  Feed(closed);
  EndProcess(kNested);
  Advance(std::chrono::milliseconds(10));
  client_ = Open(wire::Role::kClient, Id128{9, 1}, false);
  const Events told = Told();
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.front(), (std::pair<ActorId, bool>{kFirst, false}));
}

TEST_F(ShownOutput, AHeadThatWasStartedAgainKnowsIt) {
  MakeBoth(true);
  Boot();
  wire::RegisterNode report;
  report.incarnation = node_.incarnation;
  for (const ActorId& actor : {kFirst, kNested}) report.actors.push_back({actor, 1});
  node_ = Join(1, 4, 0, report);
  client_ = Open(wire::Role::kClient, Id128{9, 1}, false);
  EXPECT_EQ(Told(), (Events{{kFirst, false}, {kNested, false}}));
}

}  // namespace
}  // namespace troupe::head
