// Method: play the head and the processes to a WorkerCore step by step; look at its effects.
#include <csignal>

#include "tests/worker/core_fixture.h"
#include "worker/core/environment.h"

namespace troupe::worker {
namespace {

class LaunchesTest : public CoreFixture {
 protected:
  void Roster() {
    wire::PublishRoster roster;
    roster.launch = launch_;
    roster.epoch = 1;
    Head(roster);
  }
  void Stop(int signal, std::uint32_t grace_ms, wire::Outcome outcome = wire::Outcome::kCancelled) {
    wire::StopRanks stop;
    stop.outcome = outcome;
    stop.launch = launch_;
    stop.epoch = 1;
    stop.signal = signal;
    stop.grace_ms = grace_ms;
    stop.exit_code = 130;
    Head(stop);
  }
  std::vector<wire::ProcessStop> ToldToStop() const {
    std::vector<wire::ProcessStop> told;
    for (const Effect& effect : log_) {
      const auto* to = std::get_if<ToProcess>(&effect);
      const auto* stop = to ? wire::GetIf<wire::ProcessStop>(&to->message.body) : nullptr;
      if (stop != nullptr) told.push_back(*stop);
    }
    return told;
  }
  void End(wire::Outcome outcome, int exit_code) {
    wire::EndEpoch end;
    end.launch = launch_;
    end.epoch = 1;
    end.outcome = outcome;
    end.exit_code = exit_code;
    Head(end);
  }
};

wire::RankResult Value() {
  wire::RankResult result;
  result.outcome = wire::Outcome::kSucceeded;
  return result;
}

TEST_F(LaunchesTest, W6_StoreIsForkedFirstAndReadyWaitsForAll) {
  Join();
  StartLaunch(2);
  const auto starts = All<StartProcess>();
  ASSERT_EQ(starts.size(), 3u);
  EXPECT_EQ(starts[0].request.kind, wire::ProcessKind::kStore);
  FromProcess(ranks_[0], wire::RankPrepared());
  FromProcess(ranks_[1], wire::RankPrepared());
  EXPECT_TRUE(Sent<wire::RanksReady>().empty());
  wire::StoreReady store;
  store.port = 4242;
  store.group_secret = "random";
  FromProcess(store_, store);
  ASSERT_EQ(Sent<wire::RanksReady>().size(), 1u);
  EXPECT_EQ(Last<wire::RanksReady>().group_secret, "random");
  EXPECT_EQ(Last<wire::RanksReady>().store_host, "127.0.0.1");
  EXPECT_EQ(Last<wire::RanksReady>().store_port, 4242);
}

TEST_F(LaunchesTest, W6_WithoutTorchThereIsNoStoreAndRanksRun) {
  Join();
  StartLaunch(2);
  FromProcess(ranks_[0], wire::RankPrepared());
  FromProcess(ranks_[1], wire::RankPrepared());
  FromProcess(store_, wire::StoreReady());
  ASSERT_EQ(Sent<wire::RanksReady>().size(), 1u);
  wire::PublishRoster roster;
  roster.launch = launch_;
  roster.epoch = 1;
  roster.store_host = Last<wire::RanksReady>().store_host;
  Head(roster);
  EXPECT_EQ(SentToProcesses<wire::RankRun>(), ranks_);
}

TEST_F(LaunchesTest, WhatRanksWereStartedFromIsSaidOncePerKind) {
  Join();
  StartLaunch(4);
  EXPECT_EQ(ranks_.size(), 4u);
  for (const std::size_t rank : {1u, 2u})
    Take(core_->OnForked(ranks_[rank], 500, now_, "forked from a zygote with lightning"));
  Take(core_->OnForked(ranks_[3], 501, now_, "in fresh interpreters for TORCH_LOGS"));
  MakeReady();
  EXPECT_EQ(Last<wire::RanksReady>().started_from,
            "forked from a zygote with lightning; in fresh interpreters for TORCH_LOGS");
}

TEST_F(LaunchesTest, RosterSendsEveryRankOff) {
  Join();
  StartLaunch(2);
  MakeReady();
  wire::PublishRoster roster;
  roster.launch = launch_;
  roster.epoch = 1;
  roster.store_host = "127.0.0.1";
  roster.store_port = 4242;
  Head(roster);
  EXPECT_EQ(SentToProcesses<wire::RankRun>(), ranks_);
  Head(roster);
  EXPECT_EQ(SentToProcesses<wire::RankRun>().size(), 2u) << "a repeated roster changes nothing";
}

// The head's ports are a default: a value of the program's or of a file of the host wins.
TEST_F(LaunchesTest, RdmaPortsAreADefaultOfNcclsVariable) {
  NodeFacts facts;
  wire::StartRanks start;
  start.environment.env.push_back({"TROUPE_RDMA_PORTS", "=mlx5_0:1", false});
  const Interface chosen{"eth0", "10.0.0.1"};
  const auto value = [&](const std::string& name) {
    for (const auto& each : RankEnvironment(facts, start, {}, chosen, ProcessId())) {
      EXPECT_NE(each.name, "TROUPE_RDMA_PORTS");
      if (each.name == name) return each.value;
    }
    return std::string("unset");
  };
  EXPECT_EQ(value("NCCL_IB_HCA"), "=mlx5_0:1");
  EXPECT_EQ(value("NCCL_SOCKET_IFNAME"), "=eth0");
  facts.nccl_file_names = {"NCCL_IB_HCA", "NCCL_SOCKET_IFNAME"};
  EXPECT_EQ(value("NCCL_IB_HCA"), "unset");
  EXPECT_EQ(value("NCCL_SOCKET_IFNAME"), "unset");
  EXPECT_EQ(value("GLOO_SOCKET_IFNAME"), "eth0");
  start.environment.env.push_back({"NCCL_IB_HCA", "mlx5_7", false});
  EXPECT_EQ(value("NCCL_IB_HCA"), "mlx5_7");
}

TEST_F(LaunchesTest, WhomTheStoreAdmitsIsToldToTheStoreAlone) {
  NodeFacts facts;
  facts.base_environment.push_back({"TROUPE_STORE_PEERS", "0.0.0.0/0", false});
  wire::StartRanks start;
  const Interface chosen{"eth0", "10.0.0.1"};
  const auto value = [](const std::vector<wire::EnvVar>& environment) {
    for (const auto& each : environment) {
      if (each.name == "TROUPE_STORE_PEERS") return each.value;
    }
    return std::string("unset");
  };
  EXPECT_EQ(value(StoreEnvironment(facts, start, chosen, ProcessId())), "unset");
  start.environment.env.push_back({"TROUPE_STORE_PEERS", "10.0.0.1 10.0.0.2", false});
  EXPECT_EQ(value(StoreEnvironment(facts, start, chosen, ProcessId())), "10.0.0.1 10.0.0.2");
  EXPECT_EQ(value(RankEnvironment(facts, start, {}, chosen, ProcessId())), "unset");
}

TEST_F(LaunchesTest, RankEnvironmentFollowsTorchrun) {
  Join();
  StartLaunch(2);
  std::map<std::string, std::string> env;
  const StartProcess start = All<StartProcess>()[2];
  for (const auto& each : start.request.env) env[each.name] = each.value;
  EXPECT_EQ(env["RANK"], "1");
  EXPECT_EQ(env["LOCAL_RANK"], "1");
  EXPECT_EQ(env["WORLD_SIZE"], "2");
  EXPECT_EQ(env["LOCAL_WORLD_SIZE"], "2");
  EXPECT_EQ(env["TORCHELASTIC_USE_AGENT_STORE"], "True");
  EXPECT_EQ(env["GLOO_SOCKET_IFNAME"], "lo");
  EXPECT_EQ(env["TROUPE_ADDRESS"], "10.0.0.9:6400");
  EXPECT_EQ(env["OMP_NUM_THREADS"], "1");
}

TEST_F(LaunchesTest, W1_RankDoneIsSentWhenTheResultIsWhole) {
  Join();
  StartLaunch(2);
  MakeReady();
  FromProcess(ranks_[0], Value(), "seven");
  ASSERT_EQ(Sent<wire::RankDone>().size(), 1u);
  EXPECT_EQ(Last<wire::RankDone>().outcome, wire::Outcome::kSucceeded);
  EXPECT_EQ(Sent<wire::RankDone>()[0].attachment, "seven");
  EXPECT_EQ(Last<wire::RankDone>().sha256, "sha:seven");
  EXPECT_TRUE(SentToProcesses<wire::ProcessEnd>().empty())
      << "W8: its peers may still be connected to it";
  Over(ranks_[0]);
  EXPECT_EQ(Sent<wire::RankDone>().size(), 1u);
}

TEST_F(LaunchesTest, W1_WithoutAResultRankDoneNeedsExitAndDrainInEitherOrder) {
  Join();
  StartLaunch(2);
  MakeReady();
  Exit(ranks_[0]);
  EXPECT_TRUE(Sent<wire::RankDone>().empty());
  FromProcess(ranks_[0], Value(), "seven");  // an exit event overtook unread bytes
  ASSERT_EQ(Sent<wire::RankDone>().size(), 1u);
  EXPECT_EQ(Last<wire::RankDone>().outcome, wire::Outcome::kSucceeded);
  Take(core_->OnDrained(ranks_[1], now_));
  EXPECT_EQ(Sent<wire::RankDone>().size(), 1u);
  Exit(ranks_[1], 5);
  ASSERT_EQ(Sent<wire::RankDone>().size(), 2u);
  EXPECT_EQ(Last<wire::RankDone>().outcome, wire::Outcome::kFailed);
}

TEST_F(LaunchesTest, W2_RankDoneIsRepeatedUntilAcknowledged) {
  Join();
  StartLaunch(1);
  MakeReady();
  FromProcess(ranks_[0], Value(), "v");
  Over(ranks_[0]);
  EXPECT_EQ(Sent<wire::RankDone>().size(), 1u);
  Advance(std::chrono::seconds(2));
  EXPECT_EQ(Sent<wire::RankDone>().size(), 2u);
  Take(core_->OnHeadDown(now_));
  Join(2);
  EXPECT_EQ(Sent<wire::RankDone>().size(), 3u) << "a later head hears it too";
  wire::RankDoneAck ack;
  ack.launch = launch_;
  ack.epoch = 1;
  Head(ack);
  Advance(std::chrono::seconds(10));
  EXPECT_EQ(Sent<wire::RankDone>().size(), 3u);
}

TEST_F(LaunchesTest, W3_ExitWithoutAValueIsFailed) {
  Join();
  StartLaunch(2);
  MakeReady();
  Over(ranks_[0], 0);
  EXPECT_EQ(Last<wire::RankDone>().outcome, wire::Outcome::kFailed);
  EXPECT_EQ(Last<wire::RankDone>().failure.cause,
            "rank 0 on node-a exited with code 0 without returning a value");
  Over(ranks_[1], 0, SIGKILL);
  EXPECT_EQ(Last<wire::RankDone>().failure.signal, SIGKILL);
  EXPECT_EQ(Last<wire::RankDone>().failure.cause,
            "rank 1 on node-a (host-a), pid 103, ended: SIGKILL");
}

TEST_F(LaunchesTest, W3_AValueCountsHoweverTheProcessExits) {
  Join();
  StartLaunch(1);
  MakeReady();
  FromProcess(ranks_[0], Value(), "v");
  Over(ranks_[0], 0, SIGSEGV);
  EXPECT_EQ(Last<wire::RankDone>().outcome, wire::Outcome::kSucceeded);
}

TEST_F(LaunchesTest, W8_ARankThatIsDoneLeavesAtTheEndOfTheEpochOrWhenItsFailureIsKnown) {
  Join();
  StartLaunch(2);
  MakeReady();
  FromProcess(ranks_[0], Value(), "v");
  wire::RankResult raised;
  raised.outcome = wire::Outcome::kFailed;
  raised.failure.exception_type = "builtins.KeyError";
  raised.failure.kind = wire::FailureKind::kRaised;
  raised.failure.exit_code = 1;
  FromProcess(ranks_[1], raised, "pickled");
  EXPECT_TRUE(SentToProcesses<wire::ProcessEnd>().empty());
  wire::RankDoneAck ack;
  ack.launch = launch_;
  ack.epoch = 1;
  Head(ack);
  EXPECT_TRUE(SentToProcesses<wire::ProcessEnd>().empty());
  ack.rank = 1;
  Head(ack);
  EXPECT_EQ(SentToProcesses<wire::ProcessEnd>(), std::vector<ProcessId>{ranks_[1]});
  End(wire::Outcome::kFailed, 1);
  EXPECT_EQ(SentToProcesses<wire::ProcessEnd>(), (std::vector<ProcessId>{ranks_[1], ranks_[0]}));
}

TEST_F(LaunchesTest, W3_ARankThatGaveItsResultAndStaysIsKilledAndTheResultCounts) {
  Join();
  StartLaunch(1);
  MakeReady();
  FromProcess(ranks_[0], Value(), "v");
  End(wire::Outcome::kSucceeded, 0);
  Advance(std::chrono::seconds(64));
  EXPECT_TRUE(SignalsTo(ranks_[0]).empty()) << "its threads and exit handlers may take their time";
  wire::Release release;
  release.group = group_;
  release.attempt = 1;
  Head(release);
  Advance(std::chrono::milliseconds(500));
  EXPECT_TRUE(SignalsTo(ranks_[0]).empty()) << "what it holds is free when it is gone, no sooner";
  Advance(std::chrono::seconds(1));
  EXPECT_EQ(SignalsTo(ranks_[0]), std::vector<int>{SIGKILL});
  Over(ranks_[0], 0, SIGKILL);
  EXPECT_EQ(Last<wire::RankDone>().outcome, wire::Outcome::kSucceeded);
  EXPECT_EQ(Last<wire::RankLeft>().warning,
            "rank 0 on node-a returned its value, and then did not end in the time it had and was "
            "killed");
}

TEST_F(LaunchesTest, W8_WithoutAHeadARankThatIsDoneLeavesAfterAMinute) {
  Join();
  StartLaunch(1);
  MakeReady();
  FromProcess(ranks_[0], Value(), "v");
  Take(core_->OnHeadDown(now_));
  Advance(std::chrono::seconds(59));
  EXPECT_TRUE(SentToProcesses<wire::ProcessEnd>().empty());
  Advance(std::chrono::seconds(1));
  EXPECT_EQ(SentToProcesses<wire::ProcessEnd>(), ranks_);
}

TEST_F(LaunchesTest, AFencedRankEndsAtOnceAlsoWhileItLeaves) {
  Join();
  StartLaunch(1);
  MakeReady();
  FromProcess(ranks_[0], Value(), "v");
  End(wire::Outcome::kSucceeded, 0);
  const ProcessId old = ranks_[0];
  StartLaunch(1, 2);
  Advance(std::chrono::milliseconds(200));
  EXPECT_EQ(SignalsTo(old), std::vector<int>{SIGTERM});
}

TEST_F(LaunchesTest, AStoppedRankHasItsGraceAndIsCancelledWhateverItReturns) {
  Join();
  StartLaunch(2);
  MakeReady();
  Roster();
  Stop(SIGINT, 10000);
  EXPECT_EQ(SentToProcesses<wire::ProcessStop>(), ranks_);
  EXPECT_FALSE(ToldToStop()[0].peer_lost) << "all are there: they may meet to write a checkpoint";
  EXPECT_TRUE(All<SignalProcess>().empty())
      << "it raises the signal itself, and knows then whose word it is";
  FromProcess(ranks_[0], Value(), "v");
  EXPECT_TRUE(Sent<wire::RankDone>().empty()) << "W1: it may still write its checkpoint";
  Over(ranks_[0], 0);
  EXPECT_EQ(Last<wire::RankDone>().outcome, wire::Outcome::kCancelled);
  Advance(std::chrono::milliseconds(9999));
  EXPECT_TRUE(All<SignalProcess>().empty());
  Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(SignalsTo(ranks_[1]), std::vector<int>{SIGKILL}) << "one that is stuck";
  Over(ranks_[1], 0, SIGKILL);
  EXPECT_EQ(Last<wire::RankDone>().outcome, wire::Outcome::kCancelled);
}

TEST_F(LaunchesTest, ACollectiveThatFailsOnceAPeersLossWasToldIsNoFailureOfItsRank) {
  for (const bool told : {true, false}) {
    Restart();
    Join();
    StartLaunch(2);
    MakeReady();
    Roster();
    if (told) Stop(SIGTERM, 2000, wire::Outcome::kFailed);
    wire::RankResult result;
    result.outcome = wire::Outcome::kFailed;
    result.failure.cause = "RuntimeError: Connection closed by peer";
    result.failure.symptom = true;
    FromProcess(ranks_[0], result);
    Over(ranks_[0], 1);
    EXPECT_EQ(Last<wire::RankDone>().outcome,
              told ? wire::Outcome::kCancelled : wire::Outcome::kFailed);
  }
}

TEST_F(LaunchesTest, ASecondStopOnlyTakesTimeAway) {
  Join();
  StartLaunch(1);
  MakeReady();
  Roster();
  Stop(SIGTERM, 10000);
  Stop(SIGTERM, 20000);
  Advance(std::chrono::seconds(5));
  EXPECT_EQ(SentToProcesses<wire::ProcessStop>(), ranks_) << "once";
  EXPECT_TRUE(All<SignalProcess>().empty());
  Stop(SIGTERM, 0);
  EXPECT_EQ(SignalsTo(ranks_[0]), std::vector<int>{SIGKILL});
}

wire::RankProgram Executes() {
  wire::RankProgram program;
  program.command = "bash train.sh";
  return program;
}

TEST_F(LaunchesTest, W10_ARankThatRunsAScriptItselfMayLeaveWithoutAWord) {
  Join();
  StartLaunch(2);
  MakeReady();
  Roster();
  for (const ProcessId rank : ranks_) FromProcess(rank, wire::RankProgram(), "none, pickled");
  Over(ranks_[0], 0);
  EXPECT_EQ(Last<wire::RankDone>().outcome, wire::Outcome::kSucceeded) << "os._exit(0)";
  EXPECT_EQ(Sent<wire::RankDone>().back().attachment, "none, pickled");
  wire::RankResult raised;
  raised.outcome = wire::Outcome::kFailed;
  raised.failure.exit_code = 3;
  FromProcess(ranks_[1], raised);
  EXPECT_EQ(Last<wire::RankDone>().outcome, wire::Outcome::kFailed) << "what it says counts";
  EXPECT_EQ(Last<wire::RankDone>().failure.exit_code, 3);
}

TEST_F(LaunchesTest, ARankThatExecutesAProgramIsNotAskedWhereItIs) {
  Join();
  StartLaunch(1);
  MakeReady();
  Roster();
  FromProcess(ranks_[0], Executes(), "none, pickled");
  Stop(SIGTERM, 10000);
  EXPECT_TRUE(Sent<wire::RankWhere>().empty()) << "nobody wants to know";
  wire::StopRanks stop;
  stop.launch = launch_;
  stop.epoch = 1;
  stop.signal = SIGTERM;
  stop.where = true;
  Head(stop);
  EXPECT_EQ(Last<wire::RankWhere>().text, "  it runs a program: bash train.sh\n");
}

TEST_F(LaunchesTest, W10_ARankThatExecutesAProgramHasTheOutcomeOfItsExit) {
  Join();
  StartLaunch(2);
  MakeReady();
  Roster();
  for (const ProcessId rank : ranks_) {
    FromProcess(rank, Executes(), "none, pickled");
    Take(core_->OnDrained(rank, now_));
  }
  EXPECT_TRUE(Sent<wire::RankDone>().empty()) << "the end of its channel is no end of it";
  Exit(ranks_[0], 0);
  EXPECT_EQ(Last<wire::RankDone>().outcome, wire::Outcome::kSucceeded);
  EXPECT_EQ(Sent<wire::RankDone>().back().attachment, "none, pickled");
  EXPECT_EQ(Last<wire::RankDone>().sha256, "sha:none, pickled");
  ExitInfo failed;
  failed.exit_code = 3;
  failed.log_tail = "its last words";
  Take(core_->OnExited(ranks_[1], failed, now_));
  EXPECT_EQ(Last<wire::RankDone>().outcome, wire::Outcome::kFailed);
  EXPECT_EQ(Last<wire::RankDone>().failure.exit_code, 3);
  EXPECT_EQ(Last<wire::RankDone>().failure.log_tail, "its last words");
  EXPECT_TRUE(Sent<wire::RankDone>().back().attachment.empty());
}

TEST_F(LaunchesTest, W14_TheEndOfAKeptLogGoesBeforeEachRankDone) {
  Join();
  ASSERT_TRUE(ReserveCpus(group_, 1, 1).granted);
  wire::StartRanks start = Ranks(1);
  start.keep_log_bytes = 4096;
  log_.clear();
  Head(start, "payload");
  const ProcessId rank = All<StartProcess>().back().request.process;
  Take(core_->OnForked(rank, 7, now_));
  log_.clear();
  Over(rank, 3);
  const auto order = [this] {
    std::string found;
    for (const Effect& each : log_) {
      if (const auto* log = std::get_if<SendLogEnd>(&each)) {
        EXPECT_EQ(log->place.folder, launch_.Hex() + "/epoch-1");
        EXPECT_EQ(log->place.stem, "rank-0");
        EXPECT_EQ(log->bytes_max, 4096u);
        found += "log ";
      }
      const auto* sent = std::get_if<ToHead>(&each);
      if (sent != nullptr && wire::Holds<wire::RankDone>(sent->message.body)) found += "done ";
    }
    log_.clear();
    return found;
  };
  EXPECT_EQ(order(), "log done ");
  Take(core_->OnHeadDown(now_));
  EXPECT_EQ(order(), "");
  Join(2);
  EXPECT_EQ(order(), "log done ") << "a head that was started anew has it before the marker, too";
}

TEST_F(LaunchesTest, W10_AProgramIsToldToStopByTheSignalItselfWithItsGroup) {
  Join();
  StartLaunch(2);
  MakeReady();
  Roster();
  FromProcess(ranks_[0], Executes(), "v");
  Stop(SIGINT, 10000);
  EXPECT_EQ(SentToProcesses<wire::ProcessStop>(), std::vector<ProcessId>{ranks_[1]});
  ASSERT_EQ(SignalsTo(ranks_[0]), std::vector<int>{SIGINT});
  EXPECT_TRUE(All<SignalProcess>()[0].to_group) << "a shell waits for what it has started";
  FromProcess(ranks_[1], Executes(), "v");
  EXPECT_EQ(SignalsTo(ranks_[1]), std::vector<int>{SIGINT})
      << "what it was told before it was one, and did not hear";
  Over(ranks_[0], 0);
  EXPECT_EQ(Last<wire::RankDone>().outcome, wire::Outcome::kCancelled)
      << "whatever it makes of that";
  Advance(std::chrono::milliseconds(10000));
  EXPECT_EQ(SignalsTo(ranks_[1]).back(), SIGKILL);
}

TEST_F(LaunchesTest, AProgramThatIsToGoNowIsNotAskedByAMessage) {
  Join();
  StartLaunch(2);
  MakeReady();
  Roster();
  FromProcess(ranks_[0], Executes(), "v");
  End(wire::Outcome::kFailed, 1);
  EXPECT_EQ(SignalsTo(ranks_[0]), std::vector<int>{SIGTERM}) << "at once";
  EXPECT_TRUE(SignalsTo(ranks_[1]).empty());
  FromProcess(ranks_[1], Executes(), "v");
  EXPECT_EQ(SignalsTo(ranks_[1]), std::vector<int>{SIGTERM}) << "it was asked, and is deaf since";
}

TEST_F(LaunchesTest, AfterAnotherRanksFailureRanksHearThatAPeerIsLost) {
  Join();
  StartLaunch(2);
  MakeReady();
  Roster();
  Stop(SIGTERM, 2000, wire::Outcome::kFailed);
  EXPECT_EQ(SentToProcesses<wire::ProcessStop>(), ranks_);
  for (const wire::ProcessStop& told : ToldToStop()) {
    EXPECT_EQ(told.signal, SIGTERM);
    EXPECT_TRUE(told.peer_lost);
  }
}

TEST_F(LaunchesTest, WhoServesADriverHearsThatAPeerIsLostWithoutASignal) {
  Join();
  StartLaunch(2, 1, wire::LaunchMode::kDriver);
  MakeReady();
  Roster();
  Stop(SIGTERM, 2000, wire::Outcome::kFailed);
  EXPECT_EQ(SentToProcesses<wire::ProcessStop>(), ranks_);
  const std::vector<wire::ProcessStop> told = ToldToStop();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[1].signal, 0);
  EXPECT_TRUE(told[0].peer_lost && told[1].peer_lost);
}

TEST_F(LaunchesTest, AStopLeavesWhoIsDoneAndWhoServesADriverAlone) {
  Join();
  StartLaunch(2, 1, wire::LaunchMode::kDriver);
  MakeReady();
  Roster();
  Stop(SIGTERM, 10000);
  EXPECT_EQ(SentToProcesses<wire::ProcessStop>(), std::vector<ProcessId>{ranks_[0]});
  EXPECT_TRUE(SignalsTo(ranks_[1]).empty());
}

TEST_F(LaunchesTest, W9_TheAnswerFollowsTheEndsThatHaveBegun) {
  Join();
  StartLaunch(2);
  MakeReady();
  Roster();
  wire::AskRanks ask;
  ask.launch = launch_;
  ask.epoch = 1;
  ask.question = 9;
  Head(ask);
  ASSERT_EQ(All<SweepProcesses>().size(), 1u);
  EXPECT_EQ(All<SweepProcesses>()[0].processes.size(), 2u);
  EXPECT_TRUE(Sent<wire::RanksSeen>().empty());
  Take(core_->OnSwept(All<SweepProcesses>()[0].ticket, {ranks_[1]}, now_));
  EXPECT_TRUE(Sent<wire::RanksSeen>().empty()) << "one has begun to exit, and nobody knows how";
  Over(ranks_[1], 0, SIGKILL);
  ASSERT_EQ(Sent<wire::RanksSeen>().size(), 1u);
  EXPECT_EQ(Last<wire::RanksSeen>().question, 9u);
  EXPECT_EQ(Last<wire::RankDone>().failure.signal, SIGKILL);
}

TEST_F(LaunchesTest, W9_AnEpochThatIsNotHereIsAnsweredForAtOnce) {
  Join();
  wire::AskRanks ask;
  ask.launch = LaunchId(9, 9);
  ask.question = 3;
  Head(ask);
  Take(core_->OnSwept(All<SweepProcesses>()[0].ticket, {}, now_));
  EXPECT_EQ(Last<wire::RanksSeen>().question, 3u);
}

TEST_F(LaunchesTest, ARankThatIsStoppedForAnothersFailureIsCancelled) {
  Join();
  StartLaunch(1);
  MakeReady();
  wire::EndEpoch end;
  end.launch = launch_;
  end.epoch = 1;
  end.outcome = wire::Outcome::kFailed;
  end.exit_code = 1;
  end.reason = "KeyError: 'lr'";
  Head(end);
  Over(ranks_[0], 1);
  EXPECT_EQ(Last<wire::RankDone>().outcome, wire::Outcome::kCancelled);
  EXPECT_EQ(Last<wire::RankDone>().failure.exit_code, 1);
}

TEST_F(LaunchesTest, W3_AKillForWantOfMemoryHasATypeOfItsOwn) {
  Join();
  StartLaunch(1);
  MakeReady();
  ExitInfo exit;
  exit.signal = SIGKILL;
  exit.out_of_memory = "cgroup memory.events";
  Take(core_->OnExited(ranks_[0], exit, now_));
  Take(core_->OnDrained(ranks_[0], now_));
  EXPECT_EQ(Last<wire::RankDone>().failure.kind, wire::FailureKind::kOutOfMemory);
  EXPECT_EQ(
      Last<wire::RankDone>().failure.cause,
      "rank 0 on node-a (host-a), pid 102, ended: SIGKILL, out of memory (cgroup memory.events)");
}

TEST_F(LaunchesTest, W3_AnExceptionKeepsItsTypeAndExitCode) {
  Join();
  StartLaunch(1);
  MakeReady();
  wire::RankResult result;
  result.outcome = wire::Outcome::kFailed;
  result.failure.exception_type = "builtins.KeyError";
  result.failure.kind = wire::FailureKind::kRaised;
  result.failure.cause = "KeyError: 'lr'";
  FromProcess(ranks_[0], result, "pickled");
  Over(ranks_[0], 1);
  const wire::RankDone done = Last<wire::RankDone>();
  EXPECT_EQ(done.failure.cause, "KeyError: 'lr'");
  EXPECT_EQ(done.failure.exit_code, 1);
  EXPECT_EQ(done.failure.node_name, "node-a");
  EXPECT_EQ(done.failure.rank, 0);
}

TEST_F(LaunchesTest, ALargeValueIsKeptHereAndReportedByDigest) {
  Join();
  StartLaunch(1);
  MakeReady();
  FromProcess(ranks_[0], Value(), std::string(2u << 20, 'x'));
  ASSERT_EQ(All<KeepValue>().size(), 1u);
  Over(ranks_[0]);
  EXPECT_TRUE(Sent<wire::RankDone>().empty()) << "it is not durable yet";
  KeptValue kept;
  kept.sha256 = "digest";
  kept.size_bytes = 2u << 20;
  Take(core_->OnValueKept(ranks_[0], kept, now_));
  ASSERT_EQ(Sent<wire::RankDone>().size(), 1u);
  EXPECT_TRUE(Last<wire::RankDone>().kept_by_worker);
  EXPECT_TRUE(Sent<wire::RankDone>()[0].attachment.empty());
}

TEST_F(LaunchesTest, W5_EpochEndedOnlyWhenNothingIsLeft) {
  Join();
  StartLaunch(2);
  MakeReady();
  wire::EndEpoch end;
  end.launch = launch_;
  end.epoch = 1;
  end.outcome = wire::Outcome::kFailed;
  end.exit_code = 3;
  Head(end);
  EXPECT_EQ(SentToProcesses<wire::ProcessEnd>().size(), 2u);
  Over(ranks_[0], 3);
  EXPECT_TRUE(Sent<wire::EpochEnded>().empty());
  Advance(std::chrono::milliseconds(200));
  Advance(std::chrono::milliseconds(200));
  EXPECT_EQ(SignalsTo(ranks_[1]), (std::vector<int>{SIGTERM, SIGKILL}));
  Over(ranks_[1], 0, SIGKILL);
  EXPECT_TRUE(Sent<wire::EpochEnded>().empty()) << "the store is left";
  EXPECT_EQ(SignalsTo(store_), std::vector<int>{SIGKILL});
  Over(store_, 0, SIGKILL);
  EXPECT_EQ(Sent<wire::EpochEnded>().size(), 1u);
  EXPECT_EQ(Sent<wire::RankDone>().size(), 2u) << "exit codes follow the marker";
  EXPECT_TRUE(core_->processes().empty());
}

TEST_F(LaunchesTest, W5_WhatTheDriverCreatedEndsWithTheEpoch) {
  Join();
  StartLaunch(1, 1, wire::LaunchMode::kDriver);
  ASSERT_TRUE(ReserveCpus(GroupId(8, 8), 1, 1, 0, group_).granted);
  wire::StartActor actor;
  actor.actor = ActorId(6, 6);
  actor.incarnation = 1;
  actor.group = GroupId(8, 8);
  actor.attempt = 1;
  actor.launch = launch_;
  actor.epoch = 1;
  Head(actor, "class");
  const ProcessId id = All<StartProcess>().back().request.process;
  Take(core_->OnForked(id, 500, now_));
  wire::EndEpoch end;
  end.launch = launch_;
  end.epoch = 1;
  Head(end);
  Over(ranks_[0]);
  Over(store_);
  EXPECT_TRUE(Sent<wire::EpochEnded>().empty());
  Over(id, 0);
  EXPECT_EQ(Sent<wire::EpochEnded>().size(), 1u);
  EXPECT_EQ(Sent<wire::ActorEnded>().size(), 1u);
}

TEST_F(LaunchesTest, W5_EndOfAnUnknownEpochIsAnsweredAtOnce) {
  Join();
  wire::EndEpoch end;
  end.launch = LaunchId(9, 9);
  end.epoch = 4;
  Head(end);
  EXPECT_EQ(Last<wire::EpochEnded>().epoch, 4u);
}

TEST_F(LaunchesTest, W4_AnEndedEpochStartsNothing) {
  Join();
  wire::EndEpoch end;
  end.launch = launch_;
  end.epoch = 1;
  Head(end);
  ASSERT_TRUE(ReserveCpus(group_, 1, 1).granted);
  Head(Ranks(1), "payload");
  EXPECT_TRUE(All<StartProcess>().empty());
}

TEST_F(LaunchesTest, W4_AHigherEpochEndsTheLowerOne) {
  Join();
  StartLaunch(1, 1);
  const ProcessId old = ranks_[0];
  StartLaunch(1, 2);
  EXPECT_TRUE(core_->processes().all().at(old).ordered);
  log_.clear();
  Head(Ranks(1, 1), "payload");
  EXPECT_TRUE(All<StartProcess>().empty()) << "the lower one does not come back";
}

TEST_F(LaunchesTest, W7_LosingTheHeadEndsNothing) {
  Join();
  StartLaunch(2);
  MakeReady();
  Take(core_->OnHeadDown(now_));
  log_.clear();
  for (int i = 0; i < 100; ++i) Advance(std::chrono::seconds(5));
  EXPECT_TRUE(All<SignalProcess>().empty());
  FromProcess(ranks_[0], Value(), "v");
  Over(ranks_[0]);
  EXPECT_TRUE(Sent<wire::RankDone>().empty());
  Join(2);
  EXPECT_EQ(Sent<wire::RankDone>().size(), 1u);
  const auto registered = Sent<wire::RegisterNode>();
  ASSERT_EQ(registered.size(), 1u);
  const auto& node = wire::Get<wire::RegisterNode>(registered[0].body);
  ASSERT_EQ(node.ranks.size(), 1u) << "the rank that is still running";
  EXPECT_EQ(node.ranks[0].rank, 1u);
  EXPECT_EQ(node.holdings.size(), 1u);
}

TEST_F(LaunchesTest, AForkThatFailsIsAFailedRank) {
  Join();
  ASSERT_TRUE(ReserveCpus(group_, 1, 1).granted);
  log_.clear();
  Head(Ranks(1), "payload");
  const ProcessId rank = All<StartProcess>()[1].request.process;
  Take(core_->OnStartFailed(rank, "fork: Resource temporarily unavailable", now_));
  EXPECT_EQ(Last<wire::RankDone>().failure.cause,
            "rank 0 could not be started on node-a: fork: Resource temporarily unavailable");
}

TEST_F(LaunchesTest, AnotherPythonVersionIsRefused) {
  Join();
  ASSERT_TRUE(ReserveCpus(group_, 1, 1).granted);
  wire::StartRanks start = Ranks(1);
  start.environment.python_version = "3.12";
  Head(start, "payload");
  EXPECT_TRUE(All<StartProcess>().empty());
  EXPECT_EQ(Last<wire::RankDone>().failure.cause,
            "the caller runs Python 3.12, node node-a runs Python 3.11: a pickled function does "
            "not travel between them");
}

TEST_F(LaunchesTest, APayloadByDigestIsFetchedBeforeTheFork) {
  Join();
  ASSERT_TRUE(ReserveCpus(group_, 1, 1).granted);
  wire::StartRanks start = Ranks(1);
  start.payload.sha256 = "d";
  Head(start);
  ASSERT_EQ(All<FetchBlob>().size(), 1u);
  EXPECT_TRUE(All<StartProcess>().empty());
  Take(core_->OnBlob(All<FetchBlob>()[0].ticket, std::string("/blobs/d"), now_));
  const auto starts = All<StartProcess>();
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(wire::Get<wire::RankBegin>(starts[1].begin.body).payload_path, "/blobs/d");
}

TEST_F(LaunchesTest, DriverModeNamesWhereEachRankServes) {
  Join();
  StartLaunch(2, 1, wire::LaunchMode::kDriver);
  MakeReady();
  const wire::RanksReady ready = Last<wire::RanksReady>();
  ASSERT_EQ(ready.rank_actors.size(), 2u);
  EXPECT_EQ(ready.rank_actors[1].pid, 103);
  EXPECT_EQ(ready.rank_actors[1].unix_path.rfind("/run/t/p", 0), 0u);
  EXPECT_NE(ready.rank_actors[0].actor, ready.rank_actors[1].actor);
}

TEST_F(LaunchesTest, ReleaseOfTheGroupEndsItsRanksAndFreesAfterThem) {
  Join();
  StartLaunch(1);
  wire::Release release;
  release.group = group_;
  release.attempt = 1;
  Head(release);
  EXPECT_EQ(SentToProcesses<wire::ProcessEnd>(), ranks_);
  EXPECT_TRUE(Sent<wire::Released>().empty());
  Over(ranks_[0]);
  Over(store_);
  ASSERT_EQ(Sent<wire::Released>().size(), 1u);
  EXPECT_EQ(AmountOf(AmountsFromWire(Last<wire::Released>().free), kCpu), 8 * kWhole);
}

}  // namespace
}  // namespace troupe::worker
