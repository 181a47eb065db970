// Sends and receives over memory, and times that are over, by real processes.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <vector>

#include "tests/actors/train/local_ranks.h"

namespace troupe::train {
namespace {

using Longs = std::vector<std::int64_t>;
constexpr auto kWaitMax = std::chrono::seconds(kSecondsMax);

Operation Send(const Longs& numbers, int to, int tag = 0) {
  return {.kind = Collective::kSend,
          .send = numbers.data(),
          .count = numbers.size(),
          .type = DataType::kInt64,
          .root = to,
          .tag = tag};
}

Operation Receive(Longs& numbers, int from, int tag = 0) {
  return {.kind = Collective::kRecv,
          .recv = numbers.data(),
          .count = numbers.size(),
          .type = DataType::kInt64,
          .root = from,
          .tag = tag};
}

std::shared_ptr<LocalWork> Begin(Rank& rank, LocalMember& member, const Operation& operation) {
  return rank.Take(member.group().StartLocal({&operation, 1}));
}

void Require(Rank& rank, const Status& status) { rank.Require(status.ok(), MessageOf(status)); }

/// By the number of nodes.
class LocalMessages : public testing::TestWithParam<int> {};
class LocalTimes : public testing::TestWithParam<int> {};

TEST_P(LocalMessages, MA1_InTheirOrderLargeAndSmallBothWaysAtOnce) {
  // All ranks send to all before they receive, more than a mailbox holds.
  LocalTest test(InTurn(3, GetParam()));
  ExpectSuccess(RunRanks(3, {}, [&](Rank& rank) {
    LocalMember member(rank, test);
    const std::size_t counts[] = {0, 1, 1000, 100003};
    std::vector<Longs> sent, got;
    std::vector<std::shared_ptr<LocalWork>> works;
    sent.reserve(100);
    got.reserve(100);
    for (const std::size_t count : counts)
      for (int peer = 0; peer < 3; ++peer) {
        if (peer == rank.index()) continue;
        sent.emplace_back(count, rank.index() * 10 + peer);
        works.push_back(Begin(rank, member, Send(sent.back(), peer)));
      }
    for (const std::size_t count : counts)
      for (int peer = 0; peer < 3; ++peer) {
        if (peer == rank.index()) continue;
        got.emplace_back(count, -1);
        works.push_back(Begin(rank, member, Receive(got.back(), peer)));
      }
    member.Run({.kind = Collective::kBarrier});  // collectives go on meanwhile
    for (const auto& work : works) Require(rank, work->Wait(kWaitMax));
    std::size_t at = 0;
    for (const std::size_t count : counts)
      for (int peer = 0; peer < 3; ++peer) {
        if (peer == rank.index()) continue;
        rank.Require(got[at++] == Longs(count, peer * 10 + rank.index()), "what was sent");
      }
    Require(rank, member.group().Release());
  }));
}

TEST_P(LocalMessages, MA2_OneWithAnotherTagIsPutAside) {
  LocalTest test(InTurn(2, GetParam()));
  ExpectSuccess(RunRanks(2, {}, [&](Rank& rank) {
    LocalMember member(rank, test);
    if (rank.index() == 0) {
      const Longs first(50000, 1), second(7, 2);
      const auto one = Begin(rank, member, Send(first, 1, 5));
      Require(rank, member.Try(Send(second, 1, 6)));
      Require(rank, one->Wait(kWaitMax));
    } else {
      Longs first(50000), second(7);
      member.Run(Receive(second, 0, 6));
      member.Run(Receive(first, 0, 5));
      rank.Require(first[49999] == 1 && second[6] == 2, "by their tags");
    }
    rank.Pass("done", 2);
  }));
}

TEST_P(LocalMessages, FromAnybodyTellsFromWhom) {
  LocalTest test(InTurn(3, GetParam()));
  ExpectSuccess(RunRanks(3, {}, [&](Rank& rank) {
    LocalMember member(rank, test);
    if (rank.index() == 0) {
      bool seen[3] = {};
      for (int i = 0; i < 2; ++i) {
        Longs got(3);
        const auto work = Begin(rank, member, Receive(got, -1));
        Require(rank, work->Wait(kWaitMax));
        rank.Require(got[2] == work->source(), "its sender's number");
        seen[work->source()] = true;
      }
      rank.Require(seen[1] && seen[2], "of both");
    } else {
      member.Run(Send(Longs(3, rank.index()), 0));
    }
    rank.Pass("done", 3);
  }));
}

TEST_P(LocalMessages, AnotherSizeThanIsAskedForIsNamed) {
  LocalTest test(InTurn(2, GetParam()));
  ExpectSuccess(RunRanks(2, {}, [&](Rank& rank) {
    LocalMember member(rank, test);
    if (rank.index() == 0) {
      member.Run(Send(Longs(3), 1));
    } else {
      Longs got(4);
      const Status status = member.Try(Receive(got, 0));
      rank.Require(MessageOf(status).find("a receive of 32 bytes from rank 0, tag 0: rank 0 sends "
                                          "24") != std::string::npos,
                   MessageOf(status));
    }
    rank.Pass("done", 2);
  }));
}

TEST_P(LocalMessages, MA3_WhatADeadRankHasSentStillComesAndNoMore) {
  LocalTest test(InTurn(2, GetParam()));
  const auto ends = RunRanks(2, {}, [&](Rank& rank) {
    LocalMember member(rank, test);
    if (rank.index() == 1) {
      member.Run(Send(Longs(100, 7), 0));
      kill(getpid(), SIGKILL);
    }
    Longs got(100);
    member.Run(Receive(got, 1));
    rank.Require(got[99] == 7, "what was sent");
    const Status status = member.Try(Receive(got, 1));
    rank.Require(MessageOf(status).find("rank 1 on ") != std::string::npos, MessageOf(status));
    rank.Require(MessageOf(status).find("has ended") != std::string::npos, MessageOf(status));
  });
  ExpectSuccess({ends[0]});
}

TEST_P(LocalMessages, AStopEndsThoseThatWait) {
  LocalTest test(InTurn(2, GetParam()));
  ExpectSuccess(RunRanks(2, {}, [&](Rank& rank) {
    LocalMember member(rank, test);
    Longs got(10);
    const auto work = Begin(rank, member, Receive(got, 1 - rank.index()));
    rank.Pass("waiting", 2);
    member.group().Stop("asked by the test");
    const Status status = work->Wait(kWaitMax);
    rank.Require(MessageOf(status).find("asked by the test") != std::string::npos,
                 MessageOf(status));
  }));
}

TEST_P(LocalTimes, AnOperationsTimeIsItsOwnAndSaysWhoIsLate) {
  LocalTest test(InTurn(3, GetParam()));
  ExpectSuccess(RunRanks(3, {}, [&](Rank& rank) {
    LocalMember member(rank, test);
    const auto most = std::chrono::milliseconds(50);
    Longs got(3);
    if (rank.index() == 0) {
      const Status late = member.Try({.kind = Collective::kBarrier, .most = most});
      // First rank of its node
      const std::string absent = GetParam() == 1 ? "rank 1, 2" : "rank 2, 1";
      rank.Require(MessageOf(late).find("was not done after 0.05 s, counted from its beginning on "
                                        "rank 0: " +
                                        absent + " has not come to it") != std::string::npos,
                   MessageOf(late));
    }
    rank.Pass("late", 3);
  }));
}

TEST_P(LocalTimes, AReceivesTimeIsItsOwn) {
  LocalTest test(InTurn(2, GetParam()));
  ExpectSuccess(RunRanks(2, {}, [&](Rank& rank) {
    LocalMember member(rank, test);
    Longs got(3);
    auto operation = Receive(got, 1 - rank.index(), 4);
    operation.most = std::chrono::milliseconds(50);
    const Status late = member.Try(operation);
    rank.Require(MessageOf(late).find("0.05 s") != std::string::npos, MessageOf(late));
    rank.Pass("late", 2);
  }));
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Nodes, LocalMessages, testing::Values(1, 2),
                         testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Nodes, LocalTimes, testing::Values(1, 2),
                         testing::PrintToStringParamName());

}  // namespace troupe::train
