// Behaviour that only groups over several nodes have, by real processes that meet by TCP: a port
// that anybody may dial, ranks of other nodes that differ, do not come, or end. Whoever is not of
// the group gets nothing and harms nothing.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "actors/train/local/door.h"
#include "runtime/async/real_clock.h"
#include "tests/actors/train/local_ranks.h"

namespace troupe::train {
namespace {

constexpr std::size_t kHelloBytes = 36, kAnswerBytes = 64;
const Layout kTwoAndTwo = {0, 0, 1, 1};

void RequireIn(Rank& rank, const std::string& words, const Status& status) {
  rank.Require(ErrorCodeOf(status) == ErrorCode::kFenced, "fenced, not: " + MessageOf(status));
  rank.Require(MessageOf(status).find(words) != std::string::npos,
               "'" + words + "' in: " + MessageOf(status));
}

/// Connects to a port of this machine, and says what it is given.
UniqueFd Dials(Rank& rank, const std::string& address, const std::string& says) {
  const int port = std::stoi(address.substr(address.rfind(':') + 1));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rank.Require(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0, "connect");
  if (!says.empty() && send(fd.get(), says.data(), says.size(), MSG_NOSIGNAL) < 0)
    rank.Require(errno == EPIPE || errno == ECONNRESET, std::strerror(errno));
  return fd;
}

/// All that comes until the connection ends.
std::string HearsAll(const UniqueFd& fd) {
  std::string all;
  char part[4096];
  for (ssize_t got; (got = recv(fd.get(), part, sizeof part, 0)) > 0;)
    all.append(part, static_cast<std::size_t>(got));
  return all;
}

TEST(LocalNodes, DO1_StrangersAtThePortGetNoMoreThanAnAnswerAndHoldUpNobody) {
  LocalTest test(Layout{0, 1});
  ExpectSuccess(RunRanks(2, {}, [&](Rank& rank) {
    Supervisor supervisor(async::RealClock::Shared(), EndThisProcess);
    Door door = test.Open(rank);
    const auto cards = test.Cards(rank);
    std::vector<UniqueFd> strangers, silent;
    if (rank.index() == 1) {  // before it comes itself
      const std::string& address = cards[0].address;
      strangers.push_back(Dials(rank, address, std::string(kHelloBytes + 32, 'x')));  // no secret
      strangers.push_back(Dials(rank, address, std::string(1 << 20, 'y')));  // far too much
      strangers.push_back(Dials(rank, address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n0123456789"));
      for (int i = 0; i < 300; ++i)
        silent.push_back(Dials(rank, address, ""));  // more than are heard
      silent.push_back(Dials(rank, address, "half a hello"));
    }
    LocalSpec spec{
        .name = "dp", .rank = rank.index(), .size = 2, .secret = test.secret(), .cards = cards};
    spec.times.form_max = std::chrono::seconds(kSecondsMax);
    const auto group = LocalCommunicator::Form(supervisor, spec, std::move(door));
    const Status status = group->AwaitReady();
    rank.Require(status.ok(), MessageOf(status));
    for (const auto& stranger : strangers)
      rank.Require(HearsAll(stranger).size() <= kAnswerBytes, "no more than an answer");
    float one = 1;
    const Operation operation{.send = &one, .recv = &one, .count = 1};
    const auto work = rank.Take(group->Start({&operation, 1}));
    rank.Require(work->Wait(std::chrono::seconds(kSecondsMax)).ok() && one == 2, "unharmed");
    rank.Require(group->Release().ok(), "release");
  }));
}

TEST(LocalNodes, APortIsOpenOnlyWhileTheGroupForms) {
  LocalTest test(Layout{0, 1});
  ExpectSuccess(RunRanks(2, {}, [&](Rank& rank) {
    LocalMember member(rank, test);
    member.Run({.kind = Collective::kBarrier});
    const std::string address = test.Cards(rank)[static_cast<std::size_t>(rank.index())].address;
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    rank.Require(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0 &&
                     errno == ECONNREFUSED,
                 "nobody listens");
    rank.Pass("done", 2);
  }));
}

TEST(LocalNodes, SP5_RanksOfTwoNodesInDifferentOperationsAreToldWhich) {
  // Also where neither would get anything of the other: each takes itself for the root.
  std::vector<float> numbers(10);
  const Operation broadcast{.kind = Collective::kBroadcast,
                            .send = numbers.data(),
                            .recv = numbers.data(),
                            .count = numbers.size()};
  for (const auto kind : {Collective::kBroadcast, Collective::kGather, Collective::kBarrier}) {
    LocalTest test(kTwoAndTwo);
    ExpectSuccess(RunRanks(4, {}, [&](Rank& rank) {
      LocalMember member(rank, test);
      Operation operation = broadcast;
      std::vector<float> all(40);
      if (rank.index() >= 2) {
        operation.kind = kind;
        operation.root = 2;
        operation.recv = all.data();
      }
      Status status = member.Try(operation);
      // A rank that had all it needed learns of it in the next operation.
      if (status.ok()) status = member.Try({.kind = Collective::kBarrier});
      RequireIn(rank, "broadcast of 10 float32, root 0", status);
      RequireIn(rank, ", root 2, operation 1", status);
      rank.Pass("told", 4);
    }));
  }
}

TEST(LocalNodes, ARankOfAnotherNodeThatDoesNotComeIsNamed) {
  // Rank 3 is waited for by its neighbour alone; rank 0 asks the neighbour.
  LocalTest test(kTwoAndTwo);
  ExpectSuccess(RunRanks(4, {}, [&](Rank& rank) {
    std::vector<float> numbers(1 << 20, 1);  // there as long as the group: some of it never ends
    LocalMember member(rank, test);
    Operation operation{.send = numbers.data(), .recv = numbers.data(), .count = numbers.size()};
    if (rank.index() == 0) operation.most = std::chrono::milliseconds(200);
    std::shared_ptr<Work> work;
    if (rank.index() < 3) work = rank.Take(member.group().Start({&operation, 1}));
    if (rank.index() == 0)
      RequireIn(
          rank,
          "was not done after 0.2 s, counted from its beginning on rank 0: rank 3 has not come",
          work->Wait(std::chrono::seconds(kSecondsMax)));
    rank.Pass("late", 4);
  }));
}

TEST(LocalNodes, ANodeThatAnswersNothingIsNamed) {
  LocalTest test(kTwoAndTwo);
  const auto ends = RunRanks(
      4, {},
      [&](Rank& rank) {
        LocalMember member(rank, test);
        float one = 1;
        Operation operation{.send = &one, .recv = &one, .count = 1};
        operation.most = std::chrono::milliseconds(200);
        rank.board().Add("formed");
        if (rank.index() >= 2) rank.Await("told", 2);  // stopped
        rank.Await("stopped", 1);
        const Status status = member.Try(operation);
        RequireIn(rank, "rank 2 on ", status);
        RequireIn(rank, " does not answer", status);
        rank.Pass("told", 2);
      },
      [&](Board& board, const std::vector<pid_t>& pids) {
        EXPECT_TRUE(board.Await("formed", 4));
        for (const std::size_t rank : {2u, 3u}) kill(pids[rank], SIGSTOP);
        board.Add("stopped");
        EXPECT_TRUE(board.Await("told", 2));
        for (const std::size_t rank : {2u, 3u}) kill(pids[rank], SIGKILL);
      });
  ExpectSuccess({ends[0], ends[1]});
}

TEST(LocalNodes, LC1_ARankThatEndsOnAnotherNodeFreesItsNeighboursAndAllOthers) {
  // Rank 0 exchanges nothing with rank 3: it hears it from rank 3 itself, and from who needed it.
  LocalTest test(kTwoAndTwo);
  const auto ends = RunRanks(
      4, {},
      [&](Rank& rank) {
        LocalMember member(rank, test);
        std::vector<float> numbers(1 << 20, 0);
        const Operation operation{
            .send = numbers.data(), .recv = numbers.data(), .count = numbers.size()};
        Status status;
        for (bool first = true; status.ok(); first = false) {
          status = member.Try(operation);
          if (status.ok() && first) rank.board().Add("looping");
        }
        RequireIn(rank, "rank 3 on ", status);
        RequireIn(rank, " has ended: ", status);
      },
      [&](Board& board, const std::vector<pid_t>& pids) {
        EXPECT_TRUE(board.Await("looping", 4));
        kill(pids[3], SIGKILL);
      });
  ExpectSuccess({ends[0], ends[1], ends[2]});
}

TEST(LocalNodes, MA3_ASendToAnotherNodeThatIsDoneArrivesWhateverBecomesOfTheSender) {
  for (const std::size_t count : {std::size_t{3}, std::size_t{1 << 18}}) {
    LocalTest test(Layout{0, 1});
    const auto ends = RunRanks(2, {}, [&](Rank& rank) {
      LocalMember member(rank, test);
      std::vector<std::int64_t> numbers(count);
      Operation operation{.kind = Collective::kSend,
                          .count = count,
                          .type = DataType::kInt64,
                          .root = 1 - rank.index(),
                          .tag = 4};
      if (rank.index() == 1) {
        std::iota(numbers.begin(), numbers.end(), 7);
        operation.send = numbers.data();
        member.Run(operation);
        kill(getpid(), SIGKILL);
      }
      operation.kind = Collective::kRecv;
      operation.recv = numbers.data();
      member.Run(operation);
      rank.Require(numbers.back() == static_cast<std::int64_t>(count) + 6, "all of it");
    });
    ExpectSuccess({ends[0]});
  }
}

TEST(LocalNodes, APortWhereNobodyListensIsNamedAndWhatToTry) {
  Card card;
  {
    Door door = *Door::Open("node-b");
    ASSERT_TRUE(door.Listen("127.0.0.1").ok());
    card = door.card();
  }
  const Patience patience{async::RealClock::Shared(), async::RealClock::Shared().Now(),
                          std::chrono::seconds(kSecondsMax)};
  const auto met = Dial(card, false, 2, {0, Channel::kWatch}, Secret("x"), patience);
  const std::string said = MessageOf(met.status());
  EXPECT_NE(
      said.find("meeting rank 2 on " + card.name + " at " + card.address + ": Connection refused"),
      std::string::npos)
      << said;
  EXPECT_NE(said.find("GLOO_SOCKET_IFNAME"), std::string::npos) << said;
  card.address.clear();
  const auto nowhere = Dial(card, false, 2, {0, Channel::kWatch}, Secret("x"), patience);
  EXPECT_NE(
      MessageOf(nowhere.status()).find("is on another node than rank 0, and listens to its own"),
      std::string::npos)
      << nowhere.status();
}

TEST(LocalNodes, AnAddressThatIsNotThisMachinesIsRefused) {
  Door door = *Door::Open();
  const Status status = door.Listen("192.0.2.1");
  EXPECT_FALSE(status.ok());
  EXPECT_NE(MessageOf(status).find("192.0.2.1"), std::string::npos) << status;
  EXPECT_EQ(door.card().address, "");
}

}  // namespace
}  // namespace troupe::train
