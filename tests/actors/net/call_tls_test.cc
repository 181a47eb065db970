// Method: Channel and CallServer over TLS on loopback in one process, without Python. A listener
// that looks at the server name and hands the connection over stands for the worker; an authority
// of the test for the head. Hostile callers speak to the same port with raw sockets and foreign
// certificates.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/net/listener.h"
#include "tests/actors/tls_support.h"

namespace troupe::actors {
namespace {

using ::testing::HasSubstr;

/// The error of a call whose channel gave up dialling, made before that or after.
auto NotSent() { return HasSubstr(ErrorText(ErrorCode::kNotSent)); }

TEST(CallTls, AnActorIsCalledThroughItsWorkersPort) {
  TestCluster cluster;
  TlsActor actor(cluster);
  const auto channel = actor.Dial(cluster.Identity(wire::Role::kClient, NodeId(9, 9)));
  EXPECT_EQ(Call(*channel, "firstone"), "firstone");
  for (const std::size_t size : {8u, 16'384u, 16'392u, 65'536u, 300'000u, 5'000'000u}) {
    const std::string value = Padded(size, 'v');
    EXPECT_EQ(Call(*channel, value) == value, true) << size;
  }
  channel->Close();
}

TEST(CallTls, CallsMadeWhileItIsDialledArriveInOrder) {
  TestCluster cluster;
  TlsActor actor(cluster);
  const auto channel = actor.Dial(cluster.Identity(wire::Role::kProcess, NodeId(9, 9)));
  std::vector<Answer*> slots;
  for (int i = 0; i < 5000; ++i) {
    std::string value = std::to_string(i);
    value.resize(8, ' ');
    slots.push_back(Issue(*channel, value));
  }
  for (int i = 0; i < 5000; ++i) {
    std::string value = std::to_string(i);
    value.resize(8, ' ');
    ASSERT_EQ(AnswerText(slots[static_cast<std::size_t>(i)], *channel), value);
  }
  EXPECT_EQ(actor.calls(), 5000);
  channel->Close();
}

TEST(CallTls, ManyThreadsAndLargeValuesShareOneChannel) {
  TestCluster cluster;
  TlsActor actor(cluster);
  const auto channel = actor.Dial(cluster.Identity(wire::Role::kClient, NodeId(9, 9)));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string value =
            Padded(static_cast<std::size_t>(1 + i * 2003), static_cast<char>('a' + t));
        if (Call(*channel, value) != value) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  channel->Close();
}

TEST(CallTls, AHandshakeNeedsNoThreadThatServes) {
  TestCluster cluster;
  TlsActor actor(cluster, /*serve=*/false);
  const auto channel = actor.Dial(cluster.Identity(wire::Role::kClient, NodeId(9, 9)));
  Answer* slot = Issue(*channel, "waiting ");
  EXPECT_FALSE(slot->done());
  actor.Serve();
  EXPECT_EQ(AnswerText(slot, *channel), "waiting ");
  channel->Close();
}

TEST(CallTls, AnotherClusterIsRefusedAndNothingWasSent) {
  TestCluster cluster;
  TestCluster other;
  TlsActor actor(cluster);
  const auto channel = actor.Dial(other.Identity(wire::Role::kClient, NodeId(9, 9)));
  EXPECT_THAT(Call(*channel, "secret  "), NotSent());
  EXPECT_THAT(Call(*channel, "again   "), NotSent());
  EXPECT_EQ(actor.calls(), 0);
  channel->Close();
}

TEST(CallTls, WhoAnswersMustBeTheActorThatWasMeant) {
  TestCluster cluster;
  TlsActor actor(cluster);
  ChannelOptions options;
  options.description = "actor Echo(1)";
  RemoteActor target = actor.target();
  target.actor = ActorId(3, 5);
  const auto channel = *Channel::Dial(CallReactor::Current(), target,
                                      cluster.Identity(wire::Role::kClient, NodeId(9, 9)), options);
  const std::string answer = Call(*channel, "secret  ");
  EXPECT_THAT(answer, NotSent());
  EXPECT_THAT(answer, HasSubstr("not the process asked for"));
  EXPECT_EQ(actor.calls(), 0);
  channel->Close();
}

TEST(CallTls, OnlyClientsAndProcessesCallActors) {
  TestCluster cluster;
  TlsActor actor(cluster);
  for (const wire::Role role : {wire::Role::kObserver, wire::Role::kWorker}) {
    const auto channel = actor.Dial(cluster.Identity(role, NodeId(9, 9)), 300ms);
    EXPECT_THAT(Call(*channel, "secret  "), HasSubstr("error "));
    channel->Close();
  }
  // A certificate whose time was over an hour ago: the backdating is not its life.
  const auto late = actor.Dial(cluster.Identity(wire::Role::kClient, NodeId(9, 9), 0), 300ms);
  EXPECT_THAT(Call(*late, "secret  "), HasSubstr("error "));
  late->Close();
  EXPECT_EQ(actor.calls(), 0);
}

TEST(CallTls, NobodyThereIsNotSentAfterTheGrace) {
  TestCluster cluster;
  std::uint16_t port = 0;
  RemoteActor target;
  {
    TlsActor actor(cluster);
    port = actor.port();
    target = actor.target();
  }
  ChannelOptions options;
  options.description = "actor Echo(1)";
  options.grace = 200ms;
  const auto channel = *Channel::Dial(CallReactor::Current(), target,
                                      cluster.Identity(wire::Role::kClient, NodeId(9, 9)), options);
  const std::string answer = Call(*channel, "anybody ");
  EXPECT_THAT(answer, NotSent());
  EXPECT_THAT(answer, HasSubstr("127.0.0.1:" + std::to_string(port)));
  channel->Close();
}

TEST(CallTls, AVerdictWhileItIsDialledEndsEveryCall) {
  TestCluster cluster;
  TlsActor actor(cluster, /*serve=*/false);
  RemoteActor target = actor.target();
  // never answered: the connection is closed, again and again
  target.process = ProcessId(7, 7).Hex();
  ChannelOptions options;
  options.description = "actor Echo(1)";
  const auto channel = *Channel::Dial(CallReactor::Current(), target,
                                      cluster.Identity(wire::Role::kClient, NodeId(9, 9)), options);
  Answer* slot = Issue(*channel, "anybody ");
  channel->Fail(ErrorCode::kActorDied, "its process was killed");
  EXPECT_THAT(AnswerText(slot, *channel), HasSubstr("its process was killed"));
  channel->Close();
}

TEST(CallTls, AnEndedActorIsNoSilence) {
  TestCluster cluster;
  TlsActor actor(cluster);
  const auto channel = actor.Dial(cluster.Identity(wire::Role::kClient, NodeId(9, 9)), 300ms);
  EXPECT_EQ(Call(*channel, "firstone"), "firstone");
  actor.Stop();
  EXPECT_THAT(Call(*channel, "afterend"), HasSubstr("error "));
  channel->Close();
}

/// A raw connection to the port, which says `bytes`; "closed" once the other side ends it.
std::string Speak(std::uint16_t port, const std::string& bytes) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return "not connected";
  (void)!::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  std::string end = "closed";
  while (true) {
    pollfd watched{fd, POLLIN, 0};
    char buffer[4096];
    if (::poll(&watched, 1, 30'000) <= 0) end = "silence";
    if (end == "silence" || ::recv(fd, buffer, sizeof buffer, 0) <= 0) break;
  }
  ::close(fd);
  return end;
}

TEST(CallTls, JunkAndHalfAHelloEndTheirConnectionAndNothingElse) {
  TestCluster cluster;
  TlsActor actor(cluster);
  // A ClientHello with the actor's server name, as a real client begins.
  net::ExpectedPeer expected;
  expected.server_name = kProcess.Hex();
  const auto shown = *cluster.Identity(wire::Role::kClient, NodeId(9, 9))();
  auto engine = *net::TlsEngine::Client(shown->client, expected, "the actor");
  ASSERT_TRUE(engine->Start().ok());
  const std::string hello = engine->TakeOutgoing();
  std::vector<std::thread> speakers;
  std::atomic<int> closed{0};
  const std::string call(32, '\x54');
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), call,
                                   hello + std::string(64, '\x16'), hello + call, hello}) {
    speakers.emplace_back([&, bytes] {
      if (Speak(actor.port(), bytes) == "closed") ++closed;
    });
  }
  const auto channel = actor.Dial(cluster.Identity(wire::Role::kClient, NodeId(9, 9)));
  EXPECT_EQ(Call(*channel, "firstone"), "firstone");
  for (std::thread& speaker : speakers) speaker.join();
  EXPECT_EQ(closed, 5);
  EXPECT_EQ(actor.calls(), 1);
  EXPECT_EQ(Call(*channel, "secondly"), "secondly");
  channel->Close();
}

TEST(CallTls, ManyCallersComeInThoughFewAtATime) {
  TestCluster cluster;
  TlsActor actor(cluster);
  const IdentitySource identity = cluster.Identity(wire::Role::kClient, NodeId(9, 9));
  std::vector<std::shared_ptr<Channel>> channels;
  std::vector<Answer*> slots;
  for (std::size_t i = 0; i < 3 * CallDoor::kHandshakesPerHostMax; ++i) {
    channels.push_back(actor.Dial(identity, 30s));
    slots.push_back(Issue(*channels.back(), "manyhere"));
  }
  for (std::size_t i = 0; i < slots.size(); ++i)
    EXPECT_EQ(AnswerText(slots[i], *channels[i], 40s), "manyhere");
  for (const auto& channel : channels) channel->Close();
}

}  // namespace
}  // namespace troupe::actors
