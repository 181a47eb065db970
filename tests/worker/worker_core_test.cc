// Method: play heads, good and stale, to a WorkerCore; look at its effects.
#include <csignal>
#include <functional>

#include "tests/worker/core_fixture.h"
#include "worker/core/environment.h"

namespace troupe::worker {
namespace {

class WorkerCoreTest : public CoreFixture {
 protected:
  ProcessId StartActor(bool recreatable = false, std::uint64_t incarnation = 1) {
    wire::StartActor start;
    start.actor = ActorId(6, 6);
    start.incarnation = incarnation;
    start.class_name = "Counter";
    start.recreatable = recreatable;
    Head(start, "class");
    const ProcessId id = All<StartProcess>().back().request.process;
    Take(core_->OnForked(id, 500, now_));
    return id;
  }
};

TEST_F(WorkerCoreTest, AStaleHeadIsRefused) {
  Join(7);
  Take(core_->OnHeadDown(now_));
  log_.clear();
  HeadSession stale;
  stale.head_incarnation = 6;
  Take(core_->OnHeadUp(stale, now_));
  EXPECT_EQ(All<DropHead>().size(), 1u);
  EXPECT_TRUE(Sent<wire::RegisterNode>().empty());
}

TEST_F(WorkerCoreTest, NothingIsObeyedBeforeRegistration) {
  HeadSession session;
  session.head_incarnation = 1;
  Take(core_->OnHeadUp(session, now_));
  EXPECT_FALSE(ReserveCpus(group_, 1, 1).granted);
  EXPECT_TRUE(core_->leases().Holdings().empty());
}

TEST_F(WorkerCoreTest, HeartbeatsBeatAndASilentHeadIsDropped) {
  Join();
  log_.clear();
  Advance(std::chrono::seconds(1));
  ASSERT_EQ(Sent<wire::Heartbeat>().size(), 1u);
  wire::HeartbeatAck ack;
  ack.sequence = Last<wire::Heartbeat>().sequence;
  Head(ack);
  for (int i = 0; i < 7 && All<DropHead>().empty(); ++i) Advance(std::chrono::seconds(1));
  EXPECT_EQ(All<DropHead>().size(), 1u);
}

TEST_F(WorkerCoreTest, PeersAreDialledForTheHeadAFewAtATime) {
  Join();
  wire::ProbePeer probe;
  probe.node = NodeId(7, 2);
  for (int i = 0; i < 100; ++i) {
    probe.question = static_cast<std::uint64_t>(i + 1);
    Head(probe);
  }
  ASSERT_EQ(All<DialPeer>().size(), 64u);
  Take(core_->OnPeerProbed(1, probe.node, true, now_));
  EXPECT_TRUE(Last<wire::PeerProbed>().reached);
  EXPECT_EQ(Last<wire::PeerProbed>().question, 1u);
  Head(probe);
  EXPECT_EQ(All<DialPeer>().size(), 65u) << "there is room for another one";
  Take(core_->OnHeadDown(now_));
  log_.clear();
  Take(core_->OnPeerProbed(2, probe.node, false, now_));
  EXPECT_TRUE(Sent<wire::PeerProbed>().empty()) << "nobody is there to be told";
}

TEST_F(WorkerCoreTest, ActorsThatMayBeMadeElsewhereHearUntilWhenTheyMayRun) {
  Join();
  const Instant joined = now_;
  StartActor(true);
  const auto leases = [this] {
    std::vector<Instant> until;
    for (const ToProcess& to : All<ToProcess>()) {
      const auto* lease = wire::GetIf<wire::ActorLease>(&to.message.body);
      if (lease != nullptr)
        until.push_back(Instant(Duration(static_cast<std::int64_t>(lease->until_ns))));
    }
    return until;
  };
  EXPECT_EQ(leases(), (std::vector<Instant>{joined + std::chrono::seconds(65)}))
      << "the fence, and a twelfth";
  for (int i = 0; i < 12; ++i) {
    Advance(std::chrono::seconds(1));
    wire::HeartbeatAck ack;
    ack.sequence = Last<wire::Heartbeat>().sequence;
    Head(ack);
  }
  const std::vector<Instant> until = leases();
  ASSERT_EQ(until.size(), 3u) << "after 5 s each, not at every heartbeat";
  EXPECT_EQ(until.back(), joined + std::chrono::seconds(75));
}

TEST_F(WorkerCoreTest, AnActorsLibrariesHaveAsManyThreadsAsItsMakerSaysUnlessAVariableDoes) {
  const auto environment = [](const std::vector<wire::EnvVar>& given) {
    wire::StartActor start;
    start.environment.env = given;
    std::map<std::string, std::string> variables;
    for (const auto& each : ActorEnvironment(NodeFacts(), start, ProcessId(1, 1)))
      variables[each.name] = each.value;
    EXPECT_EQ(variables.count(kThreadsVariable), 0u) << "it is the worker's alone";
    return variables;
  };
  const auto of = [](const char* name, const char* value) {
    wire::EnvVar each;
    each.name = name;
    each.value = value;
    return each;
  };
  EXPECT_EQ(environment({})["OMP_NUM_THREADS"], "1");
  EXPECT_EQ(environment({of(kThreadsVariable, "4")})["OMP_NUM_THREADS"], "4");
  EXPECT_EQ(environment({of(kThreadsVariable, "x")})["OMP_NUM_THREADS"], "1");
  EXPECT_EQ(environment({of(kThreadsVariable, "4"), of("OMP_NUM_THREADS", "3")})["OMP_NUM_THREADS"],
            "3");
}

TEST_F(WorkerCoreTest, AnActorSeesItsDevicesAloneUnlessItsProgramChoosesOne) {
  const auto of = [](const char* name, const char* value) {
    wire::EnvVar each;
    each.name = name;
    each.value = value;
    return each;
  };
  NodeFacts facts;
  facts.gpu_tokens = {{0, "GPU-a"}, {1, "3"}};
  const auto environment = [&](const std::vector<wire::EnvVar>& given) {
    wire::StartActor start;
    start.gpu_ids = {1};
    start.environment.env = given;
    std::map<std::string, std::string> variables;
    for (const auto& each : ActorEnvironment(facts, start, ProcessId(1, 1)))
      variables[each.name] = each.value;
    return variables;
  };
  constexpr char kLeave[] = "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES";
  EXPECT_EQ(environment({})["CUDA_VISIBLE_DEVICES"], "3");
  EXPECT_EQ(environment({})["CUDA_DEVICE_ORDER"], "PCI_BUS_ID")
      << "the numbers are by the place on the bus";
  EXPECT_EQ(environment({of("CUDA_DEVICE_ORDER", "FASTEST_FIRST")})["CUDA_DEVICE_ORDER"],
            "FASTEST_FIRST");
  EXPECT_EQ(environment({of(kLeave, "0"), of("CUDA_VISIBLE_DEVICES", "7")})["CUDA_VISIBLE_DEVICES"],
            "3");
  EXPECT_EQ(environment({of(kLeave, "1")}).count("CUDA_VISIBLE_DEVICES"), 0u);
  EXPECT_EQ(environment({of(kLeave, "1"), of("CUDA_VISIBLE_DEVICES", "7")})["CUDA_VISIBLE_DEVICES"],
            "7");
  facts.base_environment = {of("CUDA_VISIBLE_DEVICES", "GPU-a,3")};
  EXPECT_EQ(environment({})["CUDA_VISIBLE_DEVICES"], "3");
  EXPECT_EQ(environment({}).count("CUDA_DEVICE_ORDER"), 0u)
      << "the entries are in the order of whoever gave them";
  EXPECT_EQ(environment({of(kLeave, "1")})["CUDA_VISIBLE_DEVICES"], "GPU-a,3") << "as the worker";
}

TEST_F(WorkerCoreTest, OtherActorsRunForAsLongAsTheyLike) {
  Join();
  StartActor(false);
  for (const ToProcess& to : All<ToProcess>()) {
    EXPECT_FALSE(wire::Holds<wire::ActorLease>(to.message.body));
  }
}

TEST_F(WorkerCoreTest, WhatTheHeadMayHaveMissedIsSentAgain) {
  Join();
  const ProcessId id = StartActor();
  FromProcess(id, wire::ActorReady());
  EXPECT_EQ(Sent<wire::ActorStarted>().size(), 1u);
  Take(core_->OnHeadDown(now_));
  Join(2);
  EXPECT_EQ(Sent<wire::ActorStarted>().size(), 2u);
  Advance(std::chrono::seconds(1));
  wire::HeartbeatAck ack;
  ack.sequence = Last<wire::Heartbeat>().sequence;
  Head(ack);
  Take(core_->OnHeadDown(now_));
  Join(3);
  EXPECT_EQ(Sent<wire::ActorStarted>().size(), 2u) << "acknowledged by the heartbeat after it";
}

TEST_F(WorkerCoreTest, AnActorsAddressNamesItsProcessAndThatIsWhereCallersArePassedOn) {
  Join();
  const ProcessId id = StartActor();
  FromProcess(id, wire::ActorReady());
  const wire::ActorAddress address = Last<wire::ActorStarted>().address;
  EXPECT_EQ(address.process, id);
  EXPECT_EQ(core_->CallSocketOf(id), address.unix_path);
  EXPECT_EQ(core_->CallSocketOf(ProcessId(1, 1)), "");
  Over(id, 0, SIGKILL);
  EXPECT_EQ(core_->CallSocketOf(id), "");
}

TEST_F(WorkerCoreTest, AnActorThatAwaitsItsArgumentsSaysWhereAndIsReadyLater) {
  Join();
  const ProcessId id = StartActor();
  wire::ActorReady awaits;
  awaits.awaits = true;
  FromProcess(id, awaits);
  EXPECT_TRUE(Last<wire::ActorStarted>().awaits);
  EXPECT_EQ(Last<wire::ActorStarted>().address.process, id);
  EXPECT_EQ(core_->CallSocketOf(id), Last<wire::ActorStarted>().address.unix_path);
  FromProcess(id, wire::ActorReady());
  EXPECT_EQ(Sent<wire::ActorStarted>().size(), 2u);
  EXPECT_FALSE(Last<wire::ActorStarted>().awaits);
}

TEST_F(WorkerCoreTest, AnActorsDeathNamesItsCause) {
  Join();
  const ProcessId id = StartActor();
  FromProcess(id, wire::ActorReady());
  Over(id, 0, SIGSEGV);
  const wire::ActorEnded ended = Last<wire::ActorEnded>();
  EXPECT_EQ(ended.failure.signal, SIGSEGV);
  EXPECT_FALSE(ended.graceful);
  EXPECT_EQ(ended.failure.cause,
            "actor Counter 00000000 on node-a (host-a), pid 500, ended: SIGSEGV");
}

TEST_F(WorkerCoreTest, AnActorThatLeftByItselfWithZeroIsNoCrash) {
  Join();
  ProcessId id = StartActor();
  FromProcess(id, wire::ActorReady());
  wire::RankResult over;
  over.outcome = wire::Outcome::kSucceeded;
  FromProcess(id, over);
  Over(id, 0);
  EXPECT_TRUE(Last<wire::ActorEnded>().graceful);
  id = StartActor(false, 2);
  FromProcess(id, wire::ActorReady());
  FromProcess(id, over);
  Over(id, 1);
  EXPECT_FALSE(Last<wire::ActorEnded>().graceful);
  id = StartActor(false, 3);
  FromProcess(id, wire::ActorReady());
  Over(id, 0);
  EXPECT_FALSE(Last<wire::ActorEnded>().graceful) << "its code alone is no word of it: os._exit(0)";
}

TEST_F(WorkerCoreTest, AConstructorsExceptionTravels) {
  Join();
  const ProcessId id = StartActor();
  wire::ActorReady ready;
  ready.failed = true;
  ready.failure.cause = "ValueError: no";
  FromProcess(id, ready, "pickled");
  Over(id, 1);
  EXPECT_TRUE(Sent<wire::ActorStarted>().empty());
  ASSERT_EQ(Sent<wire::ActorEnded>().size(), 1u);
  EXPECT_EQ(Sent<wire::ActorEnded>()[0].attachment, "pickled");
  EXPECT_EQ(Last<wire::ActorEnded>().failure.cause, "ValueError: no");
}

TEST_F(WorkerCoreTest, AnOldIncarnationOfAnActorIsNotStarted) {
  Join();
  const ProcessId id = StartActor(false, 3);
  Over(id, 0);
  log_.clear();
  wire::StartActor late;
  late.actor = ActorId(6, 6);
  late.incarnation = 3;
  Head(late, "class");
  EXPECT_TRUE(All<StartProcess>().empty());
}

TEST_F(WorkerCoreTest, EndBeforeTheForkIsAnsweredKillsIt) {
  Join();
  wire::StartActor start;
  start.actor = ActorId(6, 6);
  start.incarnation = 1;
  Head(start, "class");
  const ProcessId id = All<StartProcess>().back().request.process;
  wire::EndActor end;
  end.actor = ActorId(6, 6);
  end.incarnation = 1;
  end.graceful = true;
  Head(end);
  Take(core_->OnForked(id, 500, now_));
  EXPECT_EQ(SignalsTo(id), (std::vector<int>{SIGKILL, SIGKILL}));
}

TEST_F(WorkerCoreTest, AnActorsFailureSaysOfWhichKindItsEndIs) {
  using wire::FailureKind;
  struct Way {
    FailureKind kind;
    std::function<void()> end;
    int signal;
  };
  const Way ways[] = {
      {FailureKind::kKillRequested,
       [this] {
         wire::EndActor end;
         end.actor = ActorId(6, 6);
         end.incarnation = 1;
         end.reason = "killed by troupe.kill";
         end.kind = FailureKind::kKillRequested;
         Head(end);
       },
       SIGKILL},
      {FailureKind::kNodeLeaves, [this] { Take(core_->Leave("SIGTERM", now_)); }, SIGKILL},
      {FailureKind::kFenced,
       [this] {
         Take(core_->OnHeadDown(now_));
         Advance(std::chrono::seconds(61));
         Join();
       },
       SIGKILL},
      {FailureKind::kKilled, [] {}, SIGSEGV},
      {FailureKind::kExited, [] {}, 0},
  };
  for (const Way& way : ways) {
    SCOPED_TRACE(wire::NameOf(way.kind));
    log_.clear();
    Restart();
    Join();
    const ProcessId id = StartActor(true, 1);
    way.end();
    Over(id, 3, way.signal);
    const wire::Failure& failure = Last<wire::ActorEnded>().failure;
    EXPECT_EQ(failure.kind, way.kind) << failure.cause;
    const bool by_itself = way.kind == FailureKind::kKilled || way.kind == FailureKind::kExited;
    EXPECT_EQ(failure.located, by_itself) << failure.cause;
  }
}

TEST_F(WorkerCoreTest, OnlyRecreatableActorsAreFencedWithoutAHead) {
  for (const bool recreatable : {false, true}) {
    SCOPED_TRACE(recreatable);
    log_.clear();
    Restart();
    Join();
    const ProcessId id = StartActor(recreatable);
    Take(core_->OnHeadDown(now_));
    Advance(std::chrono::seconds(59));
    EXPECT_TRUE(SignalsTo(id).empty());
    Advance(std::chrono::seconds(2));
    EXPECT_EQ(SignalsTo(id).size(), recreatable ? 1u : 0u);
  }
}

TEST_F(WorkerCoreTest, TheFenceCountsFromTheSendingOfTheRegistrationToo) {
  Join();
  const ProcessId id = StartActor(true);
  Take(core_->OnHeadDown(now_));
  Advance(std::chrono::seconds(1));
  HeadSession session;
  session.cluster = ClusterId(1, 1);
  session.node = NodeId(2, 2);
  session.head_incarnation = 1;
  Take(core_->OnHeadUp(session, now_));
  Advance(std::chrono::seconds(40));  // this node stood still, or the answer did
  wire::NodeRegistered registered;
  registered.node = NodeId(2, 2);
  registered.incarnation = 5;
  Head(registered);
  Take(core_->OnHeadDown(now_));
  Advance(std::chrono::seconds(19));
  EXPECT_TRUE(SignalsTo(id).empty());
  Advance(std::chrono::seconds(1));
  EXPECT_EQ(SignalsTo(id), std::vector<int>{SIGKILL}) << "60 s after the head can have heard of it";
}

TEST_F(WorkerCoreTest, RequestsOfProcessesAreRelayedAndRepeatedToALaterHead) {
  Join();
  const ProcessId id = StartActor();
  wire::KvGet get;
  get.key = "k";
  FromProcess(id, get, "", 12);
  ASSERT_EQ(Sent<wire::Relay>().size(), 1u);
  EXPECT_EQ(Last<wire::Relay>().actor, ActorId(6, 6));
  Take(core_->OnHeadDown(now_));
  Join(2);
  EXPECT_EQ(Sent<wire::Relay>().size(), 2u);
  wire::Message answer = Make(wire::KvValue());
  answer.reply_to = 12;
  wire::RelayDown down;
  down.process = id;
  Head(down, *wire::EncodeFrame(answer));
  ASSERT_EQ(All<FrameToProcess>().size(), 1u);
  EXPECT_EQ(*wire::DecodeFrame(All<FrameToProcess>()[0].frame), answer);
  Take(core_->OnHeadDown(now_));
  Join(3);
  EXPECT_EQ(Sent<wire::Relay>().size(), 2u) << "answered ones are not repeated";
}

TEST_F(WorkerCoreTest, ProcessesHearOfAHeadThatHasForgottenWhatTheyWatch) {
  Join();
  const ProcessId id = StartActor();
  EXPECT_TRUE(SentToProcesses<wire::Welcome>().empty()) << "it began under this head";
  Take(core_->OnHeadDown(now_));
  Join();
  EXPECT_TRUE(SentToProcesses<wire::Welcome>().empty()) << "this one still knows";
  Take(core_->OnHeadDown(now_));
  Join(2);
  EXPECT_EQ(SentToProcesses<wire::Welcome>(), std::vector<ProcessId>{id});
  Exit(id);
  Take(core_->OnHeadDown(now_));
  Join(3);
  EXPECT_EQ(SentToProcesses<wire::Welcome>().size(), 1u) << "nobody hears it";
}

TEST_F(WorkerCoreTest, ARequestThatMayNotBeRepeatedEndsAsUnknown) {
  Join();
  const ProcessId id = StartActor();
  wire::KvPut put;
  put.overwrite = false;
  FromProcess(id, put, "v", 9);
  Take(core_->OnHeadDown(now_));
  EXPECT_EQ(SentToProcesses<wire::ErrorReply>(), std::vector<ProcessId>{id});
  Join(2);
  EXPECT_EQ(Sent<wire::Relay>().size(), 1u);
}

TEST_F(WorkerCoreTest, AMessageThatNobodyTakesIsNotDroppedWithoutAWord) {
  Join();
  StartLaunch(1);
  FromProcess(ranks_[0], wire::KillActor());  // a request, which only a number makes one
  FromProcess(ranks_[0], wire::KillActor());
  ASSERT_EQ(All<NotTaken>().size(), 1u) << "once per process";
  EXPECT_EQ(All<NotTaken>()[0].process, ranks_[0]);
  EXPECT_EQ(All<NotTaken>()[0].kind, "KillActor");
}

TEST_F(WorkerCoreTest, LeavingEndsEverythingAndThenLeaves) {
  Take(core_->OnTimer(now_));
  Join();
  StartLaunch(2);
  log_.clear();
  Take(core_->Leave("SIGTERM", now_));
  ASSERT_FALSE(All<ToHead>().empty());
  EXPECT_TRUE(wire::Holds<wire::DrainNode>(All<ToHead>().front().message.body))
      << "before any end that it leads to";
  EXPECT_TRUE(All<LeaveNode>().empty());
  for (const ProcessId rank : ranks_) Over(rank, 1);
  EXPECT_EQ(Last<wire::RankDone>().failure.kind, wire::FailureKind::kNodeLeaves);
  Over(store_, 0, SIGKILL);
  EXPECT_EQ(All<LeaveNode>().size(), 1u);
}

TEST_F(WorkerCoreTest, CodeOfRanksHasTimeForALastWordWhenItsNodeLeavesAndASecondWordEndsIt) {
  Join();
  StartLaunch(2);
  MakeReady();
  wire::PublishRoster roster;
  roster.launch = launch_;
  roster.epoch = 1;
  Head(roster);
  log_.clear();
  Take(core_->Leave("SIGTERM", now_));
  std::size_t told = 0;
  for (const ToProcess& each : All<ToProcess>()) {
    const auto* stop = wire::GetIf<wire::ProcessStop>(&each.message.body);
    if (stop == nullptr) continue;
    ++told;
    EXPECT_EQ(stop->signal, SIGTERM);
    EXPECT_EQ(stop->grace_ms, 10'000u);
  }
  EXPECT_EQ(told, 2u);
  wire::StopRanks sibling;
  sibling.launch = launch_;
  sibling.epoch = 1;
  sibling.grace_ms = 2000;
  Head(sibling);
  log_.clear();
  now_ += std::chrono::seconds(5);
  Take(core_->OnTimer(now_));
  for (const ProcessId rank : ranks_)
    EXPECT_TRUE(SignalsTo(rank).empty()) << "a sibling's end takes no time away";
  Take(core_->Leave("SIGTERM", now_));
  for (const ProcessId rank : ranks_) EXPECT_EQ(SignalsTo(rank), std::vector<int>{SIGKILL});
}

TEST_F(WorkerCoreTest, AnIdleNodeLeavesAtOnce) {
  Join();
  Take(core_->Leave("SIGTERM", now_));
  EXPECT_EQ(All<LeaveNode>().size(), 1u);
}

TEST_F(WorkerCoreTest, TheSameInputsGiveTheSameEffects) {
  std::vector<std::size_t> sizes;
  for (int run = 0; run < 2; ++run) {
    log_.clear();
    random_ = Prng(11);
    Restart();
    now_ = Instant(std::chrono::seconds(100));
    Join();
    StartLaunch(3);
    MakeReady();
    sizes.push_back(log_.size());
    sizes.push_back(ranks_[1].lo);
  }
  EXPECT_EQ(sizes[0], sizes[2]);
  EXPECT_EQ(sizes[1], sizes[3]);
}

}  // namespace
}  // namespace troupe::worker
