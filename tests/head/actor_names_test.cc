// Method: actors with names are made, found, killed and given up, step by step and in random
// orders, also over a restart of the head; a name is found exactly while the actor that has it is
// not ending, and no node is told to start an actor while another one of its name may still run.
#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "head/core/machine/snapshot.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

using std::chrono::seconds;

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
    Run(node_);
    return answers.empty() ? std::nullopt : std::optional<ActorId>(answers.front().info.actor);
  }
  /// The node does what it was told: actors run.
  void Run(const FakeNode& node) {
    Serve(node);
    Serve(node);  // released names may be asked for
    for (const wire::StartActor& start : Take<wire::StartActor>(node.session)) {
      runs_[start.actor] = start.incarnation;
      wire::ActorStarted started;
      started.actor = start.actor;
      started.incarnation = start.incarnation;
      Say(node.session, started);
    }
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
    ended.incarnation = runs_.at(actor);
    ended.failure.cause = "exit code 0";
    runs_.erase(actor);
    Say(node_.session, ended);
    Run(node_);
  }
  wire::ActorInfo Shown(ActorId actor) {
    Say(other_, wire::WatchActor{actor, false}, 90);
    return Last<wire::ActorUpdate>(other_).info;
  }
  /// Time passes, of these nodes not silently.
  void Beat(const std::vector<FakeNode>& nodes, Duration by) {
    for (const Instant end = now_ + by; now_ < end;) {
      for (const FakeNode& node : nodes) Say(node.session, wire::Heartbeat());
      Advance(std::min<Duration>(end - now_, seconds(1)));
    }
  }
  void Return() {
    wire::RegisterNode report;
    report.incarnation = node_.incarnation;
    for (const auto& [id, incarnation] : runs_) report.actors.push_back({id, incarnation});
    node_ = Join(1, 4, 0, report);
  }
  void RestartHead(bool from_snapshot) {
    if (from_snapshot) durable_ = SnapshotOf(core_->state());
    Boot();
    Return();
    OpenClients();
    Run(node_);
  }

  std::set<ActorId> Running() const {
    std::set<ActorId> running;
    for (const auto& [id, incarnation] : runs_) running.insert(id);
    return running;
  }

  std::map<ActorId, std::uint64_t> runs_;  // the lives whose processes have not ended
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

TEST_F(ActorNames, AN4_TheNextOneStartsOnceTheProcessOfTheOneBeforeHasEnded) {
  const ActorId first = *Ask(maker_, Named(1));
  Kill(first);
  const ActorId next = *Ask(maker_, Named(2));
  EXPECT_EQ(Running(), std::set<ActorId>{first});
  EXPECT_EQ(Shown(next).state, wire::ActorState::kPending);
  EXPECT_EQ(Shown(next).waiting_for,
            "the former actor 'counter' on node node-a, which is to end it");
  End(first);
  EXPECT_EQ(Running(), std::set<ActorId>{next});
}

TEST_F(ActorNames, AN4_OneThatNobodyWantsFirstDoesWhatItWasAsked) {
  wire::CreateActor large = Named(1);
  large.spec.run_resources = Amounts(4);
  wire::CreateActor before = large;
  before.spec.actor = ActorId(12, 3);
  before.spec.name.clear();
  Ask(maker_, before);
  const ActorId first = *Ask(maker_, large);
  EXPECT_TRUE(GivenUp(first));
  const ActorId next = *Ask(maker_, Named(2));
  EXPECT_EQ(Running(), std::set<ActorId>{before.spec.actor});
  EXPECT_EQ(Shown(next).waiting_for,
            "the former actor 'counter', which first does what it was asked");
  End(before.spec.actor);
  EXPECT_EQ(Running(), std::set<ActorId>{first});
  End(first);
  EXPECT_EQ(Running(), std::set<ActorId>{next});
}

TEST_F(ActorNames, AN4_OneThatNoNodeCanHoldKeepsNobodyWaitingAndStartsAtNoWrongTime) {
  wire::CreateActor large = Named(1);
  large.spec.run_resources = Amounts(8);
  large.spec.infeasible_waits = true;
  const ActorId first = *Ask(maker_, large);
  EXPECT_TRUE(GivenUp(first));
  wire::CreateActor small = Named(2);
  small.spec.run_resources = Amounts(1);
  Say(maker_, small, 60);
  EXPECT_EQ(Count<wire::Reserve>(node_.session), 1u);
  const FakeNode big = Join(2, 8);
  Run(big);
  EXPECT_EQ(Running(), std::set<ActorId>{first}) << "its reservation was there first";
  Run(node_);
  EXPECT_EQ(Running(), std::set<ActorId>{first});
  wire::ActorEnded ended;
  ended.actor = first;
  ended.incarnation = 1;
  Say(big.session, ended);
  runs_.clear();
  Beat({node_, big}, seconds(3));
  Run(node_);
  Run(big);
  EXPECT_EQ(Running(), std::set<ActorId>{small.spec.actor});
}

TEST_F(ActorNames, AN4_WhatWasKilledBeforeItsNodeHeardOfItIsOverWhenThatIsBack) {
  Say(maker_, Named(1), 60);
  Take<wire::StartActor>(node_.session);
  Kill(ActorId(12, 1));
  Feed(SessionClosed{node_.session});
  const ActorId next = *Ask(maker_, Named(2));
  Return();
  Run(node_);
  EXPECT_TRUE(runs_.empty()) << "its end may be on its way";
  Say(node_.session, wire::Heartbeat());
  Run(node_);
  EXPECT_EQ(Running(), std::set<ActorId>{next});
}

// How the actor that had the name came to its end, while its node does not answer.
enum class EndBy : std::uint8_t { kKill, kLastHandle, kOwner, kGroup, kKillOfItsNextLife };

class NamesOnASilentNode : public ActorNames, public ::testing::WithParamInterface<EndBy> {
 protected:
  void SetUp() override {
    ActorNames::SetUp();
    wire::CreateActor create = Named(1);
    if (GetParam() == EndBy::kKillOfItsNextLife) create.spec.max_restarts = -1;
    if (GetParam() == EndBy::kGroup) {
      wire::CreateGroup group;
      group.group = create.spec.group = group_;
      group.name = "counters";
      group.bundles.resize(1);
      group.bundles[0].resources = create.spec.run_resources = Amounts(1);
      Say(maker_, group, 50);
      Serve(node_);
    }
    former_ = *Ask(maker_, create);
    ASSERT_EQ(Running(), std::set<ActorId>{former_});
    spare_ = Join(2, 4);
  }
  /// The former actor's end is decided, and the next one made, by another caller.
  void Replace() {
    if (GetParam() == EndBy::kKillOfItsNextLife) Beat({spare_}, seconds(6));
    switch (GetParam()) {
      case EndBy::kKill:
      case EndBy::kKillOfItsNextLife:
        Kill(former_);
        break;
      case EndBy::kLastHandle:
        EXPECT_TRUE(GivenUp(former_));
        break;
      case EndBy::kOwner:
        Feed(SessionClosed{maker_});
        break;
      case EndBy::kGroup:
        Say(maker_, wire::RemoveGroup{group_}, 51);
        break;
    }
    sent_.clear();
    Say(other_, Named(2), 60);
    ASSERT_EQ(Last<wire::ActorUpdate>(other_).info.actor, next_) << "the name has passed";
    ASSERT_EQ(Found(other_), next_);
  }
  std::size_t Starts() { return Count<wire::StartActor>(spare_.session); }

  const GroupId group_{13, 1};
  const ActorId next_{12, 2};
  ActorId former_;
  FakeNode spare_;
};

TEST_P(NamesOnASilentNode, AN4_TheNextOneStartsWhenTheNodeHasFencedTheOneBefore) {
  Replace();
  const Duration heard = GetParam() == EndBy::kKillOfItsNextLife ? seconds(6) : seconds(0);
  Beat({spare_}, seconds(4));
  EXPECT_EQ(Starts(), 0u);
  const std::string left = std::to_string(71 - std::chrono::ceil<seconds>(heard).count());
  const std::string how = heard > seconds(0) ? "is lost" : "does not answer";
  EXPECT_EQ(Shown(next_).waiting_for, "the former actor 'counter' on node node-a, which " + how +
                                          ": it is fenced in " + left + " s at the latest");
  for (const bool from_snapshot : {false, true}) {
    Beat({spare_}, seconds(30) - (from_snapshot ? heard : seconds(0)));
    EXPECT_EQ(Starts(), 0u) << Shown(next_).waiting_for;
    if (from_snapshot) durable_ = SnapshotOf(core_->state());
    Boot();
    spare_ = Join(2, 4);
    other_ = Open(wire::Role::kClient, Id128{9, 2}, true);
  }
  Beat({spare_}, seconds(10));
  EXPECT_EQ(Starts(), 0u) << Shown(next_).waiting_for;
  Beat({spare_}, seconds(2));
  EXPECT_EQ(Starts(), 1u) << Shown(next_).waiting_for;
}

TEST_P(NamesOnASilentNode, AN4_OrWhenTheNodeIsBackAndSaysThatItHasEnded) {
  Replace();
  Beat({spare_}, seconds(7));
  Return();
  Beat({spare_, node_}, seconds(1));
  EXPECT_EQ(Count<wire::EndActor>(node_.session) == 0, GetParam() == EndBy::kLastHandle)
      << "only its maker ends one that nobody wants";
  EXPECT_EQ(Starts() + Count<wire::StartActor>(node_.session), 0u);
  wire::ActorEnded ended;
  ended.actor = former_;
  ended.incarnation = 1;
  Say(node_.session, ended);
  EXPECT_EQ(Starts() + Count<wire::StartActor>(node_.session), 1u) << Shown(next_).waiting_for;
}

TEST_P(NamesOnASilentNode, AN4_OrWhenItsWorkerIsKnownToHaveEnded) {
  Replace();
  Feed(SessionClosed{node_.session});
  EXPECT_EQ(Starts(), 0u);
  if (GetParam() == EndBy::kKillOfItsNextLife) {  // the node is lost: another worker is there
    node_ = Join(1, 4);
  } else {
    Feed(ProbeDone{node_.id, node_.incarnation, true});
  }
  Beat({spare_}, seconds(1));
  EXPECT_EQ(Starts() + Count<wire::StartActor>(node_.session), 1u) << Shown(next_).waiting_for;
}

INSTANTIATE_TEST_SUITE_P(HoweverItEnds, NamesOnASilentNode,
                         ::testing::Values(EndBy::kKill, EndBy::kLastHandle, EndBy::kOwner,
                                           EndBy::kGroup, EndBy::kKillOfItsNextLife));

TEST_F(ActorNames, AN1_AN2_AN3_AN4_InRandomOrders) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    runs_.clear();
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
          if (runs_.empty()) break;
          const ActorId ended = runs_.begin()->first;
          if (has == ended) has.reset();
          End(ended);
          break;
        }
        default:
          if (random() % 4 == 0) RestartHead(random() % 2 == 0);
      }
      ASSERT_EQ(Found(other_), has) << "seed " << seed << ", step " << step;
      ASSERT_LE(runs_.size(), 1u) << "seed " << seed << ", step " << step;
    }
    if (has) Kill(*has);
    while (!runs_.empty()) End(runs_.begin()->first);
  }
}

}  // namespace
}  // namespace troupe::head
