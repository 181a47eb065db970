// Method: a launch of ranks is brought to run; the head says that some died, the ranks come to the
// group's next epoch in every order, and what the worker says and to whom is read. Names carry the
// invariants of worker/core/launches.h.
#include "tests/worker/core_fixture.h"

namespace troupe::worker {
namespace {

class RankGroups : public CoreFixture {
 protected:
  void Run(std::uint32_t count) {
    Join();
    StartLaunch(count);
    MakeReady();
    wire::PublishRoster roster;
    roster.launch = launch_;
    roster.epoch = 1;
    roster.store_host = "10.0.0.1";
    roster.store_port = 4242;
    Head(roster);
    log_.clear();
  }
  void Lose(std::uint64_t group_epoch, const std::vector<std::int32_t>& ranks,
            bool hosts_store = true) {
    wire::PeersLost word;
    word.launch = launch_;
    word.epoch = 1;
    word.group_epoch = group_epoch;
    word.hosts_store = hosts_store;
    for (const std::int32_t rank : ranks) {
      wire::Failure failure;
      failure.rank = rank;
      word.lost.push_back(failure);
    }
    Head(word);
  }
  void Come(std::size_t rank, std::uint64_t group_epoch) {
    FromProcess(ranks_[rank], wire::GroupJoin{group_epoch});
  }
};

TEST_F(RankGroups, W11_AllThatLiveAreToldAndWhoHasComeIsSaid) {
  Run(3);
  Over(ranks_[1], 0, 9);
  Lose(2, {1});
  EXPECT_EQ(SentToProcesses<wire::PeersLost>(), (std::vector<ProcessId>{ranks_[0], ranks_[2]}));
  Come(0, 2);
  EXPECT_EQ(Last<wire::GroupJoined>().ranks, (std::vector<std::uint32_t>{0}))
      << "who comes late is no reason to count this one as late";
  Come(2, 2);
  const auto joined = Last<wire::GroupJoined>();
  EXPECT_EQ(joined.ranks, (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(joined.group_epoch, 2u);
  EXPECT_EQ(joined.store_port, 4242u);
}

TEST_F(RankGroups, W11_WhoEndsMeanwhileIsNotWaitedFor) {
  Run(2);
  Lose(2, {7}, false);
  Come(0, 2);
  FromProcess(ranks_[1], wire::RankResult{wire::Outcome::kSucceeded, {}, false});
  const auto joined = Last<wire::GroupJoined>();
  EXPECT_EQ(joined.ranks, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(joined.store_port, 0u) << "another node hosts it";
}

TEST_F(RankGroups, W11_WhoCameToAnEarlierEpochHasNotComeToThisOne) {
  Run(2);
  Lose(2, {7});
  Come(0, 2);
  Lose(3, {7, 8});
  Come(1, 3);
  EXPECT_EQ(Last<wire::GroupJoined>().ranks, (std::vector<std::uint32_t>{1}));
  Come(0, 3);
  EXPECT_EQ(Last<wire::GroupJoined>().group_epoch, 3u);
  log_.clear();
  Lose(3, {7, 8});
  EXPECT_EQ(Sent<wire::GroupJoined>().size(), 1u) << "said again to a head that asks again";
  EXPECT_TRUE(SentToProcesses<wire::PeersLost>().empty()) << "but to no rank";
}

TEST_F(RankGroups, W11_AStoreIsForkedWhereThereIsNone) {
  Run(2);
  Over(store_);
  log_.clear();
  Lose(2, {7});
  const auto starts = All<StartProcess>();
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_EQ(starts[0].request.kind, wire::ProcessKind::kStore);
  Come(0, 2);
  Come(1, 2);
  EXPECT_TRUE(Sent<wire::GroupJoined>().empty()) << "the store is not there yet";
  wire::StoreReady ready;
  ready.port = 5555;
  FromProcess(starts[0].request.process, ready);
  EXPECT_EQ(Last<wire::GroupJoined>().store_port, 5555u);
}

TEST_F(RankGroups, ARankThatTheHeadCountsAsDeadIsKilled) {
  Run(2);
  Lose(2, {1});
  EXPECT_EQ(SignalsTo(ranks_[1]), (std::vector<int>{9}));
  EXPECT_EQ(SentToProcesses<wire::PeersLost>(), (std::vector<ProcessId>{ranks_[0]}));
}

TEST_F(RankGroups, EachIsToldWhoItIs) {
  Run(2);
  Lose(2, {7});
  wire::FormGroup form;
  form.launch = launch_;
  form.epoch = 1;
  form.group_epoch = 2;
  form.world_size = 5;
  form.places = {{0, 3}, {1, 4}};
  Head(form);
  EXPECT_EQ(SentToProcesses<wire::GroupFormed>(), ranks_);
  form.group_epoch = 1;
  log_.clear();
  Head(form);
  EXPECT_TRUE(SentToProcesses<wire::GroupFormed>().empty()) << "of an epoch that is over";
}

TEST_F(RankGroups, AnotherProcessTakesThePlaceOfOneThatDied) {
  Run(2);
  Over(ranks_[1], 0, 9);
  EXPECT_EQ(Last<wire::RankDone>().life, 0u);
  log_.clear();
  Lose(2, {});
  wire::ReplaceRanks order;
  order.launch = launch_;
  order.epoch = 1;
  order.ranks = {{1, 2}};
  Head(order, "payload");
  const auto starts = All<StartProcess>();
  ASSERT_EQ(starts.size(), 1u);
  const auto& begin = wire::Get<wire::RankBegin>(starts[0].begin.body);
  EXPECT_EQ(begin.rank, 1u);
  EXPECT_EQ(begin.life, 2u);
  EXPECT_EQ(starts[0].begin.attachment, "payload");
  Head(order, "payload");
  EXPECT_EQ(All<StartProcess>().size(), 1u) << "a repeat forks nothing";
  const ProcessId fresh = starts[0].request.process;
  Take(core_->OnForked(fresh, 999, now_));
  FromProcess(fresh, wire::RankPrepared());
  EXPECT_EQ(SentToProcesses<wire::RankRun>(), (std::vector<ProcessId>{fresh})) << "at once";
  Come(0, 2);
  EXPECT_EQ(Last<wire::GroupJoined>().ranks, (std::vector<std::uint32_t>{0}));
  FromProcess(fresh, wire::GroupJoin{2});
  EXPECT_EQ(Last<wire::GroupJoined>().ranks, (std::vector<std::uint32_t>{0, 1}));
  Over(fresh, 0, 9);
  EXPECT_EQ(Last<wire::RankDone>().life, 2u) << "told from the former one's end";
}

TEST_F(RankGroups, OneThatComesFromAnotherNodeHasAReservationOfItsOwn) {
  Run(2);
  wire::Reserve reserve;
  reserve.group = GroupId(77, 1);
  reserve.attempt = 1;
  reserve.bundles.emplace_back();
  Head(reserve);
  wire::ReplaceRanks order;
  order.launch = launch_;
  order.epoch = 1;
  wire::NewRank fresh;
  fresh.rank = 5;
  fresh.life = 2;
  fresh.local_rank = 2;
  fresh.group = reserve.group;
  fresh.attempt = 1;
  order.ranks = {fresh};
  log_.clear();
  Head(order, "payload");
  const auto starts = All<StartProcess>();
  ASSERT_EQ(starts.size(), 1u);
  const auto& begin = wire::Get<wire::RankBegin>(starts[0].begin.body);
  EXPECT_EQ(begin.rank, 5u);
  EXPECT_EQ(begin.local_rank, 2u);
  std::string local_size;
  for (const wire::EnvVar& each : starts[0].request.env) {
    if (each.name == "LOCAL_WORLD_SIZE") local_size = each.value;
  }
  EXPECT_EQ(local_size, "3") << "beside those that are here";
}

TEST_F(RankGroups, OneWhoseReservationIsGoneHasFailed) {
  Run(2);
  wire::ReplaceRanks order;
  order.launch = launch_;
  order.epoch = 1;
  wire::NewRank fresh;
  fresh.rank = 5;
  fresh.life = 2;
  fresh.group = GroupId(77, 1);
  order.ranks = {fresh};
  Head(order, "payload");
  EXPECT_EQ(Last<wire::RankDone>().rank, 5u);
  EXPECT_EQ(Last<wire::RankDone>().life, 2u);
}

TEST_F(RankGroups, W4_RanksInThePlacesOfOthersComeToANodeThatHasEndedTheAttempt) {
  Run(2);
  wire::EndEpoch end;
  end.launch = launch_;
  end.epoch = 1;
  Head(end);
  wire::StartRanks start;
  start.launch = launch_;
  start.epoch = 1;
  start.generation = 1;
  start.group = GroupId(77, 1);
  start.attempt = 1;
  start.ranks.emplace_back();
  start.ranks[0].rank = 0;
  start.ranks[0].life = 2;
  wire::Reserve reserve;
  reserve.group = start.group;
  reserve.attempt = 1;
  reserve.bundles.emplace_back();
  Head(reserve);
  log_.clear();
  Head(start, "payload");
  EXPECT_TRUE(All<StartProcess>().empty()) << "what it had here is not gone";
  for (const ProcessId& rank : ranks_) Over(rank);
  Over(store_);
  EXPECT_EQ(Sent<wire::EpochEnded>().size(), 1u);
  start.ranks[0].life = 0;
  Head(start, "payload");
  EXPECT_TRUE(All<StartProcess>().empty()) << "of the attempt as it began";
  start.ranks[0].life = 2;
  Head(start, "payload");
  EXPECT_EQ(All<StartProcess>().size(), 1u);
}

class HowFar : public RankGroups {
 protected:
  void Ask(std::uint32_t rank, std::uint64_t question) {
    wire::AskBegun ask;
    ask.launch = launch_;
    ask.epoch = 1;
    ask.rank = rank;
    ask.question = question;
    ask.torch_group = "0";
    ask.limit_ms = 3000;
    Head(ask);
  }
};

TEST_F(HowFar, W12_WhatARankSaysOfOthersIsSaidAsItsWord) {
  Run(2);
  wire::GroupLate word;
  word.group_epoch = 1;
  word.torch_group = "0";
  word.operation = 7;
  word.waited_ms = 15000;
  word.late.emplace_back();
  word.late[0].rank = 1;
  FromProcess(ranks_[0], word);
  const auto said = Last<wire::RanksLate>();
  EXPECT_EQ(said.launch, launch_);
  EXPECT_EQ(said.epoch, 1u);
  EXPECT_EQ(said.rank, 0u);
  EXPECT_EQ(said.operation, 7u);
  EXPECT_EQ(said.late.size(), 1u);
}

TEST_F(HowFar, W12_ARankThatIsAskedSaysIt) {
  Run(2);
  Ask(1, 5);
  EXPECT_EQ(SentToProcesses<wire::ProcessAskBegun>(), (std::vector<ProcessId>{ranks_[1]}));
  FromProcess(ranks_[1], wire::ProcessBegun{4, 9, "", false});
  EXPECT_TRUE(Sent<wire::RankBegun>().empty()) << "the answer to another question";
  FromProcess(ranks_[0], wire::ProcessBegun{5, 9, "", false});
  EXPECT_TRUE(Sent<wire::RankBegun>().empty()) << "of another rank";
  FromProcess(ranks_[1], wire::ProcessBegun{5, 6, "there", true});
  const auto said = Last<wire::RankBegun>();
  EXPECT_EQ(said.begun, 6u);
  EXPECT_TRUE(said.waits);
  EXPECT_FALSE(said.silent);
  EXPECT_EQ(said.where, "there");
}

TEST_F(HowFar, W12_OneThatSaysNothingIsSilent) {
  Run(2);
  Ask(1, 5);
  Advance(std::chrono::milliseconds(2900));
  EXPECT_TRUE(Sent<wire::RankBegun>().empty());
  Advance(std::chrono::milliseconds(200));
  EXPECT_TRUE(Last<wire::RankBegun>().silent);
  EXPECT_EQ(Last<wire::RankBegun>().question, 5u);
  FromProcess(ranks_[1], wire::ProcessBegun{5, 6, "", false});
  EXPECT_EQ(Sent<wire::RankBegun>().size(), 1u) << "it comes too late";
}

TEST_F(HowFar, W12_AWorkerThatStoodStillAsLongWaitsOnceMore) {
  Run(2);
  Ask(1, 5);
  now_ += std::chrono::seconds(10);
  Take(core_->OnTimer(now_));
  EXPECT_TRUE(Sent<wire::RankBegun>().empty()) << "the answer may be there, and not be read";
  Advance(std::chrono::milliseconds(3100));
  EXPECT_TRUE(Last<wire::RankBegun>().silent);
}

TEST_F(HowFar, W12_WhoHasEndedIsNotSilent) {
  Run(2);
  Ask(1, 5);
  Over(ranks_[1], 0, 9);
  Advance(std::chrono::seconds(4));
  EXPECT_TRUE(Sent<wire::RankBegun>().empty());
}

TEST_F(HowFar, W12_AQuestionWithAKeyIsForARankThatHasReturned) {
  Run(2);
  FromProcess(ranks_[1], wire::RankResult{wire::Outcome::kSucceeded, {}, false});
  Ask(1, 5);
  EXPECT_TRUE(SentToProcesses<wire::ProcessAskBegun>().empty()) << "it hangs nowhere";
  wire::AskBegun ask;
  ask.launch = launch_;
  ask.epoch = 1;
  ask.rank = 1;
  ask.question = 6;
  ask.key = "0 gloo";
  ask.limit_ms = 3000;
  Head(ask);
  EXPECT_EQ(SentToProcesses<wire::ProcessAskBegun>(), (std::vector<ProcessId>{ranks_[1]}));
  FromProcess(ranks_[1], wire::ProcessBegun{6, 3, "", false});
  EXPECT_EQ(Last<wire::RankBegun>().begun, 3u);
}

TEST_F(HowFar, W13_RanksThatRunHearWhoHasReturned) {
  Run(2);
  FromProcess(ranks_[1], wire::RankResult{wire::Outcome::kSucceeded, {}, false});
  wire::PeersReturned word;
  word.launch = launch_;
  word.epoch = 1;
  word.group_epoch = 1;
  word.ranks = {1};
  Head(word);
  EXPECT_EQ(SentToProcesses<wire::PeersReturned>(), (std::vector<ProcessId>{ranks_[0]}));
  wire::GroupAwaits awaits;
  awaits.group_epoch = 1;
  awaits.key = "0 gloo";
  awaits.operation = 4;
  awaits.awaited = {1};
  FromProcess(ranks_[0], awaits);
  EXPECT_EQ(Last<wire::RankAwaits>().rank, 0u);
  EXPECT_EQ(Last<wire::RankAwaits>().operation, 4u);
}

}  // namespace
}  // namespace troupe::worker
