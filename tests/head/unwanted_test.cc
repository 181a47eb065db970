// Method: an actor whose handles are said to be gone, or to be where they are not counted, in every
// order, over a restart.
#include "head/core/machine/durable_text.h"
#include "head/core/machine/snapshot.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

class UnwantedActors : public HeadFixture {
 protected:
  void SetUp() override {
    node_ = Join(1, 4);
    client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
  }
  wire::CreateActor Named(std::uint64_t number) {
    wire::CreateActor create;
    create.spec.actor = ActorId(12, number);
    create.spec.name = "counter";
    create.spec.class_name = "Counter";
    create.spec.max_restarts = 3;
    return create;
  }
  ActorId Make(const wire::CreateActor& create) {
    Say(client_, create, 60);
    StartActors(node_);
    return create.spec.actor;
  }
  wire::ActorInfo Shown(ActorId actor) {
    Say(client_, wire::WatchActor{actor, false}, 90);
    return Last<wire::ActorUpdate>(client_).info;
  }
  bool Unwanted(ActorId actor) {
    wire::KillActor kill;
    kill.actor = actor;
    kill.unwanted = true;
    Say(client_, kill, 91);
    return Last<wire::ActorUpdate>(client_).info.unwanted;
  }
  void End(ActorId actor, const std::string& exception = {}) {
    wire::ActorEnded ended;
    ended.actor = actor;
    ended.incarnation = 1;
    ended.failure.cause = "exit code 0";
    Say(node_.session, ended, 0, exception);
  }

  FakeNode node_;
  SessionId client_;
};

TEST_F(UnwantedActors, EndsWithThatCauseAndDoesNotStartAgain) {
  const ActorId actor = Make(Named(1));
  EXPECT_TRUE(Unwanted(actor));
  EXPECT_TRUE(Take<wire::EndActor>(node_.session).empty()) << "who made it asks it to end";
  EXPECT_EQ(Shown(actor).state, wire::ActorState::kAlive);
  End(actor);
  EXPECT_EQ(Shown(actor).state, wire::ActorState::kDead);
  EXPECT_EQ(Shown(actor).failure.cause, "all references to the actor were removed");
  EXPECT_EQ(Shown(actor).failure.kind, wire::FailureKind::kUnreferenced);
}

TEST_F(UnwantedActors, AConstructorThatRaisedIsTheCause) {
  Say(client_, Named(1), 60);
  EXPECT_TRUE(Unwanted(ActorId(12, 1)));
  End(ActorId(12, 1), "a pickled exception");
  EXPECT_EQ(Shown(ActorId(12, 1)).failure.cause, "exit code 0");
}

TEST_F(UnwantedActors, ItsNameIsFreeBeforeItHasEnded) {
  const ActorId actor = Make(Named(1));
  Unwanted(actor);
  const ActorId next = Make(Named(2));
  EXPECT_EQ(Shown(next).state, wire::ActorState::kPending) << "AN-4: two of one name";
  End(actor);
  StartActors(node_);
  EXPECT_EQ(Shown(next).state, wire::ActorState::kAlive);
  wire::GetNamedActor named;
  named.name = "counter";
  Say(client_, named, 92);
  EXPECT_EQ(Last<wire::ActorUpdate>(client_).info.actor, next)
      << "the end of the one before takes nothing from it";
}

TEST_F(UnwantedActors, OneWithAHandleThatIsNotCountedIsWanted) {
  const ActorId actor = Make(Named(1));
  Say(client_, wire::WatchActor{actor, true}, 90);
  EXPECT_FALSE(Unwanted(actor));
  Boot();
  client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
  EXPECT_FALSE(Unwanted(actor)) << "a head that was started again knows of it";
}

TEST_F(UnwantedActors, ADetachedOneIsWanted) {
  wire::CreateActor create = Named(1);
  create.spec.detached = true;
  EXPECT_FALSE(Unwanted(Make(create)));
}

TEST_F(UnwantedActors, AHandleThatIsNotCountedComesTooLateThen) {
  const ActorId actor = Make(Named(1));
  EXPECT_TRUE(Unwanted(actor));
  Say(client_, wire::WatchActor{actor, true}, 90);
  EXPECT_TRUE(Last<wire::ActorUpdate>(client_).info.unwanted);
}

TEST_F(UnwantedActors, ASnapshotTellsTheSame) {
  const ActorId first = Make(Named(1));
  Unwanted(first);
  const ActorId second = Make(Named(2));
  Say(client_, wire::WatchActor{second, true}, 90);
  const std::string before = DurableText(core_->state());
  durable_ = SnapshotOf(core_->state());
  Boot();
  EXPECT_EQ(DurableText(core_->state()).substr(before.find("actor")),
            before.substr(before.find("actor")));
  client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
  EXPECT_TRUE(Shown(first).unwanted);
  EXPECT_FALSE(Unwanted(second));
  wire::GetNamedActor named;
  named.name = "counter";
  Say(client_, named, 92);
  EXPECT_EQ(Last<wire::ActorUpdate>(client_).info.actor, second);
}

}  // namespace
}  // namespace troupe::head
