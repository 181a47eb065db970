// Method: a node of 8 CPUs and 4 GPUs, an administrator, and clients by tokens of alice and bob.
// QT-1 to QT-5 of head/core/placed/people/quotas.h.
#include "head/core/placed/people/quotas.h"

#include "head/core/machine/snapshot.h"
#include "tests/head/people/people_fixture.h"

namespace troupe::head {
namespace {

using placement::kUnit;
using wire::CapKind;

class Quotas : public PeopleFixture {
 protected:
  void RestartFromSnapshot() {
    durable_ = SnapshotOf(core_->state());
    Start();
  }

  FakeNode node_ = Join(1, 8, 4);
  SessionId alice_ = OpenAs("alice");
  SessionId bob_ = OpenAs("bob");
};

TEST_F(Quotas, QT1_WhatIsOverACapWaitsAndSaysForWhich) {
  SetQuota("alice", {{CapKind::kCpus, 2 * kUnit}});
  const LaunchId first = SubmitOne(alice_, 1);
  SubmitOne(alice_, 1);
  const LaunchId third = SubmitOne(alice_, 1);
  const LaunchId of_bob = SubmitOne(bob_, 6);
  Answer(node_);
  EXPECT_TRUE(Runs(of_bob)) << "QT-3: nobody waits for another's quota";
  EXPECT_FALSE(Runs(third));
  EXPECT_EQ(Info(third).waiting_for,
            "quota: the quota of alice is 2 CPUs (2 in use); this asks for 1 CPU");
  EXPECT_EQ(Info(third).user, "alice");
  wire::GetGroup explain;
  explain.group = LaunchOf(third).group;
  explain.explain = true;
  Say(alice_, explain, 60);
  EXPECT_EQ(Last<wire::GroupUpdate>(alice_).info.reason.find("quota: the quota of alice"), 0u);
  End(node_, first);
  EXPECT_TRUE(Runs(third));
  CheckAccounts();
}

TEST_F(Quotas, QT1_RunningLaunchesGroupsAndActorsAreHeldToTheCaps) {
  SetQuota("alice", {{CapKind::kRunning, 1}, {CapKind::kGpus, 2 * kUnit}});
  const LaunchId first = SubmitOne(alice_, 1);
  const LaunchId second = SubmitOne(alice_, 1);
  wire::CreateGroup group;
  group.group = GroupId(4, 4);
  group.bundles.resize(2);
  for (wire::Bundle& bundle : group.bundles) bundle.resources = Amounts(0, 1);
  Say(alice_, group, 50);
  wire::CreateActor actor;
  actor.spec.actor = ActorId(12, 1);
  actor.spec.class_name = "A";
  actor.spec.run_resources = Amounts(0, 1);
  Say(alice_, actor, 51);
  Answer(node_);
  EXPECT_TRUE(Runs(first));
  EXPECT_EQ(Info(second).waiting_for.find("quota: the quota of alice is 1 running launch"), 0u);
  EXPECT_EQ(core_->state().groups.at(group.group).state, wire::GroupState::kCreated);
  EXPECT_EQ(core_->state().actors.at(actor.spec.actor).state, wire::ActorState::kPending);
  EXPECT_EQ(UsageOfUser("alice").running, 1u);
  EXPECT_EQ(UsageOfUser("alice").queued, 1u);
  Say(alice_, wire::RemoveGroup{group.group}, 52);
  Answer(node_);
  EXPECT_EQ(core_->state().actors.at(actor.spec.actor).state, wire::ActorState::kStarting);
  CheckAccounts();
}

TEST_F(Quotas, QT1_WhatRunsWhenACapIsLoweredGoesOnAndARaiseIsHeededAtOnce) {
  const LaunchId first = SubmitOne(alice_, 4);
  Answer(node_);
  SetQuota("alice", {{CapKind::kCpus, kUnit}});
  const LaunchId second = SubmitOne(alice_, 1);
  Answer(node_);
  EXPECT_TRUE(Runs(first));
  EXPECT_FALSE(Runs(second));
  wire::SetQuota lift;
  lift.user = "alice";
  lift.lifted = {CapKind::kCpus};
  Say(admin_, lift, 3);
  EXPECT_TRUE(Last<wire::UsageList>(admin_).users.at(0).caps.empty());
  Answer(node_);
  EXPECT_TRUE(Runs(second));
}

TEST_F(Quotas, QT2_WhatCouldNeverStartIsRefusedWithCapAndUse) {
  SetQuota("alice", {{CapKind::kGpus, 2 * kUnit}, {CapKind::kCpus, 4 * kUnit}});
  SubmitOne(alice_, 1, 1);
  Answer(node_);
  EXPECT_TRUE(SubmitOne(alice_, 1, 3).IsNil());
  EXPECT_EQ(LastError(alice_), ErrorCode::kInfeasible);
  EXPECT_EQ(Refusal(alice_).find("this asks for 3 GPUs and could never start: the quota of alice "
                                 "is 2 GPUs (1 in use)"),
            0u);
  wire::CreateGroup group;
  group.group = GroupId(4, 4);
  group.bundles.resize(5);
  for (wire::Bundle& bundle : group.bundles) bundle.resources = Amounts(1);
  Say(alice_, group, 50);
  EXPECT_EQ(LastError(alice_), ErrorCode::kInfeasible);
  wire::CreateActor actor;
  actor.spec.actor = ActorId(12, 1);
  actor.spec.class_name = "A";
  actor.spec.run_resources = Amounts(5);
  Say(alice_, actor, 51);
  EXPECT_EQ(LastError(alice_), ErrorCode::kInfeasible);
  EXPECT_EQ(Refusal(alice_).find("this asks for 5 CPUs"), 0u);
  EXPECT_FALSE(SubmitOne(bob_, 8, 4).IsNil());
}

TEST_F(Quotas, QT2_NoMoreMayWaitThanTheCapSays) {
  SetQuota("alice", {{CapKind::kRunning, 1}, {CapKind::kQueued, 2}});
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(SubmitOne(alice_, 1).IsNil());
  EXPECT_TRUE(SubmitOne(alice_, 1).IsNil());
  EXPECT_EQ(LastError(alice_), ErrorCode::kTooLarge);
  EXPECT_EQ(Refusal(alice_).find("no more launches of alice may wait: the quota of alice is 2 "
                                 "waiting launches (2 now)"),
            0u);
}

TEST_F(Quotas, QT2_ALaunchThatAJobMakesCountsByWhatItHoldsAlone) {
  SetQuota("alice", {{CapKind::kRunning, 1}, {CapKind::kQueued, 1}});
  Say(alice_, wire::CreateToken(), 4);
  const TokenId token = Last<wire::TokenCreated>(alice_).id;
  wire::SubmitLaunch job;
  job.spec.ranks = 1;
  job.spec.per_rank = Amounts(1);
  job.spec.detached = true;
  wire::EnvVar& variable = job.spec.environment.env.emplace_back();
  variable.name = kJobTokenId;
  variable.value = token.Hex();
  job.request = RequestId(12, 1);
  Say(alice_, job, 5);
  Answer(node_);
  const SessionId inside = OpenBy(token);
  const LaunchId nested = Submit(inside, 1);
  Answer(node_);
  EXPECT_TRUE(Runs(nested)) << "its job would wait for ever";
  EXPECT_EQ(LaunchOf(nested).user, "alice") << "the token of the job is its submitter's";
  const LaunchId detached = SubmitOne(inside, 1);
  Answer(node_);
  EXPECT_FALSE(Runs(detached)) << "a job that a job submits is a job";
  EXPECT_EQ(UsageOfUser("alice").running, 1u);
}

TEST_F(Quotas, QT4_WhatHasWaitedLongForTheQuotaIsLeftWhatItNeeds) {
  SetQuota("alice", {{CapKind::kCpus, 4 * kUnit}});
  const LaunchId first = SubmitOne(alice_, 2);
  const LaunchId second = SubmitOne(alice_, 1);
  const LaunchId large = SubmitOne(alice_, 4);
  Answer(node_);
  Advance(std::chrono::hours(9));
  End(node_, second);
  const LaunchId small = SubmitOne(alice_, 1);
  Answer(node_);
  EXPECT_FALSE(Runs(small)) << "there is room under the cap, but another one waits for it";
  End(node_, first);
  EXPECT_TRUE(Runs(large));
  End(node_, large);
  EXPECT_TRUE(Runs(small));
}

TEST_F(Quotas, QT5_OnlyTheAdministratorSetsQuotasAndMakesTokensForOthers) {
  wire::SetQuota quota;
  quota.user = "alice";
  quota.caps = {{CapKind::kGpus, 4 * kUnit}};
  Say(alice_, quota, 5);
  EXPECT_EQ(LastError(alice_), ErrorCode::kInvalid);
  EXPECT_EQ(Refusal(alice_).find("only the administrator of this cluster sets quotas: the user "
                                 "that its head runs as (root). You are alice"),
            0u);
  wire::CreateToken create;
  create.user = "bob";
  Say(alice_, create, 6);
  EXPECT_EQ(Refusal(alice_).find("only the administrator of this cluster makes tokens for others"),
            0u);
  create.user = "two words";
  Say(admin_, create, 7);
  EXPECT_EQ(Refusal(admin_).find("the name of an owner begins with a letter or digit"), 0u);
  quota.user = "-x";
  Say(admin_, quota, 8);
  EXPECT_EQ(LastError(admin_), ErrorCode::kInvalid);
  EXPECT_EQ(core_->state().users.by_name.count("-x"), 0u);
}

TEST_F(Quotas, QT5_WhoComesByATokenThatIsNotKnownIsNoAdministrator) {
  const SessionId stranger = OpenBy(TokenId(1, 77));
  SubmitOne(stranger, 1);
  wire::SetQuota quota;
  quota.user = "alice";
  Say(stranger, quota, 5);
  EXPECT_EQ(LastError(stranger), ErrorCode::kInvalid);
}

TEST_F(Quotas, AC2_QuotasAndWhatWasHeldOutliveTheHead) {
  SetQuota("alice", {{CapKind::kGpus, 2 * kUnit}, {CapKind::kQueued, 5}});
  const LaunchId launch = SubmitOne(alice_, 4, 1);
  const LaunchId waits = SubmitOne(alice_, 1, 2);
  Answer(node_);
  Advance(std::chrono::hours(6));
  Feed(Tick());
  Advance(std::chrono::seconds(1));
  const double share = UsageOfUser("alice").share;
  EXPECT_NEAR(share, 0.125, 0.001);  // half of the CPUs for a quarter of a day
  for (const bool snapshot : {false, true}) {
    if (snapshot) {
      RestartFromSnapshot();
    } else {
      Start();
    }
    const wire::UserUsage usage = UsageOfUser("alice");
    EXPECT_NEAR(usage.share, share, 0.004);
    ASSERT_EQ(usage.caps.size(), 2u);
    EXPECT_EQ(usage.caps[1].kind, CapKind::kQueued);
    EXPECT_EQ(usage.caps[1].most, 5u);
    EXPECT_EQ(usage.running, 1u);
    EXPECT_EQ(usage.queued, 1u);
    EXPECT_EQ(LaunchOf(launch).user, "alice");
    EXPECT_EQ(LaunchOf(waits).user, "alice");
    CheckAccounts();
  }
}

TEST_F(Quotas, WhatARankMakesIsItsLaunchs) {
  const LaunchId launch = Submit(bob_, 1, 1, wire::LaunchMode::kDriver);
  Answer(node_);
  wire::CreateActor create;
  create.spec.actor = ActorId(14, 1);
  create.spec.class_name = "B";
  SayFor(node_.session, DriverOf(launch), create);
  EXPECT_EQ(core_->state().actors.at(create.spec.actor).user, "bob");
  Say(bob_, wire::GetUsage{"", true}, 9);
  EXPECT_EQ(Last<wire::UsageList>(bob_).asker, "bob");
  Say(admin_, wire::ListTokens(), 10);
  std::set<std::string> owners;
  for (const wire::TokenInfo& token : Last<wire::TokenList>(admin_).tokens)
    owners.insert(token.user);
  EXPECT_EQ(owners, (std::set<std::string>{"alice", "bob"}));
}

}  // namespace
}  // namespace troupe::head
