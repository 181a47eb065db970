// Method: a head with two nodes and two clients, each with an actor, a group, a value and a launch.
// Everybody says every kind of message of the wire, on its own and on another's, and what has
// changed is looked at.
//   RL-1 what has no place in the table is refused, and changes nothing.
//   RL-2 a rank or an actor acts on what is of its line, and on nothing else; a client on all
//        clients'.
//   RL-3 a worker speaks for the processes that the head placed on its node, and for nothing else.
//   RL-4 whose end takes what along cannot be said by another.
#include "head/core/nodes/roles.h"

#include "head/core/machine/snapshot.h"
#include "runtime/base/rank_actor.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

// The table once more, by its effect: who may say it, on their own (o) or on anything (a); in the
// order of Speaker.
const std::map<std::string, std::string> kExpected = {
    {"Hello", "-----a"},        {"Goodbye", "aa-aa-"},        {"DrainNode", "ao----"},
    {"RegisterNode", "-o----"}, {"Heartbeat", "-o----"},      {"ReserveReply", "-o----"},
    {"Released", "-o----"},     {"RanksReady", "-o----"},     {"RankDone", "-o----"},
    {"EpochEnded", "-o----"},   {"ActorStarted", "-o----"},   {"ActorEnded", "-o----"},
    {"Relay", "-o----"},        {"ProcessGone", "-o----"},    {"PeerProbed", "-o----"},
    {"WatchLaunch", "a-a-a-"},  {"GetLaunch", "a-a-a-"},      {"ListLaunches", "a-a-a-"},
    {"WaitMarker", "a-a-a-"},   {"WatchActor", "a-a-o-"},     {"GetNamedActor", "a-a-a-"},
    {"ListActors", "a-a-a-"},   {"GetGroup", "a-a-a-"},       {"ListGroups", "a-a-a-"},
    {"GetStatus", "a-a-a-"},    {"ListEvents", "a-a-a-"},     {"SubmitLaunch", "a-o---"},
    {"CancelLaunch", "a-o---"}, {"GetResult", "a-o---"},      {"AcquireDriver", "a-o---"},
    {"RenewDriver", "a-o---"},  {"Complete", "a-o---"},       {"CreateActor", "a-o---"},
    {"KillActor", "a-o---"},    {"CreateGroup", "a-o---"},    {"RemoveGroup", "a-o---"},
    {"KvPut", "a-o---"},        {"KvGet", "a-o---"},          {"KvDelete", "a-o---"},
    {"KvList", "a-o---"},       {"CertifyProcess", "a-o---"}, {"CreateToken", "a-----"},
    {"ListTokens", "a-----"},   {"RevokeToken", "a-----"},    {"StopCluster", "a-----"},
    {"RanksSeen", "-o----"},    {"RankLeft", "-o----"},       {"ActorLends", "-o----"},
    {"RankWhere", "-o----"},    {"GroupJoined", "-o----"},    {"RanksLate", "-o----"},
    {"RankBegun", "-o----"},    {"RankAwaits", "-o----"},
    {"WorkerHeldUp", "-o----"},
    {"ListTasks", "a-a-a-"},    {"TasksTold", "a-o---"},      {"SetQuota", "o-----"},
    {"GetUsage", "a-a-a-"},    {"KeepLog", "-o----"},        {"ReadLog", "a---a-"},
    {"NodeMeasures", "-o----"}, {"ReportMetrics", "a-a---"},
};

class Roles : public HeadFixture {
 protected:
  struct Side {
    SessionId client;
    FakeNode node;
    ActorId actor;
    GroupId group;
    LaunchId launch;  // launch of a driver
    wire::Relay as_actor;
    wire::Relay as_rank;
  };

  void SetUp() override {
    mine_ = Make(1);
    other_ = Make(2);
  }
  Side Make(std::uint64_t number) {
    Side side;
    side.node = Join(number, 8);
    side.client = Open(wire::Role::kClient, Id128{9, number});
    side.actor = ActorId(12, number);
    wire::CreateActor create;
    create.spec.actor = side.actor;
    create.spec.class_name = "A";
    create.spec.node = side.node.id;
    create.spec.resources = Amounts(1);
    Say(side.client, create, 1);
    side.group = GroupId(13, number);
    wire::CreateGroup group;
    group.group = side.group;
    group.bundles.resize(1);
    group.bundles[0].resources = Amounts(1);
    Say(side.client, group, 2);
    wire::KvPut put;
    put.scope = "s";
    put.key = std::to_string(number);
    Say(side.client, put, 3, "value");
    wire::SubmitLaunch submit;
    submit.spec.ranks = 1;
    submit.spec.mode = wire::LaunchMode::kDriver;
    submit.spec.per_rank = Amounts(1);
    submit.spec.where.labels.emplace_back();
    submit.spec.where.labels[0].key = "ray.io/node-id";
    submit.spec.where.labels[0].value = side.node.id.Hex();
    submit.request = RequestId(11, number);
    Say(side.client, submit, 4);
    side.launch = Last<wire::LaunchAccepted>(side.client).launch;
    ServeAll();
    side.as_actor.process = ProcessId(20, number);
    side.as_actor.actor = side.actor;
    side.as_rank = DriverOf(side.launch);
    side.as_rank.process = ProcessId(21, number);
    side.as_rank.actor = RankActorId(side.launch, 1, 0);
    wire::AcquireDriver acquire;
    acquire.launch = side.launch;
    acquire.epoch = 1;
    acquire.nonce = RequestId(5, number);
    SayFor(side.node.session, side.as_rank, acquire);
    EXPECT_EQ(LaunchOf(side.launch).driver, acquire.nonce);
    EXPECT_EQ(LaunchOf(side.launch).ranks[0].node, side.node.id);
    EXPECT_EQ(core_->state().actors.at(side.actor).place.node, side.node.id);
    return side;
  }
  void ServeAll() {
    for (int i = 0; i < 4; ++i) {
      for (const auto& [id, node] : core_->state().nodes) {
        FakeNode there;
        there.id = id;
        there.session = node.session;
        Serve(there);
        StartActors(there);
      }
    }
  }
  /// The answer's error to a message said so; kNone when it was no error, or none came.
  ErrorCode Ask(SessionId session, const wire::Relay* relay, wire::Body body) {
    sent_.clear();
    MessageFrom input;
    input.session = session;
    if (relay != nullptr) input.relay = *relay;
    input.message.id = ++asked_;
    input.message.body = std::move(body);
    Feed(input);
    ServeAll();
    for (const Send& send : sent_) {
      if (send.message.reply_to != asked_) continue;
      const auto* error = wire::GetIf<wire::ErrorReply>(&send.message.body);
      if (error == nullptr) continue;
      text_ = error->text;
      return static_cast<ErrorCode>(error->code);
    }
    text_.clear();
    return ErrorCode::kNone;
  }
  bool RefusedAsAnothers(const wire::Relay& relay, wire::Body body) {
    const std::size_t before = durable_.size();
    const ErrorCode code = Ask(mine_.node.session, &relay, std::move(body));
    EXPECT_EQ(durable_.size(), before);
    return code == ErrorCode::kInvalid &&
           text_.find("belongs to another client") != std::string::npos;
  }
  /// Requests that a rank or an actor may make only for its own, about objects of `side`.
  static std::vector<wire::Body> ActsOn(const Side& side) {
    wire::KillActor kill;
    kill.actor = side.actor;
    wire::KillActor unwanted = kill;
    unwanted.unwanted = true;
    wire::CreateActor inside;
    inside.spec.actor = ActorId(14, 1);
    inside.spec.group = side.group;
    wire::CreateGroup again;
    again.group = side.group;
    wire::CancelLaunch cancel;
    cancel.launch = side.launch;
    cancel.hard = true;
    wire::GetResult result;
    result.launch = side.launch;
    const std::string key = side.actor.lo == 1 ? "1" : "2";
    wire::KvPut put;
    put.scope = "s";
    put.key = key;
    wire::KvDelete erase;
    erase.scope = "s";
    erase.key = key;
    wire::SubmitLaunch repeat;
    repeat.request = RequestId(11, side.actor.lo);
    return {wire::KvGet{"s", key},         put,   result, repeat, again, unwanted, inside, kill,
            wire::RemoveGroup{side.group}, erase, cancel};
  }

  Side mine_, other_;
  std::uint64_t asked_ = 5000;
  std::string text_;
};

TEST(RoleTable, RL1_EveryKindOfTheWireIsSaidByWhomItShallBe) {
  for (std::size_t kind = 0; kind < wire::kKinds; ++kind) {
    const std::string name(wire::kBodyNames[kind]);
    const auto expected = kExpected.find(name);
    std::string row;
    for (std::size_t speaker = 0; speaker < wire::kSpeakers; ++speaker) {
      const May may = wire::MayOf(static_cast<Speaker>(speaker), kind);
      row += may == May::kNever ? '-' : may == May::kOwn ? 'o' : 'a';
    }
    EXPECT_EQ(row, expected == kExpected.end() ? "------" : expected->second) << name;
  }
}

TEST_F(Roles, RL1_WhatHasNoPlaceIsRefusedAndChangesNothing) {
  const SessionId observer = Open(wire::Role::kObserver, Id128(9, 5));
  const SessionId process = Open(wire::Role::kProcess, mine_.actor);
  struct Voice {
    Speaker speaker;
    SessionId session;
    const wire::Relay* relay;
  };
  const std::vector<Voice> voices = {{Speaker::kClient, mine_.client, nullptr},
                                     {Speaker::kWorker, mine_.node.session, nullptr},
                                     {Speaker::kRelayed, mine_.node.session, &mine_.as_actor},
                                     {Speaker::kRelayed, mine_.node.session, &mine_.as_rank},
                                     {Speaker::kProcess, process, nullptr},
                                     {Speaker::kObserver, observer, nullptr}};
  for (const Voice& voice : voices) {
    for (std::size_t kind = 0; kind < wire::kKinds; ++kind) {
      if (wire::MayOf(voice.speaker, kind) != May::kNever) continue;
      const std::size_t before = durable_.size();
      const auto what = std::to_string(static_cast<int>(voice.speaker)) + " " +
                        std::string(wire::kBodyNames[kind]);
      EXPECT_EQ(Ask(voice.session, voice.relay, wire::Body::OfKind(kind)), ErrorCode::kInvalid)
          << what;
      EXPECT_EQ(durable_.size(), before) << what;
      EXPECT_TRUE(closed_.empty()) << what;
    }
  }
}

TEST_F(Roles, RL2_ARankAndAnActorActOnTheirOwnAlone) {
  for (const wire::Relay* relay : {&mine_.as_actor, &mine_.as_rank}) {
    for (const wire::Body& body : ActsOn(other_))
      EXPECT_TRUE(RefusedAsAnothers(*relay, body)) << wire::NameOf(body) << ": " << text_;
    wire::Complete complete;
    complete.launch = other_.launch;
    complete.epoch = 1;
    complete.outcome = wire::Outcome::kSucceeded;
    EXPECT_TRUE(RefusedAsAnothers(*relay, complete)) << text_;
    wire::RenewDriver renew;
    renew.launch = other_.launch;
    renew.epoch = 1;
    EXPECT_TRUE(RefusedAsAnothers(*relay, renew)) << text_;
    wire::KvList list;
    list.scope = "s";
    EXPECT_EQ(Ask(mine_.node.session, relay, list), ErrorCode::kNone);
    EXPECT_EQ(Last<wire::KvKeys>(mine_.node.session).keys, std::vector<std::string>{"1"});
  }
  EXPECT_TRUE(core_->state().actors.at(other_.actor).live());
  EXPECT_TRUE(LaunchOf(other_.launch).open());
}

TEST_F(Roles, RL2_OnTheirOwnTheyDo) {
  for (const wire::Body& body : ActsOn(mine_)) {
    Ask(mine_.node.session, &mine_.as_rank, body);
    EXPECT_EQ(text_.find("belongs to another client"), std::string::npos)
        << wire::NameOf(body) << ": " << text_;
  }
  EXPECT_TRUE(!LaunchOf(mine_.launch).open() || LaunchOf(mine_.launch).stop_asked);
  EXPECT_EQ(core_->state().values.count({"s", "1"}), 0u);
}

TEST_F(Roles, RL2_WhatIsMadeBelongsToTheLineOfItsMaker) {
  wire::CreateActor nested;
  nested.spec.actor = ActorId(14, 1);
  nested.spec.class_name = "B";
  nested.spec.detached = true;
  nested.spec.node = mine_.node.id;
  ASSERT_EQ(Ask(mine_.node.session, &mine_.as_actor, nested), ErrorCode::kNone) << text_;
  wire::KillActor kill;
  kill.actor = nested.spec.actor;
  EXPECT_EQ(Ask(other_.node.session, &other_.as_actor, kill), ErrorCode::kInvalid);
  Boot();  // the owner is durable
  const Actor& actor = core_->state().actors.at(nested.spec.actor);
  EXPECT_EQ(LineOf(actor), OwnerId(9, 1));
  EXPECT_EQ(LineOf(LaunchOf(mine_.launch)), OwnerId(9, 1));
  const std::vector<wire::Event> snapshot = SnapshotOf(core_->state());
  const State again = Folded(snapshot);
  EXPECT_EQ(LineOf(again.actors.at(nested.spec.actor)), OwnerId(9, 1));
  EXPECT_EQ(again.launches.at(mine_.launch).line, OwnerId(9, 1));
  EXPECT_EQ((again.values.at({"s", "2"}).line), OwnerId(9, 2));
}

TEST_F(Roles, RL2_ClientsActOnEachOthers) {
  for (const wire::Body& body : ActsOn(other_)) {
    Ask(mine_.client, nullptr, body);
    EXPECT_EQ(text_.find("belongs to another"), std::string::npos) << wire::NameOf(body);
  }
  EXPECT_TRUE(!LaunchOf(other_.launch).open() || LaunchOf(other_.launch).stop_asked);
  EXPECT_EQ(core_->state().values.count({"s", "2"}), 0u);
}

TEST_F(Roles, RL3_AWorkerSpeaksForTheProcessesOfItsNodeAlone) {
  const SessionId worker = mine_.node.session;
  wire::KillActor kill;
  kill.actor = other_.actor;
  const auto refused = [&](const wire::Relay& relay, const wire::Body& body) {
    const std::size_t before = durable_.size();
    const ErrorCode code = Ask(worker, &relay, body);
    EXPECT_EQ(durable_.size(), before);
    return code == ErrorCode::kInvalid || code == ErrorCode::kFenced;
  };
  EXPECT_TRUE(refused(other_.as_actor, kill)) << "an actor of another node";
  EXPECT_TRUE(refused(other_.as_rank, kill)) << "a rank of another node";
  wire::Relay relay = mine_.as_rank;
  relay.process = other_.as_rank.process;
  EXPECT_TRUE(refused(relay, kill)) << "another rank's process";
  relay = mine_.as_actor;
  relay.launch = other_.launch;
  relay.epoch = 1;
  EXPECT_TRUE(refused(relay, kill)) << "an actor of no launch, in one";
  relay = mine_.as_rank;
  relay.rank = 7;
  EXPECT_TRUE(refused(relay, kill)) << "no rank of it";
  relay = mine_.as_rank;
  relay.epoch = 2;
  EXPECT_TRUE(refused(relay, kill)) << "an epoch to come";
  relay = wire::Relay();
  relay.process = ProcessId(20, 9);
  EXPECT_TRUE(refused(relay, kill)) << "a process of nothing";
  relay = wire::Relay();
  relay.process = ProcessId(9, 2);  // the other client
  EXPECT_TRUE(refused(relay, kill)) << "a client";
}

TEST_F(Roles, RL4_NobodysEndIsSaidByAnother) {
  for (const ProcessId& somebody : {ProcessId(9, 2), ProcessId(12, 2), other_.as_rank.process}) {
    Say(mine_.node.session, wire::ProcessGone{somebody});
    ServeAll();
  }
  EXPECT_TRUE(core_->state().actors.at(other_.actor).live());
  EXPECT_TRUE(core_->state().groups.at(other_.group).live());
  EXPECT_TRUE(LaunchOf(other_.launch).open());
  // A process that connects by its certificate, and leaves, takes nothing along.
  const SessionId process = Open(wire::Role::kProcess, Id128(9, 2), true);
  Feed(SessionClosed{process});
  EXPECT_TRUE(core_->state().actors.at(other_.actor).live());
}

TEST_F(Roles, RL4_WhatARankMadeEndsWithItsProcessAlsoAfterARestartOfTheHead) {
  wire::CreateActor create;
  create.spec.actor = ActorId(14, 1);
  create.spec.class_name = "B";
  ASSERT_EQ(Ask(mine_.node.session, &mine_.as_rank, create), ErrorCode::kNone) << text_;
  Boot();
  wire::RegisterNode again;
  again.incarnation = core_->state().nodes.at(mine_.node.id).incarnation;
  again.ranks.resize(1);
  again.ranks[0].launch = mine_.launch;
  again.ranks[0].epoch = 1;
  again.ranks[0].generation = 1;
  for (const auto& [lease, holding] : core_->state().nodes.at(mine_.node.id).holdings) {
    wire::Holding held;
    held.group = lease.first;
    held.attempt = lease.second;
    again.holdings.push_back(held);
  }
  mine_.node = Join(1, 8, 0, again);
  other_.node = Join(2, 8);
  ASSERT_TRUE(core_->state().actors.at(create.spec.actor).live());
  Say(other_.node.session, wire::ProcessGone{mine_.as_rank.process});
  EXPECT_TRUE(core_->state().actors.at(create.spec.actor).live());
  Say(mine_.node.session, wire::ProcessGone{mine_.as_rank.process});
  EXPECT_FALSE(core_->state().actors.at(create.spec.actor).live());
}

TEST_F(Roles, RL4_AnActorMayNotHaveTheIdOfSomebody) {
  wire::CreateActor create;
  create.spec.class_name = "B";
  for (const Id128& id : {Id128(9, 2), Id128(other_.as_rank.process)}) {
    create.spec.actor = ActorId(id);
    EXPECT_EQ(Ask(mine_.client, nullptr, create), ErrorCode::kInvalid);
  }
}

TEST_F(Roles, RL4_AnObserverThatWaitsAdoptsNothing) {
  Feed(SessionClosed{mine_.client});
  const SessionId observer = Open(wire::Role::kObserver, Id128(9, 7));
  wire::WatchLaunch watch;
  watch.launch = mine_.launch;
  Ask(observer, nullptr, watch);
  EXPECT_EQ(LaunchOf(mine_.launch).owner, OwnerId(9, 1));
}

}  // namespace
}  // namespace troupe::head
