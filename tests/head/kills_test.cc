// Method: an actor is killed while it waits for a place; what is left of its restarts is counted.
#include "head/core/placed/actor_lives.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

using Kills = HeadFixture;

TEST_F(Kills, OfAnActorThatWaitsForAPlaceUseUpItsRestarts) {
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  wire::CreateActor create;
  create.spec.actor = ActorId(8, 1);
  create.spec.resources = create.spec.run_resources = Amounts(1);
  create.spec.max_restarts = 1;
  create.spec.infeasible_waits = true;
  Say(client, create, 50);
  wire::KillActor kill;
  kill.actor = create.spec.actor;
  kill.no_restart = false;
  Say(client, kill, 51);
  const Actor& actor = core_->state().actors.at(kill.actor);
  EXPECT_EQ(actor.state, wire::ActorState::kPending);
  EXPECT_EQ(actor.restarts, 1u);
  const FakeNode node = Join(1, 1);
  Serve(node);
  StartActors(node);
  EXPECT_EQ(actor.state, wire::ActorState::kAlive);
  EXPECT_EQ(actor.incarnation, 2u);
  EXPECT_FALSE(MayRestart(actor));
  create.spec.actor = kill.actor = ActorId(8, 2);
  Say(client, create, 52);
  Say(client, kill, 53);
  Say(client, kill, 54);
  EXPECT_EQ(core_->state().actors.at(kill.actor).state, wire::ActorState::kDead);
}

}  // namespace
}  // namespace troupe::head
