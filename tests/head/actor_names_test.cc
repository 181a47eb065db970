// Method: actors with names are made, found, killed and given up, step by step and in random
// orders, also over a restart of the head; a name is found exactly while the actor that has it is
// not ending.
#include <algorithm>
#include <iterator>
#include <optional>
#include <random>
#include <set>

#include "head/core/snapshot.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

class ActorNames : public HeadFixture {
 protected:
  void SetUp() override {
    node_ = Join(1, 4);
    OpenClients();
  }
  void OpenClients() {
    maker_ = Open(wire::Role::kClient, Id128{9, 1}, true);
    other_ = Open(wire::Role::kClient, Id128{9, 2}, true);
  }
  wire::CreateActor Named(std::uint64_t number, bool get_if_exists = false) {
    wire::CreateActor create;
    create.spec.actor = ActorId(12, number);
    create.spec.name = "counter";
    create.spec.class_name = "Counter";
    create.spec.get_if_exists = get_if_exists;
    return create;
  }
  /// The actor that the answer names; nothing: refused.
  std::optional<ActorId> Ask(SessionId client, const wire::CreateActor& create) {
    sent_.clear();
    Say(client, create, 60);
    const std::vector<wire::ActorUpdate> answers = Take<wire::ActorUpdate>(client);
    StartActors(node_);
    return answers.empty() ? std::nullopt : std::optional<ActorId>(answers.front().info.actor);
  }
  std::optional<ActorId> Found(SessionId client) {
    sent_.clear();
    wire::GetNamedActor named;
    named.name = "counter";
    Say(client, named, 92);
    const std::vector<wire::ActorUpdate> answers = Take<wire::ActorUpdate>(client);
    return answers.empty() ? std::nullopt : std::optional<ActorId>(answers.front().info.actor);
  }
  void Kill(ActorId actor, bool no_restart = true) {
    wire::KillActor kill;
    kill.actor = actor;
    kill.no_restart = no_restart;
    Say(maker_, kill, 71);
  }
  bool GivenUp(ActorId actor) {
    wire::KillActor kill;
    kill.actor = actor;
    kill.unwanted = true;
    Say(maker_, kill, 91);
    return Last<wire::ActorUpdate>(maker_).info.unwanted;
  }
  void End(ActorId actor) {
    wire::ActorEnded ended;
    ended.actor = actor;
    ended.incarnation = core_->state().actors.at(actor).incarnation;
    ended.failure.cause = "exit code 0";
    Say(node_.session, ended);
  }
  void RestartHead(bool from_snapshot) {
    wire::RegisterNode report;
    report.incarnation = node_.incarnation;
    for (const auto& [id, actor] : core_->state().actors) {
      if (actor.live()) report.actors.push_back({id, actor.incarnation});
    }
    if (from_snapshot) durable_ = SnapshotOf(core_->state());
    Boot();
    node_ = Join(1, 4, 0, report);
    OpenClients();
  }

  FakeNode node_;
  SessionId maker_;
  SessionId other_;
};

TEST_F(ActorNames, AN1_WhatWasKilledIsNotFoundAndItsNameIsFreeAtOnce) {
  const ActorId first = *Ask(maker_, Named(1));
  Kill(first);
  EXPECT_EQ(Found(other_), std::nullopt) << "its process has not ended";
  EXPECT_EQ(Ask(maker_, Named(2)), ActorId(12, 2));
  EXPECT_EQ(Found(other_), ActorId(12, 2));
}

TEST_F(ActorNames, AN1_KilledSoThatItMayStartAgainItKeepsItsNameWhileItMay) {
  wire::CreateActor create = Named(1);
  create.spec.max_restarts = 1;
  const ActorId actor = *Ask(maker_, create);
  Kill(actor, /*no_restart=*/false);
  EXPECT_EQ(Found(other_), actor);
  End(actor);
  StartActors(node_);
  EXPECT_EQ(Found(other_), actor);
  Kill(actor, /*no_restart=*/false);
  EXPECT_EQ(Found(other_), std::nullopt) << "it was started again as often as it may be";
  EXPECT_EQ(Ask(maker_, Named(2)), ActorId(12, 2));
}

TEST_F(ActorNames, AN1_ARestartedHeadKnowsWhatWasKilled) {
  for (const bool from_snapshot : {false, true}) {
    const ActorId actor = *Ask(maker_, Named(from_snapshot ? 2 : 1));
    Kill(actor);
    RestartHead(from_snapshot);
    EXPECT_EQ(Found(other_), std::nullopt);
  }
}

TEST_F(ActorNames, AN2_TheEndOfTheOneBeforeTakesNothingFromTheNext) {
  const ActorId first = *Ask(maker_, Named(1));
  Kill(first);
  const ActorId next = *Ask(maker_, Named(2));
  End(first);
  EXPECT_EQ(Found(other_), next);
}

TEST_F(ActorNames, AN3_WhoFindsAnActorHasIt) {
  const ActorId actor = *Ask(maker_, Named(1));
  EXPECT_EQ(Ask(other_, Named(2, true)), actor);
  EXPECT_FALSE(GivenUp(actor)) << "its maker has heard nothing of it";
  RestartHead(false);
  EXPECT_FALSE(GivenUp(actor)) << "and a head that was started again knows of it";
}

TEST_F(ActorNames, AN3_ItsMakerCountsByItself) {
  const ActorId actor = *Ask(maker_, Named(1));
  EXPECT_EQ(Ask(maker_, Named(2, true)), actor);
  EXPECT_TRUE(GivenUp(actor));
  EXPECT_EQ(Ask(other_, Named(3, true)), ActorId(12, 3)) << "too late: another one";
}

TEST_F(ActorNames, AN3_ToLookItUpIsNotToHaveIt) {
  const ActorId actor = *Ask(maker_, Named(1));
  EXPECT_EQ(Found(other_), actor);
  EXPECT_TRUE(GivenUp(actor));
}

TEST_F(ActorNames, AN1_AN2_AN3_InRandomOrders) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    std::set<ActorId> there;     // processes that have not ended
    std::optional<ActorId> has;  // the name
    bool wanted = false;         // found by another process
    for (int step = 0; step < 60; ++step) {
      const ActorId next(100 + seed, static_cast<std::uint64_t>(step));
      wire::CreateActor create = Named(1, random() % 2 == 0);
      create.spec.actor = next;
      const SessionId who = random() % 2 == 0 ? maker_ : other_;
      switch (random() % 5) {
        case 0:
          if (!has) {
            ASSERT_EQ(Ask(maker_, create), next) << "seed " << seed << ", step " << step;
            has = next;
            wanted = false;
            there.insert(next);
          } else {
            ASSERT_EQ(Ask(who, create), create.spec.get_if_exists ? has : std::nullopt)
                << "seed " << seed << ", step " << step;
            wanted = wanted || (create.spec.get_if_exists && who == other_);
          }
          break;
        case 1:
          if (!has) break;
          Kill(*has);
          has.reset();
          break;
        case 2:
          if (!has) break;
          ASSERT_EQ(GivenUp(*has), !wanted) << "seed " << seed << ", step " << step;
          if (!wanted) has.reset();
          break;
        case 3: {
          if (there.empty()) break;
          const ActorId ended =
              *std::next(there.begin(), static_cast<std::ptrdiff_t>(random() % there.size()));
          there.erase(ended);
          End(ended);
          if (has == ended) has.reset();
          break;
        }
        default:
          if (random() % 4 == 0) RestartHead(random() % 2 == 0);
      }
      ASSERT_EQ(Found(other_), has) << "seed " << seed << ", step " << step;
    }
    if (has) Kill(*has);
    for (const ActorId& each : there) End(each);
  }
}

}  // namespace
}  // namespace troupe::head
