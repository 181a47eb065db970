// Method: nodes and clients come, fall silent, come back and leave, on a clock moved by hand;
// actors and launches show what follows for them.
#include "head/core/nodes/roster.h"

#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

class Roster : public HeadFixture {
 protected:
  const Node& NodeOf(const FakeNode& node) const { return core_->state().nodes.at(node.id); }
  ActorId CreateActor(SessionId client, std::uint64_t number, std::int32_t restarts = 0,
                      const std::string& name = {}) {
    wire::CreateActor create;
    create.spec.actor = ActorId(12, number);
    create.spec.name = name;
    create.spec.class_name = "Counter";
    create.spec.max_restarts = restarts;
    Say(client, create, 60 + number);
    return create.spec.actor;
  }
  /// Adds a node on the head's host.
  FakeNode JoinHere(std::uint64_t number, int pid) {
    FakeNode node;
    node.id = NodeId(7, number);
    options_.boot_id = "this";
    Boot();
    node.session = Open(wire::Role::kWorker, node.id);
    wire::RegisterNode report;
    report.node = node.id;
    report.boot_id = "this";
    report.pid = pid;
    Say(node.session, report, 1);
    return node;
  }
  const Actor& ActorOf(ActorId id) const { return core_->state().actors.at(id); }
};

TEST_F(Roster, SilenceMakesSuspectThenDead) {
  const FakeNode a = Join(1, 2);
  Advance(std::chrono::milliseconds(2100));
  EXPECT_TRUE(NodeOf(a).suspect);
  EXPECT_FALSE(NodeOf(a).dead);
  Say(a.session, wire::Heartbeat());
  EXPECT_FALSE(NodeOf(a).suspect);
  Advance(std::chrono::seconds(6));
  EXPECT_TRUE(NodeOf(a).dead);
}

TEST_F(Roster, WhereAllAreSilentItIsTheHeadsNetwork) {
  const FakeNode a = Join(1, 2);
  const FakeNode b = Join(2, 2);
  Advance(std::chrono::seconds(30));
  EXPECT_TRUE(NodeOf(a).suspect && NodeOf(b).suspect);
  EXPECT_FALSE(NodeOf(a).dead || NodeOf(b).dead) << "an outage of the head alone costs nothing";
  const auto beat = [&](int times) {
    for (int i = 0; i < times; ++i) {
      Say(b.session, wire::Heartbeat());
      Advance(std::chrono::milliseconds(500));
    }
  };
  beat(28);
  EXPECT_FALSE(NodeOf(a).dead) << "it may be on its way back";
  beat(8);
  EXPECT_TRUE(NodeOf(a).dead) << "it was not the network alone";
  EXPECT_FALSE(NodeOf(b).dead);
}

TEST_F(Roster, OneOfSeveralThatFallsSilentIsLostAfterItsLease) {
  const FakeNode a = Join(1, 2);
  const FakeNode b = Join(2, 2);
  for (int i = 0; i < 12; ++i) {
    Say(b.session, wire::Heartbeat());
    Advance(std::chrono::milliseconds(500));
  }
  EXPECT_TRUE(NodeOf(a).dead);
}

TEST_F(Roster, NodesThatAreSilentTogetherAreLostInTheEnd) {
  const FakeNode a = Join(1, 2);
  const FakeNode b = Join(2, 2);
  Advance(std::chrono::seconds(76));
  EXPECT_TRUE(NodeOf(a).dead && NodeOf(b).dead);
}

TEST_F(Roster, ANodeOnTheHeadsHostSaysNothingOfTheNetwork) {
  const FakeNode a = Join(1, 2);
  Boot();
  wire::RegisterNode report;
  const SessionId local = Open(wire::Role::kWorker, NodeId(7, 1), true);
  report.node = NodeId(7, 1);
  report.incarnation = a.incarnation;
  Say(local, report, 1);
  const FakeNode b = Join(2, 2);
  Advance(std::chrono::seconds(6));
  EXPECT_TRUE(NodeOf(b).dead) << "there is no third one to tell";
  EXPECT_TRUE(NodeOf(a).dead) << "no network lies between";
}

TEST_F(Roster, AWorkerOfThisHostThatWaitsForADiskIsNotLost) {
  const FakeNode a = JoinHere(1, 4711);
  const auto seen = [&](char state) {
    ASSERT_FALSE(looks_.empty());
    EXPECT_EQ(looks_.back().pid, 4711);
    Feed(WorkerSeen{a.id, looks_.back().question, state});
  };
  Advance(std::chrono::milliseconds(2100));
  seen('D');
  for (int i = 0; i < 10; ++i) {
    Advance(std::chrono::seconds(2));
    seen(i % 2 == 0 ? 'R' : 'D');
  }
  ASSERT_FALSE(NodeOf(a).dead) << "it is held up, for 22 s";
  EXPECT_EQ(WhatItsWorkerDoes(NodeOf(a)), ": its worker (process 4711) waits for a disk");
  Say(a.session, wire::Heartbeat());
  EXPECT_FALSE(NodeOf(a).suspect);
  EXPECT_EQ(WhatItsWorkerDoes(NodeOf(a)), "");
  Advance(std::chrono::milliseconds(2100));
  seen('R');
  Advance(std::chrono::seconds(3));
  seen('S');
  EXPECT_TRUE(NodeOf(a).dead) << "it could, and says nothing";
}

TEST_F(Roster, AWorkerOfThisHostThatWaitsForADiskForEverIsLostInTheEnd) {
  const FakeNode a = JoinHere(1, 4711);
  for (int i = 0; i < 36; ++i) {
    Advance(std::chrono::seconds(2));
    if (!looks_.empty()) Feed(WorkerSeen{a.id, looks_.back().question, 'D'});
  }
  EXPECT_FALSE(NodeOf(a).dead) << "72 s";
  Advance(std::chrono::seconds(4));
  EXPECT_TRUE(NodeOf(a).dead);
  EXPECT_EQ(NodeOf(a).why, "not heard of for 75000 ms: its worker (process 4711) waits for a disk");
}

TEST_F(Roster, AWorkerOfThisHostThatIsStoppedIsLostAndThatIsSaid) {
  const FakeNode a = JoinHere(1, 4711);
  Advance(std::chrono::milliseconds(2100));
  Feed(WorkerSeen{a.id, looks_.back().question + 1, 'D'});  // no answer to what was asked
  Feed(WorkerSeen{a.id, looks_.back().question, 'T'});
  Advance(std::chrono::seconds(3));
  EXPECT_TRUE(NodeOf(a).dead);
  EXPECT_EQ(NodeOf(a).why, "not heard of for 5000 ms: its worker (process 4711) is stopped");
}

TEST_F(Roster, WhoLooksIsToldWhyANodeIsNotAlive) {
  const FakeNode a = JoinHere(1, 4711);
  SessionId user = Open(wire::Role::kClient, Id128{9, 1}, true);
  const auto seen = [&] {
    Say(user, wire::GetStatus(), 9);
    return Last<wire::ClusterStatus>(user).nodes.at(0);
  };
  EXPECT_EQ(seen().why, "");
  wire::DrainNode drain;
  drain.node = a.id;
  drain.reason = "a new kernel";
  Say(user, drain, 8);
  EXPECT_EQ(seen().state, wire::NodeState::kDraining);
  EXPECT_EQ(seen().why, "a new kernel");
  Advance(std::chrono::milliseconds(2100));
  Feed(WorkerSeen{a.id, looks_.back().question, 'T'});
  EXPECT_EQ(seen().state, wire::NodeState::kSuspect);
  EXPECT_EQ(seen().why, "not heard of for 2.1 s: its worker (process 4711) is stopped");
  Boot();
  user = Open(wire::Role::kClient, Id128{9, 1}, true);
  EXPECT_EQ(seen().why, "not heard of since the head's restart");
  Advance(std::chrono::seconds(76));
  EXPECT_EQ(seen().state, wire::NodeState::kDead);
  EXPECT_EQ(seen().why.rfind("not heard of for ", 0), 0u) << seen().why;
}

TEST_F(Roster, ANodeThatDrainsDoesSoUntilItsWorkerIsStartedAnew) {
  FakeNode a = Join(1, 2);
  wire::DrainNode drain;
  drain.node = a.id;
  drain.reason = "upgrade";
  Say(Open(wire::Role::kClient, Id128{9, 1}, true), drain, 8);
  const auto again = [&](const std::string& python, int pid) {
    Boot();  // another head
    wire::RegisterNode report;
    report.incarnation = a.incarnation;
    report.python_version = python;
    report.pid = pid;
    a = Join(1, 2, 0, report);
    return NodeOf(a).draining;
  };
  EXPECT_TRUE(again("", 0));
  EXPECT_TRUE(again("3.11", 0)) << "it knows more of itself by now";
  EXPECT_EQ(NodeOf(a).why, "upgrade");
  EXPECT_FALSE(again("3.11", 7)) << "its worker was started anew";
}

TEST_F(Roster, AWorkerThatSaysByAnotherThreadThatItIsHeldUpIsNotLost) {
  const FakeNode a = Join(1, 2);
  const FakeNode b = Join(2, 2);
  const auto pass = [&](int seconds, char state) {
    for (int i = 0; i < seconds; ++i) {
      Say(b.session, wire::Heartbeat());
      Advance(std::chrono::seconds(1));
      for (const wire::ProbePeer& probe : Take<wire::ProbePeer>(b.session)) {
        wire::PeerProbed answer;  // the loop takes no connection
        answer.question = probe.question;
        answer.node = probe.node;
        Say(b.session, answer);
      }
      const SessionId thread = Open(wire::Role::kWorker, a.id);
      if (state != 0) Say(thread, wire::WorkerHeldUp{static_cast<std::uint8_t>(state)});
      Feed(SessionClosed{thread});
    }
  };
  pass(20, 'D');
  EXPECT_TRUE(NodeOf(a).suspect) << "nothing new is placed there";
  ASSERT_FALSE(NodeOf(a).dead);
  EXPECT_EQ(WhatItsWorkerDoes(NodeOf(a)), ": its worker (process 0) waits for a disk");
  Say(a.session, wire::Heartbeat());
  EXPECT_FALSE(NodeOf(a).suspect);
  pass(4, 'S');
  EXPECT_EQ(WhatItsWorkerDoes(NodeOf(a)),
            ": its worker (process 0) waits for something in the system");
  pass(4, 0);
  EXPECT_FALSE(NodeOf(a).dead) << "its last word is 4 s old";
  pass(2, 0);
  EXPECT_TRUE(NodeOf(a).dead) << "neither thread says anything";
}

TEST_F(Roster, AWorkerThatIsHeldUpForEverIsLostInTheEnd) {
  const FakeNode a = Join(1, 2);
  const FakeNode b = Join(2, 2);
  const SessionId thread = Open(wire::Role::kWorker, a.id);
  const auto pass = [&](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      Say(b.session, wire::Heartbeat());
      Advance(std::chrono::seconds(1));
      Say(thread, wire::WorkerHeldUp{'D'});
    }
  };
  pass(74);
  EXPECT_FALSE(NodeOf(a).dead);
  pass(2);
  EXPECT_TRUE(NodeOf(a).dead);
}

TEST_F(Roster, NobodyLooksAtAProcessOfAnotherHost) {
  const FakeNode a = JoinHere(1, 4711);
  Join(2, 2);
  Advance(std::chrono::seconds(6));
  ASSERT_FALSE(looks_.empty());
  for (const Look& look : looks_) EXPECT_EQ(look.node, a.id);
}

TEST_F(Roster, TheHeadsOwnDelayKillsNobody) {
  const FakeNode a = Join(1, 2);
  now_ += std::chrono::seconds(8);  // as after SIGSTOP: the timer fires late
  Feed(Tick());
  EXPECT_FALSE(NodeOf(a).dead);
}

TEST_F(Roster, ANewLifeOfAWorkerHasANewIncarnation) {
  const FakeNode a = Join(1, 2);
  const FakeNode again = Join(1, 2);
  EXPECT_EQ(again.incarnation, a.incarnation + 1);
  EXPECT_EQ(closed_.back().session, a.session);
}

TEST_F(Roster, AReconnectKeepsTheIncarnation) {
  const FakeNode a = Join(1, 2);
  Feed(SessionClosed{a.session});
  wire::RegisterNode report;
  report.incarnation = a.incarnation;
  EXPECT_EQ(Join(1, 2, 0, report).incarnation, a.incarnation);
}

TEST_F(Roster, ARefusedProbeIsAVerdict) {
  const FakeNode a = Join(1, 2);
  Feed(SessionClosed{a.session});
  ASSERT_EQ(probes_.size(), 1u);
  EXPECT_FALSE(NodeOf(a).dead);
  Feed(ProbeDone{a.id, a.incarnation, true});
  EXPECT_TRUE(NodeOf(a).dead);
}

TEST_F(Roster, NamesAreMadeUnique) {
  Join(1, 2);
  wire::RegisterNode report;
  const SessionId session = Open(wire::Role::kWorker, NodeId(7, 9));
  report.node = NodeId(7, 9);
  report.name = "node-a";
  Say(session, report, 1);
  EXPECT_EQ(Last<wire::NodeRegistered>(session).name, "node-a-2");
}

TEST_F(Roster, ARestartedHeadGivesAFullLeaseAndLetsNodesReport) {
  const FakeNode a = Join(1, 2);
  Boot();
  EXPECT_EQ(core_->state().incarnation, 2u);
  Advance(std::chrono::seconds(4));
  EXPECT_FALSE(NodeOf(a).dead);
  Advance(std::chrono::seconds(2));
  EXPECT_TRUE(NodeOf(a).dead);
}

TEST_F(Roster, TheNewestKeyOfANodeIsKnownAlsoAfterARestart) {
  const NodeId node(7, 7);
  const auto open = [&](wire::Role role, const std::string& key) {
    SessionOpened opened;
    opened.session = SessionId(200, key.size());
    opened.role = role;
    opened.subject = node;
    opened.issued_key_hash = key;
    Feed(opened);
    Feed(SessionClosed{opened.session});
  };
  open(wire::Role::kWorker, "first");
  open(wire::Role::kWorker, "renewed");
  open(wire::Role::kWorker, "");  // came with its certificate: none was issued
  open(wire::Role::kClient, "of a client");
  EXPECT_EQ(core_->state().node_keys, (std::map<NodeId, std::string>{{node, "renewed"}}));
  Boot();
  EXPECT_EQ(core_->state().node_keys, (std::map<NodeId, std::string>{{node, "renewed"}}));
}

TEST_F(Roster, ARunningLaunchSurvivesTheHead) {
  FakeNode a = Join(1, 4);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  const LaunchId launch = Submit(client, 2);
  Serve(a);
  Serve(a);
  Boot();
  wire::RegisterNode report;
  report.incarnation = a.incarnation;
  report.holdings.emplace_back();
  report.holdings.back().group = LaunchOf(launch).group;
  report.holdings.back().attempt = 1;
  for (std::uint32_t r = 0; r < 2; ++r) {
    report.ranks.emplace_back();
    report.ranks.back().launch = launch;
    report.ranks.back().epoch = 1;
    report.ranks.back().rank = r;
  }
  a = Join(1, 4, 0, report);
  const SessionId again = Open(wire::Role::kClient, Id128{9, 1});
  Say(again, wire::WatchLaunch{launch}, 2);
  Finish(a, launch, 0);
  Finish(a, launch, 1);
  EXPECT_EQ(Last<wire::LaunchUpdate>(again).info.outcome, wire::Outcome::kSucceeded);
}

TEST_F(Roster, ALocalCallersEndCancelsItsLaunch) {
  const FakeNode a = Join(1, 4);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1}, true);
  const LaunchId launch = Submit(client, 2);
  Serve(a);
  Feed(SessionClosed{client});
  EXPECT_EQ(Last<wire::StopRanks>(a.session).grace_ms, 10000u);
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    Finish(a, launch, rank, 1, wire::Outcome::kCancelled);
  ASSERT_FALSE(LaunchOf(launch).open());
  EXPECT_EQ(LaunchOf(launch).marker->outcome, wire::Outcome::kCancelled);
}

TEST_F(Roster, ARemoteCallerMayBeAwayForItsGrace) {
  const FakeNode a = Join(1, 4);
  SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  const LaunchId launch = Submit(client, 2);
  Feed(SessionClosed{client});
  Advance(std::chrono::seconds(1));
  client = Open(wire::Role::kClient, Id128{9, 1});
  for (int i = 0; i < 8; ++i) {
    Say(a.session, wire::Heartbeat());
    Advance(std::chrono::seconds(1));
  }
  EXPECT_TRUE(LaunchOf(launch).open());
}

TEST_F(Roster, ATimeoutRunsFromSubmission) {
  Join(1, 1);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  wire::SubmitLaunch submit;
  submit.spec.ranks = 1;
  submit.spec.per_rank = Amounts(1);
  submit.spec.timeout_ms = 300;
  Say(client, submit, 3);
  const LaunchId launch = Last<wire::LaunchAccepted>(client).launch;
  Advance(std::chrono::milliseconds(400));
  EXPECT_EQ(LaunchOf(launch).marker->failure.kind, wire::FailureKind::kTimedOut);
}

TEST_F(Roster, ActorLivesAndIsAnnounced) {
  const FakeNode a = Join(1, 2);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  const ActorId actor = CreateActor(client, 1, 0, "counter");
  StartActors(a);
  EXPECT_EQ(Last<wire::ActorUpdate>(client).info.state, wire::ActorState::kAlive);
  wire::GetNamedActor get;
  get.name = "counter";
  Say(client, get, 70);
  EXPECT_EQ(Last<wire::ActorUpdate>(client).info.actor, actor);
  CreateActor(client, 2, 0, "counter");
  EXPECT_EQ(LastError(client), ErrorCode::kAlreadyExists);
}

TEST_F(Roster, AnActorRestartsWhileRestartsAreLeft) {
  const FakeNode a = Join(1, 2);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  const ActorId actor = CreateActor(client, 1, 1);
  StartActors(a);
  wire::ActorEnded ended;
  ended.actor = actor;
  ended.incarnation = 1;
  Say(a.session, ended);
  EXPECT_EQ(ActorOf(actor).incarnation, 2u);
  StartActors(a);
  ended.incarnation = 1;  // late: of the old incarnation
  Say(a.session, ended);
  EXPECT_EQ(ActorOf(actor).state, wire::ActorState::kAlive);
  ended.incarnation = 2;
  Say(a.session, ended);
  EXPECT_EQ(ActorOf(actor).state, wire::ActorState::kDead);
}

TEST_F(Roster, WhoCallsAnActorThatFindsNoRoomIsToldThatItsLifeIsOver) {
  const FakeNode a = Join(1, 2);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  const ActorId actor = CreateActor(client, 1, 1);
  StartActors(a);
  EXPECT_EQ(Last<wire::ActorUpdate>(client).info.address.incarnation, 1u);
  wire::DrainNode drain;
  drain.node = a.id;
  Say(client, drain, 71);
  wire::ActorEnded ended;
  ended.actor = actor;
  ended.incarnation = 1;
  Say(a.session, ended);
  const wire::ActorInfo told = Last<wire::ActorUpdate>(client).info;
  EXPECT_EQ(told.state, wire::ActorState::kPending);
  EXPECT_EQ(told.address.incarnation, 2u);
}

TEST_F(Roster, WhatEndsOnANodeThatLeavesIsStartedElsewhereAndCountedOnce) {
  const FakeNode a = Join(1, 2);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  std::vector<ActorId> actors;
  for (const std::uint64_t reserved : {0, 1}) {  // reserved while it runs
    wire::CreateActor create;
    create.spec.actor = ActorId(12, 1 + reserved);
    create.spec.max_restarts = 1;
    if (reserved > 0) create.spec.run_resources = Amounts(reserved);
    Say(client, create, 60 + reserved);
    actors.push_back(create.spec.actor);
  }
  Serve(a);
  StartActors(a);
  const FakeNode b = Join(2, 2);
  Say(a.session, wire::DrainNode());
  for (const ActorId& actor : actors) {
    wire::ActorEnded ended;
    ended.actor = actor;
    ended.incarnation = 1;
    ended.failure.signal = 15;
    Say(a.session, ended);
  }
  Serve(a);
  Advance(std::chrono::seconds(1));  // a group that lost its place is tried again after a pause
  Serve(b);
  EXPECT_TRUE(Take<wire::StartActor>(a.session).empty()) << "nothing is started there any more";
  StartActors(b);
  for (const ActorId& actor : actors) {
    EXPECT_EQ(ActorOf(actor).state, wire::ActorState::kAlive);
    EXPECT_EQ(ActorOf(actor).place.node, b.id);
    EXPECT_EQ(ActorOf(actor).restarts, 1u);
  }
  Join(1, 2);
  EXPECT_FALSE(NodeOf(a).leaving) << "it is back";
}

TEST_F(Roster, DetachedInsideALaunchIsRefused) {
  const FakeNode a = Join(1, 4);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  const LaunchId launch = Submit(client, 2, 1, wire::LaunchMode::kDriver);
  Serve(a);
  Serve(a);
  wire::CreateActor create;
  create.spec.actor = ActorId(12, 1);
  create.spec.detached = true;
  SayFor(a.session, DriverOf(launch), create);
  EXPECT_EQ(LastError(a.session), ErrorCode::kInvalid);
  create.spec.detached = false;
  SayFor(a.session, DriverOf(launch), create);
  StartActors(a);
  Acquire(a, launch, 1, RequestId(1, 1));
  Complete(a, launch, 1, RequestId(2, 2));
  EXPECT_EQ(ActorOf(create.spec.actor).state, wire::ActorState::kDead) << "it ends with its launch";
}

TEST_F(Roster, ValuesAreVersionedAndLimited) {
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  wire::KvPut put;
  put.key = "k";
  Say(client, put, 1, "one");
  put.overwrite = false;
  Say(client, put, 2, "two");
  EXPECT_EQ(LastError(client), ErrorCode::kAlreadyExists);
  Say(client, wire::KvGet{"", "k"}, 3);
  EXPECT_EQ(sent_.back().message.attachment, "one");
  put.overwrite = true;
  Say(client, put, 4, std::string((1u << 20) + 1, 'x'));
  EXPECT_EQ(LastError(client), ErrorCode::kTooLarge);
}

TEST_F(Roster, AnObserverLooksAndDoesNotChange) {
  const SessionId observer = Open(wire::Role::kObserver, Id128{9, 5});
  Say(observer, wire::GetStatus(), 1);
  EXPECT_EQ(Count<wire::ClusterStatus>(observer), 1u);
  Say(observer, wire::KvPut(), 2);
  EXPECT_EQ(LastError(observer), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace troupe::head
