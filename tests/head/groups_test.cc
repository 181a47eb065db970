// Method: nodes answer reservations by hand, late, wrongly or not at all; the state and what the
// nodes are told are compared with the placement-group specification. Names carry its invariants.
#include "head/core/placed/groups.h"

#include "head/core/nodes/node_views.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

class Groups : public HeadFixture {
 protected:
  void Create(SessionId client, GroupId id, std::size_t bundles, std::uint64_t cpus,
              wire::Strategy strategy = wire::Strategy::kPack) {
    wire::CreateGroup create;
    create.group = id;
    create.strategy = strategy;
    for (std::size_t i = 0; i < bundles; ++i) {
      create.bundles.emplace_back();
      create.bundles.back().index = static_cast<std::uint32_t>(i);
      create.bundles.back().resources = Amounts(cpus);
    }
    Say(client, create, 50);
  }
  /// Grants a launch's reservations at all of these nodes, and returns that variable of each start
  /// of ranks that follows; "unset" where it has none.
  std::vector<std::string> StartedWith(const std::vector<FakeNode>& nodes, std::string_view name) {
    for (const FakeNode& node : nodes) Grant(node);
    std::vector<std::string> values;
    for (const FakeNode& node : nodes) {
      for (const wire::StartRanks& start : Take<wire::StartRanks>(node.session)) {
        values.emplace_back("unset");
        for (const wire::EnvVar& each : start.environment.env) {
          if (each.name == name) values.back() = each.value;
        }
      }
    }
    return values;
  }
  const Group& GroupOf(GroupId id) const { return core_->state().groups.at(id); }
  const GroupId id_{4, 4};
};

TEST_F(Groups, P2_CreatedOnlyWhenEveryNodeAnswered) {
  const FakeNode a = Join(1, 2);
  const FakeNode b = Join(2, 2);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  Create(client, id_, 2, 1, wire::Strategy::kStrictSpread);
  Serve(a);
  EXPECT_EQ(GroupOf(id_).state, wire::GroupState::kPending);
  Serve(b);
  EXPECT_EQ(GroupOf(id_).state, wire::GroupState::kCreated);
  EXPECT_EQ(Last<wire::GroupUpdate>(client).info.state, wire::GroupState::kCreated);
  wire::GetGroup get;
  get.group = id_;
  Say(client, get, 51);
  EXPECT_EQ(Last<wire::GroupUpdate>(client).info.places.size(), 2u);
}

// Labels with the nodes' networks decide the ports their ranks are told; ranks without GPUs have no
// use for them, and neither has a launch on one node.
TEST_F(Groups, NodesOfALaunchWithGpusAreToldTheRdmaPortsByWhichTheyReachEachOther) {
  const auto with_port = [](const std::string& name) {
    wire::RegisterNode report;
    report.labels.push_back(
        {"troupe.io/fabric", "rdma " + name + " InfiniBand ACTIVE 400000 - ib0 fe80000000000000;"});
    return report;
  };
  const FakeNode a = Join(1, 8, 2, with_port("mlx5_0:1"));
  const FakeNode b = Join(2, 8, 2, with_port("mlx5_4:1"));
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  const auto told = [&](std::uint32_t ranks, std::uint64_t cpus, std::uint64_t gpus) {
    wire::SubmitLaunch submit;
    submit.spec.ranks = ranks;
    submit.spec.mode = wire::LaunchMode::kDistributed;
    submit.spec.per_rank = Amounts(cpus, gpus);
    submit.request = RequestId(11, 100 * ranks + 10 * cpus + gpus);
    Say(client, submit, 70);
    return StartedWith({a, b}, "TROUPE_RDMA_PORTS");
  };
  EXPECT_EQ(told(2, 5, 1), (std::vector<std::string>{"=mlx5_0:1", "=mlx5_4:1"}));
  EXPECT_EQ(told(2, 2, 0), (std::vector<std::string>{"unset", "unset"}));
  EXPECT_EQ(told(1, 1, 1), (std::vector<std::string>{"unset"}));
}

// The node that serves the store of a launch is told whom its fence admits: the launch's nodes, and
// no other node of the cluster; and that nodes may come to the launch later where they may.
TEST_F(Groups, WhoServesTheStoreOfALaunchIsToldTheAddressesOfItsNodes) {
  const auto with_address = [](const std::string& address) {
    wire::RegisterNode report;
    report.labels.push_back({"troupe.io/fabric", "if eth0 up 0 " + address + "/24;"});
    return report;
  };
  const FakeNode a = Join(1, 4, 0, with_address("10.1.0.1"));
  const FakeNode b = Join(2, 4, 0, with_address("10.1.0.2"));
  Join(3, 1, 0, with_address("10.1.0.3"));
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  const auto told = [&](wire::RankDeath on_death) {
    wire::SubmitLaunch submit;
    submit.spec.ranks = 2;
    submit.spec.on_rank_death = on_death;
    submit.spec.strategy = wire::Strategy::kStrictSpread;
    submit.spec.mode = wire::LaunchMode::kDistributed;
    submit.spec.per_rank = Amounts(2, 0);
    submit.request = RequestId(11, 1 + static_cast<std::uint64_t>(on_death));
    Say(client, submit, 70);
    return StartedWith({a, b}, "TROUPE_STORE_PEERS");
  };
  const std::vector<std::string> values = told(wire::RankDeath::kFail);
  ASSERT_EQ(values.size(), 2u);
  EXPECT_NE(values[0].find("10.1.0.1 10.1.0.2"), std::string::npos) << values[0];
  EXPECT_EQ(values[0].find("10.1.0.3"), std::string::npos) << values[0];
  EXPECT_EQ(values[1], "unset");
  for (const std::string& each : told(wire::RankDeath::kReplace)) {
    EXPECT_EQ(each.substr(0, 2), "+ ") << each;
    EXPECT_NE(each.find("10.1.0.1 10.1.0.2"), std::string::npos) << each;
    EXPECT_EQ(each.find("10.1.0.3"), std::string::npos) << each;
  }
}

TEST_F(Groups, ALaunchOverNodesHasItsRanksOnThatManyAlthoughOneCouldHoldAll) {
  const std::vector<FakeNode> nodes = {Join(1, 8), Join(2, 8), Join(3, 8)};
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  wire::SubmitLaunch submit;
  submit.spec.ranks = 4;
  submit.spec.ranks_per_node = 2;  // older clients send it
  submit.spec.per_rank = Amounts(1);
  submit.request = RequestId(11, 1);
  Say(client, submit, 60);
  const LaunchId launch = Last<wire::LaunchAccepted>(client).launch;
  for (int round = 0; round < 2; ++round) {
    for (const FakeNode& node : nodes) Serve(node);
  }
  const std::vector<Rank>& ranks = LaunchOf(launch).ranks;
  ASSERT_EQ(ranks.size(), 4u);
  EXPECT_EQ(ranks[0].node, ranks[1].node);
  EXPECT_EQ(ranks[2].node, ranks[3].node);
  EXPECT_NE(ranks[0].node, ranks[2].node);
  EXPECT_EQ(ranks[3].local_rank, 1u);
  submit.spec.ranks = 5;
  submit.request = RequestId(11, 2);
  Say(client, submit, 61);
  EXPECT_EQ(LastError(client), ErrorCode::kInvalid) << "5 ranks are not 2 on each of some nodes";
  submit.spec.nodes = 6;
  submit.request = RequestId(11, 4);
  Say(client, submit, 61);
  EXPECT_EQ(LastError(client), ErrorCode::kInvalid) << "a node would have no rank";
  submit.spec.ranks = 8;
  submit.spec.nodes = 4;
  submit.request = RequestId(11, 3);
  Say(client, submit, 62);
  EXPECT_EQ(LastError(client), ErrorCode::kInfeasible) << "four nodes, of which there are three";
}

// Only the node of 3 CPUs holds the part with one rank more; ranks without resources fit anywhere.
TEST_F(Groups, RanksThatCannotBeEvenOverNodesAreOneMoreOnTheFirstOnes) {
  const std::vector<FakeNode> nodes = {Join(1, 2), Join(2, 3), Join(3, 2)};
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  const auto counts = [&](std::uint32_t ranks, std::uint32_t over, std::uint64_t cpus) {
    wire::SubmitLaunch submit;
    submit.spec.ranks = ranks;
      submit.spec.nodes = over;
    if (cpus > 0) submit.spec.per_rank = Amounts(cpus);
    submit.request = RequestId(12, 100 * ranks + 10 * over + cpus);
    Say(client, submit, 60);
    const LaunchId launch = Last<wire::LaunchAccepted>(client).launch;
    for (int round = 0; round < 2; ++round) {
      for (const FakeNode& node : nodes) Serve(node);
    }
    std::vector<std::pair<NodeId, std::uint32_t>> found;
    for (const Rank& rank : LaunchOf(launch).ranks) {
      if (found.empty() || found.back().first != rank.node) found.push_back({rank.node, 0});
      EXPECT_EQ(rank.local_rank, found.back().second++);
    }
    return found;
  };
  const auto seven = counts(7, 3, 1);
  ASSERT_EQ(seven.size(), 3u);
  EXPECT_EQ(seven[0], std::make_pair(nodes[1].id, 3u));
  EXPECT_EQ(seven[1].second, 2u);
  EXPECT_EQ(seven[2].second, 2u);
  const auto five = counts(5, 3, 0);
  ASSERT_EQ(five.size(), 3u);
  EXPECT_EQ(five[0].second, 2u);
  EXPECT_EQ(five[1].second, 2u);
  EXPECT_EQ(five[2].second, 1u);
}

TEST_F(Groups, ALaunchOverNodesThatWaitsIsPlacedAlikeByAHeadThatReadTheJournal) {
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  Join(1, 2);
  wire::SubmitLaunch submit;
  submit.spec.ranks = 5;
  submit.spec.nodes = 3;
  submit.spec.per_rank = Amounts(1);
  submit.spec.detached = true;
  submit.spec.infeasible_waits = true;
  submit.request = RequestId(13, 1);
  Say(client, submit, 60);
  const LaunchId launch = Last<wire::LaunchAccepted>(client).launch;
  Boot();
  const std::vector<FakeNode> nodes = {Join(1, 2), Join(2, 1), Join(3, 2)};
  for (int round = 0; round < 2; ++round) {
    for (const FakeNode& node : nodes) Serve(node);
  }
  ASSERT_EQ(LaunchOf(launch).ranks.size(), 5u);
  std::map<NodeId, int> counts;
  for (const Rank& rank : LaunchOf(launch).ranks) ++counts[rank.node];
  EXPECT_EQ(counts, (std::map<NodeId, int>{{nodes[0].id, 2}, {nodes[1].id, 1}, {nodes[2].id, 2}}));
  EXPECT_EQ(LaunchOf(launch).ranks[4].node, nodes[1].id);
}

TEST_F(Groups, P1_RefusalReleasesTheAttemptAndTriesAgain) {
  const FakeNode a = Join(1, 2);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  Create(client, id_, 1, 1);
  Take<wire::Reserve>(a.session);
  wire::ReserveReply no;
  no.group = id_;
  no.attempt = 1;
  no.reason = "a GPU does not drain";
  no.free = {};
  no.free_version = 1;
  Say(a.session, no);
  EXPECT_EQ(Last<wire::Release>(a.session).attempt, 1u);
  EXPECT_TRUE(GroupOf(id_).waiting());
  EXPECT_TRUE(FreeOf(core_->state().nodes.at(a.id)).empty()) << "the node's word counts";
  wire::Released released;
  released.group = id_;
  released.attempt = 1;
  released.free = Amounts(2);
  released.free_version = 2;
  Say(a.session, released);
  Advance(std::chrono::milliseconds(200));
  EXPECT_EQ(GroupOf(id_).attempt, 2u);
}

TEST_F(Groups, P4_LateGrantOfADeadAttemptIsReleased) {
  const FakeNode a = Join(1, 2);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  Create(client, id_, 1, 1);
  wire::RemoveGroup remove;
  remove.group = id_;
  Say(client, remove, 51);
  Take<wire::Release>(a.session);
  wire::ReserveReply late;
  late.group = id_;
  late.attempt = 1;
  late.granted = true;
  Say(a.session, late);
  EXPECT_EQ(Last<wire::Release>(a.session).group, id_);
}

TEST_F(Groups, P4_HoldingsNobodyOwnsAreReleasedAtRegistration) {
  wire::RegisterNode report;
  report.holdings.emplace_back();
  report.holdings.back().group = GroupId(66, 6);
  report.holdings.back().attempt = 3;
  const FakeNode a = Join(1, 2, 0, report);
  EXPECT_EQ(Last<wire::Release>(a.session).group, GroupId(66, 6));
  EXPECT_EQ(Last<wire::Release>(a.session).attempt, 3u);
}

TEST_F(Groups, ReleasedIsFreeOnlyOnceDrained) {
  const FakeNode a = Join(1, 2);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  Create(client, id_, 1, 2);
  Serve(a);
  wire::RemoveGroup remove;
  remove.group = id_;
  Say(client, remove, 51);
  EXPECT_TRUE(FreeOf(core_->state().nodes.at(a.id)).empty());
  Serve(a);
  EXPECT_EQ(FreeOf(core_->state().nodes.at(a.id)).Get("CPU"), 20000u);
}

TEST_F(Groups, InfeasibleIsRefusedAtOnceWithAReasonPerNode) {
  Join(1, 2);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  Create(client, id_, 2, 2);
  const auto error = Last<wire::ErrorReply>(client);
  EXPECT_EQ(static_cast<ErrorCode>(error.code), ErrorCode::kInfeasible);
  EXPECT_NE(error.text.find("never"), std::string::npos);
  EXPECT_NE(error.text.find("node-a"), std::string::npos);
}

TEST_F(Groups, P6_ASmallRequestDoesNotStarveALargeOne) {
  const FakeNode a = Join(1, 4);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  const LaunchId first = Submit(client, 2);
  Serve(a);
  Serve(a);
  const LaunchId large = Submit(client, 4);
  const LaunchId small = Submit(client, 2);  // would fit beside the first one
  EXPECT_EQ(Last<wire::LaunchAccepted>(client).queue_place, 2u);
  Finish(a, first, 0);
  Finish(a, first, 1);
  Serve(a);
  Serve(a);
  EXPECT_EQ(LaunchOf(large).epoch, 1u);
  EXPECT_EQ(LaunchOf(small).epoch, 0u);
}

// The first one's node says no and a pause begins: nobody takes what it waits for meanwhile.
TEST_F(Groups, P6_APauseAfterARefusalCostsNoTurn) {
  const FakeNode a = Join(1, 4);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  Create(client, id_, 1, 4);
  RefuseReserve(a);
  ASSERT_GT(GroupOf(id_).retry_at, Instant());
  const GroupId small(4, 5);
  Create(client, small, 1, 1);
  Serve(a);
  EXPECT_EQ(GroupOf(small).attempt, 0u) << "it waits behind the one that pauses";
  wire::GetGroup ask;
  ask.group = small;
  ask.explain = true;
  Say(client, ask, 51);
  EXPECT_EQ(Last<wire::GroupUpdate>(client).info.reason,
            "{CPU: 1} must wait\n  node-a: 4 CPU free; fits 1\n"
            "  before it in the queue: 1; what would do is kept for the first of them");
}

TEST_F(Groups, BundlesGoWhereTheirLabelsAndTheLevelSay) {
  wire::RegisterNode report;
  report.labels = {{"rack", "r1"}, {"disk", "ssd"}};
  const FakeNode a = Join(1, 2, 0, report);
  report.labels = {{"rack", "r1"}, {"disk", "hdd"}};
  const FakeNode b = Join(2, 2, 0, report);
  report.labels = {{"rack", "r2"}};
  const FakeNode c = Join(3, 2, 0, report);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  wire::CreateGroup create;
  create.group = id_;
  create.bundles.resize(3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    create.bundles[i].index = i;
    create.bundles[i].resources = Amounts(1);
  }
  create.bundles[0].labels = {{"disk", "!in(ssd,hdd)"}};
  create.bundles[1].labels = {{"disk", "hdd"}};
  create.bundles[2].labels = {{"rack", "r1"}, {"disk", "!hdd"}};
  Say(client, create, 50);
  EXPECT_EQ(GroupOf(id_).places[0].node, c.id);
  EXPECT_EQ(GroupOf(id_).places[1].node, b.id);
  EXPECT_EQ(GroupOf(id_).places[2].node, a.id);

  wire::CreateGroup rack;
  rack.group = GroupId(4, 5);
  rack.bundles.assign(5, create.bundles[0]);
  for (wire::Bundle& bundle : rack.bundles) bundle.labels.clear();
  rack.where.level = "rack";
  rack.where.level_required = true;
  Say(client, rack, 51);
  const wire::ErrorReply never = Last<wire::ErrorReply>(client);
  EXPECT_EQ(never.code, static_cast<std::uint16_t>(ErrorCode::kInfeasible));
  EXPECT_NE(never.text.find("no rack holds all: the roomiest, r1, has room for 4 of 5"),
            std::string::npos);
  rack.where.level = "floor";
  Say(client, rack, 52);
  EXPECT_EQ(Last<wire::ErrorReply>(client).code, static_cast<std::uint16_t>(ErrorCode::kInvalid));
  rack.where = {};
  rack.where.labels = {{"disk", "in(ssd"}};
  Say(client, rack, 53);
  EXPECT_EQ(Last<wire::ErrorReply>(client).code, static_cast<std::uint16_t>(ErrorCode::kInvalid));
}

TEST_F(Groups, NodeDeathReschedulesOnTheNodesThatAreLeft) {
  const FakeNode a = Join(1, 2);
  const FakeNode b = Join(2, 2);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  Create(client, id_, 1, 2);
  Serve(a);
  Serve(b);
  ASSERT_EQ(GroupOf(id_).state, wire::GroupState::kCreated);
  const FakeNode& lost = GroupOf(id_).places[0].node == a.id ? a : b;
  const FakeNode& left = lost.id == a.id ? b : a;
  Say(lost.session, wire::Goodbye());
  Feed(SessionClosed{lost.session});
  EXPECT_EQ(GroupOf(id_).state, wire::GroupState::kRescheduling);
  Advance(std::chrono::milliseconds(200));
  Serve(left);
  EXPECT_EQ(GroupOf(id_).state, wire::GroupState::kCreated);
  EXPECT_EQ(GroupOf(id_).places[0].node, left.id);
}

TEST_F(Groups, WhatAGroupThatWasRemovedHadOnASilentNodeIsNobodysUntilItsProcessesHaveEnded) {
  FakeNode silent = Join(1, 4);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1}, true);
  wire::CreateGroup create;
  create.group = GroupId(13, 1);
  create.name = "stage";
  create.bundles.resize(1);
  create.bundles[0].resources = Amounts(3);
  Say(client, create, 60);
  Serve(silent);
  const FakeNode other = Join(2, 2);
  Say(client, wire::RemoveGroup{create.group}, 61);
  create.group = GroupId(13, 2);
  Say(client, create, 62);
  const auto state = [&] { return core_->state().groups.at(create.group).state; };
  EXPECT_EQ(core_->state().groups.at(create.group).attempt, 0u) << "no room: the name is free";
  for (int second = 0; second < 80; ++second) {
    Say(other.session, wire::Heartbeat());
    Advance(std::chrono::seconds(1));
  }
  wire::RegisterNode report;
  report.incarnation = silent.incarnation;
  report.holdings.push_back({GroupId(13, 1), 1});
  report.free = Amounts(1);
  report.free_version = 7;
  silent = Join(1, 4, 0, report);
  EXPECT_EQ(Count<wire::Reserve>(silent.session), 0u);
  wire::Released released;
  released.group = Take<wire::Release>(silent.session).at(0).group;
  released.attempt = 1;
  released.free = Amounts(4);
  released.free_version = 8;
  EXPECT_EQ(released.group, GroupId(13, 1));
  Say(silent.session, released);
  Serve(silent);
  EXPECT_EQ(state(), wire::GroupState::kCreated);
}

TEST_F(Groups, P3_WhatNoNodeCanHoldWaitsForOneThatJoinsWhereThatIsAskedFor) {
  const FakeNode small = Join(1, 1);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  wire::CreateGroup create;
  create.group = id_;
  create.bundles.emplace_back();
  create.bundles.back().resources = Amounts(4);
  Say(client, create, 50);
  EXPECT_EQ(static_cast<ErrorCode>(Last<wire::ErrorReply>(client).code), ErrorCode::kInfeasible);
  create.infeasible_waits = true;
  Say(client, create, 51);
  EXPECT_EQ(Last<wire::GroupUpdate>(client).info.state, wire::GroupState::kPending);
  EXPECT_TRUE(GroupOf(id_).waiting());
  // Others that fit go meanwhile.
  Create(client, GroupId{5, 5}, 1, 1);
  Serve(small);
  EXPECT_EQ(GroupOf(GroupId{5, 5}).state, wire::GroupState::kCreated);
  const FakeNode large = Join(2, 4);
  Serve(large);
  EXPECT_EQ(GroupOf(id_).state, wire::GroupState::kCreated);
}

TEST_F(Groups, GpusOfABundleAreCountedByBundleForNodesHaveTheSameNumbers) {
  const FakeNode a = Join(1, 2, 1), b = Join(2, 2, 1);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  wire::CreateGroup create;
  create.group = id_;
  create.strategy = wire::Strategy::kStrictSpread;
  for (std::uint32_t i = 0; i < 2; ++i) {
    create.bundles.emplace_back();
    create.bundles.back().index = i;
    create.bundles.back().resources = Amounts(1, 1);
  }
  Say(client, create, 50);
  for (const FakeNode& node : {a, b}) {
    for (const wire::Reserve& reserve : Take<wire::Reserve>(node.session)) {
      wire::ReserveReply reply;
      reply.group = reserve.group;
      reply.attempt = reserve.attempt;
      reply.granted = true;
      wire::BundleGrant grant;
      grant.index = reserve.bundles.at(0).index;
      grant.gpu_ids = {0};
      reply.grants = {grant};
      Say(node.session, reply);
    }
  }
  ASSERT_EQ(GroupOf(id_).state, wire::GroupState::kCreated);
  for (std::int32_t bundle = 0; bundle < 2; ++bundle) {
    wire::CreateActor actor;
    actor.spec.actor = ActorId(8, static_cast<std::uint64_t>(bundle));
    actor.spec.group = id_;
    actor.spec.bundle = bundle;
    actor.spec.run_resources = Amounts(1, 1);
    Say(client, actor, 60 + static_cast<std::uint64_t>(bundle));
    EXPECT_EQ(core_->state().actors.at(actor.spec.actor).place.gpu_ids,
              std::vector<std::uint32_t>{0})
        << bundle;
  }
}

TEST_F(Groups, AnActorOfNoNamedBundleLeavesTheGpusToThoseThatWantThem) {
  const FakeNode node = Join(1, 4, 1);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  wire::CreateGroup create;
  create.group = id_;
  for (std::uint32_t i = 0; i < 3; ++i) {
    create.bundles.emplace_back();
    create.bundles.back().index = i;
    create.bundles.back().resources = Amounts(1, i == 0 ? 1 : 0);
  }
  Say(client, create, 50);
  Serve(node);
  ASSERT_EQ(GroupOf(id_).state, wire::GroupState::kCreated);
  std::vector<std::int32_t> bundles;
  for (std::uint64_t i = 0; i < 3; ++i) {
    wire::CreateActor actor;
    actor.spec.actor = ActorId(8, i);
    actor.spec.group = id_;
    actor.spec.bundle = -1;
    actor.spec.run_resources = Amounts(1, i == 2 ? 1 : 0);
    Say(client, actor, 60 + i);
    bundles.push_back(core_->state().actors.at(actor.spec.actor).place.bundle);
  }
  EXPECT_EQ(bundles, (std::vector<std::int32_t>{1, 2, 0}));
}

}  // namespace
}  // namespace troupe::head
