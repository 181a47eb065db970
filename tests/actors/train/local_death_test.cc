// Ends of a group over memory: a rank that is killed in the middle of an all-reduce, one that
// leaves, one that stops the group, one in another operation, strangers. Real processes; whoever
// lives gets the reason, wherever it waits.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/async/real_clock.h"
#include "tests/actors/train/local_ranks.h"

namespace troupe::train {
namespace {

constexpr std::size_t kCount = 1 << 20;

Operation AllReduceOf(std::vector<float>& numbers) {
  return {.send = numbers.data(), .recv = numbers.data(), .count = numbers.size()};
}

void RequireFenced(Rank& rank, const Status& status, const std::string& words) {
  rank.Require(ErrorCodeOf(status) == ErrorCode::kFenced, "fenced, not: " + MessageOf(status));
  rank.Require(MessageOf(status).find(words) != std::string::npos,
               "'" + words + "' in: " + MessageOf(status));
}

/// All-reduces until it fails, with what that said.
Status Loop(LocalMember& member, Rank& rank) {
  std::vector<float> numbers(kCount, 0);
  for (bool first = true;; first = false) {
    const Status status = member.Try(AllReduceOf(numbers));
    if (!status.ok()) return status;
    if (first) rank.board().Add("looping");
  }
}

void ExpectOthersSucceeded(const std::vector<RankEnd>& ends, int victim) {
  std::vector<RankEnd> others;
  for (const auto& end : ends)
    if (end.index != victim) others.push_back(end);
  ExpectSuccess(others);
}

void KillInTheMiddle(int victim, int nodes) {
  LocalTest test(InTurn(4, nodes));
  const auto ends = RunRanks(
      4, {},
      [&](Rank& rank) {
        LocalMember member(rank, test);
        const Status status = Loop(member, rank);
        RequireFenced(rank, status, "rank " + std::to_string(victim) + " on ");
        RequireFenced(rank, status, "has ended");
        std::vector<float> more(4);
        RequireFenced(rank, member.Try(AllReduceOf(more)), "stopped");
        member.group().AwaitReleased();
      },
      [&](Board& board, const std::vector<pid_t>& pids) {
        EXPECT_TRUE(board.Await("looping", 4));
        kill(pids[static_cast<std::size_t>(victim)], SIGKILL);
      });
  ExpectOthersSucceeded(ends, victim);
}

/// By the number of nodes.
class LocalDeath : public testing::TestWithParam<int> {};

TEST_P(LocalDeath, LC1_ARankIsKilledInAnAllReduce) { KillInTheMiddle(2, GetParam()); }
TEST_P(LocalDeath, LC1_TheRankThatMadeTheMemoryIsKilled) { KillInTheMiddle(0, GetParam()); }

TEST_P(LocalDeath, LC1_TheVerdictNamesTheCause) {
  // Survivors see the end of the connection first, and wait for the word that comes after it.
  LocalTest test(InTurn(3, GetParam()));
  const auto ends = RunRanks(
      3, {},
      [&](Rank& rank) {
        LocalMember member(rank, test, [](LocalSpec& spec) {
          spec.verdict_within = std::chrono::seconds(kSecondsMax);
        });
        std::thread verdict([&] {
          if (rank.index() == 2) return;
          rank.Await("killed", 1);
          member.group().Stop("rank 2 on node-b was killed by SIGKILL");
        });
        const Status status = Loop(member, rank);
        RequireFenced(rank, status, "stopped: rank 2 on node-b was killed by SIGKILL");
        verdict.join();
      },
      [&](Board& board, const std::vector<pid_t>& pids) {
        EXPECT_TRUE(board.Await("looping", 3));
        kill(pids[2], SIGKILL);
        board.Add("killed");
      });
  ExpectOthersSucceeded(ends, 2);
}

TEST_P(LocalDeath, LC2_AStoppedRankFreesAllThatWaitWithItsReason) {
  // Rank 1 never enters; its stop by another thread ends what the others wait in.
  LocalTest test(InTurn(3, GetParam()));
  ExpectSuccess(RunRanks(3, {}, [&](Rank& rank) {
    LocalMember member(rank, test);
    std::vector<float> numbers(kCount, 1);
    if (rank.index() == 1) {
      rank.Await("waiting", 2);
      std::thread([&] { member.group().Stop("asked by the test"); }).join();
      member.group().AwaitReleased();
      RequireFenced(rank, member.Try(AllReduceOf(numbers)), "asked by the test");
    } else {
      const Operation operation = AllReduceOf(numbers);
      const auto work = rank.Take(member.group().Start({&operation, 1}));
      rank.board().Add("waiting");
      RequireFenced(rank, work->Wait(std::chrono::seconds(kSecondsMax)), "asked by the test");
    }
    rank.Pass("told", 3);
  }));
}

TEST_P(LocalDeath, LC2_WhatNeedsTheStoppedRankEndsThoughAnotherHasNotComeEither) {
  // Rank 2 enters nothing; rank 0, which has, stops, and its result will be needed on rank 1.
  LocalTest test(InTurn(3, GetParam()));
  ExpectSuccess(RunRanks(3, {}, [&](Rank& rank) {
    std::vector<float> numbers(kCount, 1);
    LocalMember member(rank, test);
    if (rank.index() < 2) {
      const Operation operation = AllReduceOf(numbers);
      const auto work = rank.Take(member.group().Start({&operation, 1}));
      rank.Pass("waiting", 2);
      if (rank.index() == 0) member.group().Stop("asked by the test");
      RequireFenced(rank, work->Wait(std::chrono::seconds(kSecondsMax)), "asked by the test");
    }
    rank.Pass("told", 3);
  }));
}

TEST_P(LocalDeath, ARankThatIsStillThereIsWaitedForInVain) {
  LocalTest test(InTurn(2, GetParam()));
  ExpectSuccess(RunRanks(2, {}, [&](Rank& rank) {
    LocalMember member(rank, test);
    std::vector<float> numbers(4, 1);
    if (rank.index() == 0) {
      const Operation operation = AllReduceOf(numbers);
      const auto work = rank.Take(member.group().Start({&operation, 1}));
      const Status late = work->Wait(std::chrono::milliseconds(1));
      rank.Require(ErrorCodeOf(late) == ErrorCode::kTimeout, "late: " + MessageOf(late));
      rank.Require(MessageOf(late).find("after 0.001") != std::string::npos, MessageOf(late));
      rank.Pass("late", 2);
      rank.Require(work->Wait(std::chrono::seconds(kSecondsMax)).ok(), "it goes on");
    } else {
      rank.Pass("late", 2);
      member.Run(AllReduceOf(numbers));
    }
    rank.Require(numbers[3] == 2, "both");
  }));
}

TEST_P(LocalDeath, LC1_WhatNeedsADeadRankNoMoreEndsWell) {
  // Rank 1 ends as soon as its part is done, without a word.
  for (int round = 0; round < 20; ++round) {
    LocalTest test(InTurn(2, GetParam()));
    const auto ends = RunRanks(2, {}, [&](Rank& rank) {
      LocalMember member(rank, test);
      std::vector<float> numbers(kCount, 1);
      member.Run(AllReduceOf(numbers));
      if (rank.index() == 1) kill(getpid(), SIGKILL);
      rank.Require(numbers[kCount - 1] == 2, "sum");
    });
    ExpectSuccess({ends[0]});
  }
}

TEST_P(LocalDeath, ARankThatHasLeftIsNamed) {
  LocalTest test(InTurn(2, GetParam()));
  ExpectSuccess(RunRanks(2, {}, [&](Rank& rank) {
    LocalMember member(rank, test);
    member.Run({.kind = Collective::kBarrier});
    if (rank.index() == 1) {
      rank.Require(member.group().Release().ok(), "release");
    } else {
      RequireFenced(rank, member.Try({.kind = Collective::kBarrier}), "has left the group");
    }
    rank.Pass("seen", 2);
  }));
}

TEST_P(LocalDeath, PI1_RanksInDifferentOperationsAreToldWhich) {
  LocalTest test(InTurn(2, GetParam()));
  ExpectSuccess(RunRanks(2, {}, [&](Rank& rank) {
    LocalMember member(rank, test);
    std::vector<float> numbers(rank.index() == 0 ? 10 : 12, 1);
    const Status status = member.Try(AllReduceOf(numbers));
    RequireFenced(rank, status, "all-reduce of 10 float32");
    RequireFenced(rank, status, "all-reduce of 12 float32");
    rank.Pass("told", 2);
  }));
}

TEST_P(LocalDeath, UnequalCountsThatDisagreeAreNamed) {
  LocalTest test(InTurn(2, GetParam()));
  ExpectSuccess(RunRanks(2, {}, [&](Rank& rank) {
    LocalMember member(rank, test);
    const std::vector<std::size_t> send = {1, 1}, recv = {1, rank.index() == 0 ? 2u : 1u};
    std::vector<float> from(2), to(3);
    const Status status = member.Try({.kind = Collective::kAllToAll,
                                      .send = from.data(),
                                      .recv = to.data(),
                                      .send_counts = send,
                                      .recv_counts = recv});
    RequireFenced(rank, status, "sends 4 bytes to rank 0, which takes 8");
    rank.Pass("told", 2);
  }));
}

TEST_P(LocalDeath, ArgumentsAreTheCallersAndStopNothing) {
  LocalTest test(InTurn(2, GetParam()));
  ExpectSuccess(RunRanks(2, {}, [&](Rank& rank) {
    LocalMember member(rank, test);
    std::vector<float> numbers(4, 1);
    auto wrong = AllReduceOf(numbers);
    wrong.op = ReduceOp::kBitAnd;
    const Status bits = member.Try(wrong);
    rank.Require(ErrorCodeOf(bits) == ErrorCode::kInvalid, MessageOf(bits));
    rank.Require(MessageOf(bits).find("bitwise and of float32") != std::string::npos,
                 MessageOf(bits));
    wrong = AllReduceOf(numbers);
    wrong.kind = Collective::kBroadcast;
    wrong.root = 2;
    rank.Require(ErrorCodeOf(member.Try(wrong)) == ErrorCode::kInvalid, "root");
    member.Run(AllReduceOf(numbers));
  }));
}

TEST_P(LocalDeath, WhoDoesNotKnowTheSecretIsTurnedAway) {
  // Rank 1 has another secret: it is told so, and the others' forming ends at its deadline.
  LocalTest test(InTurn(2, GetParam()));
  ExpectSuccess(RunRanks(2, {}, [&](Rank& rank) {
    Supervisor supervisor(async::RealClock::Shared(), EndThisProcess);
    Door door = test.Open(rank);
    LocalSpec spec{.name = "dp",
                   .rank = rank.index(),
                   .size = 2,
                   .secret = rank.index() == 1 ? Secret("a guess") : test.secret(),
                   .cards = test.Cards(rank)};
    spec.times.form_max = std::chrono::seconds(rank.index() == 1 ? kSecondsMax : 1);
    const auto group = LocalCommunicator::Form(supervisor, spec, std::move(door));
    const Status status = group->AwaitReady();
    RequireFenced(rank, status, rank.index() == 1 ? "does not know the group's secret" : "1 s");
    rank.Pass("told", 2);
  }));
}

/// Connects to a door and says what it is given.
UniqueFd Stranger(Rank& rank, const Card& card, const std::string& says) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, card.door.data(), card.door.size());
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + card.door.size());
  rank.Require(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length) == 0, "connect");
  rank.Require(
      send(fd.get(), says.data(), says.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(says.size()),
      "send");
  return fd;
}

TEST_P(LocalDeath, StrangersDoNotKeepAGroupFromForming) {
  LocalTest test(InTurn(2, GetParam()));
  ExpectSuccess(RunRanks(2, {}, [&](Rank& rank) {
    Supervisor supervisor(async::RealClock::Shared(), EndThisProcess);
    Door door = test.Open(rank);
    const auto cards = test.Cards(rank);
    std::vector<UniqueFd> strangers;
    if (rank.index() == 1) {  // before it comes itself: lies, and one that hangs up in the middle
      strangers.push_back(Stranger(rank, cards[0], std::string(36 + 32, 'x')));
      Stranger(rank, cards[0], "half a hello");
    }
    LocalSpec spec{
        .name = "dp", .rank = rank.index(), .size = 2, .secret = test.secret(), .cards = cards};
    const auto group = LocalCommunicator::Form(supervisor, spec, std::move(door));
    const Status status = group->AwaitReady();
    rank.Require(status.ok(), MessageOf(status));
    rank.Require(group->Release().ok(), "release");
  }));
}

TEST(Card, WhatIsNoneIsRefused) {
  for (const std::string text :
       {"", "troupe-group 1\nhost\ndoor", "troupe-group 2\n", "troupe-group 2\nhost\ndoor\nname",
        "troupe-group 2\na\nb\nc\nd\ne"})
    EXPECT_EQ(ErrorCodeOf(Card::Parse(text).status()), ErrorCode::kInvalid) << text;
  EXPECT_EQ(ErrorCodeOf(Card::Parse(std::string(4096, 'x')).status()), ErrorCode::kInvalid);
  const auto card = Card::Parse(Card{"host", "door", "name", "10.0.0.1:4711"}.Text());
  EXPECT_EQ(card->door, "door");
  EXPECT_EQ(card->address, "10.0.0.1:4711");
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Nodes, LocalDeath, testing::Values(1, 2),
                         testing::PrintToStringParamName());

}  // namespace troupe::train
