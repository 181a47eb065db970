// Method: a listener with the server's side of the handshake and a dialer with the client's run on
// one loop, over real sockets of loopback and of a temporary folder; each refusal is provoked and
// its text read by the test as its user would.
#include "runtime/net/session.h"

#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <future>
#include <optional>

#include "runtime/async/loop_thread.h"
#include "tests/runtime/net/test_cluster.h"

namespace troupe::net {
namespace {

using async::Task;

Task<void> Serve(std::shared_ptr<Connection> connection, TestCluster* cluster,
                 std::vector<StatusOr<Admitted>>* admitted) {
  admitted->push_back(
      co_await Authenticate(connection, cluster->rules, cluster->clock, cluster->random));
  while (admitted->back().ok()) {  // an echo, so that a test can talk on
    StatusOr<wire::Message> message = co_await connection->Receive();
    if (!message.ok()) co_return;
    message->reply_to = message->id;
    message->id = 0;
    if (!connection->Send(*message).ok()) co_return;
  }
}

struct Session {
  std::shared_ptr<Connection> connection;
  StatusOr<Joined> joined = MakeError(ErrorCode::kInternal, "not run");
};

Task<Session> DialAndJoin(DialOptions dial, JoinOptions join, const Clock* clock) {
  Session session;
  auto connection = co_await Dial(std::move(dial));
  if (!connection.ok()) {
    session.joined = connection.status();
    co_return session;
  }
  session.connection = *connection;
  session.joined = co_await Join(*connection, std::move(join), *clock);
  co_return session;
}

Task<void> JoinInto(DialOptions dial, JoinOptions join, const Clock* clock,
                    std::optional<Session>* into) {
  *into = co_await DialAndJoin(std::move(dial), std::move(join), clock);
}

Task<StatusOr<wire::Message>> Ask(std::shared_ptr<Connection> connection, wire::Message message) {
  TROUPE_CO_TRY(connection->Send(message));
  co_return co_await connection->Receive();
}

class SessionTest : public ::testing::Test {
 protected:
  void Listen(Address address) {
    ListenOptions options;
    options.address = std::move(address);
    options.tls = cluster_.Server();
    listener_ = *Listener::Open(loop_.context.get_executor(), std::move(options));
    listener_->Start([this](std::shared_ptr<Connection> connection) {
      loop_.scope.Spawn("serve", Serve(std::move(connection), &cluster_, &admitted_));
    });
  }
  void ListenTcp() { Listen(*TcpAddress("127.0.0.1", 0)); }
  void ListenUnix() { Listen(*UnixAddress(folder_.path() + "/head.sock")); }

  static JoinOptions As(wire::Role role) {
    JoinOptions options;
    options.hello.role = role;
    options.hello.name = "node-b";
    options.hello.host = "host-b";
    return options;
  }
  Session Connect(JoinOptions join, std::shared_ptr<const TlsContext> tls) {
    DialOptions dial(listener_->address());
    dial.tls = std::move(tls);
    dial.expected.role = wire::Role::kHead;
    return loop_.Run(DialAndJoin(std::move(dial), std::move(join), &cluster_.clock));
  }
  Session JoinWithToken(const Token& token) {
    JoinOptions join = As(token.role);
    join.token = token;
    join.key = PrivateKey::Generate();
    return Connect(std::move(join),
                   *TlsContext::ForPinnedClient(token.ca_key_hash, cluster_.clock));
  }
  Session JoinWithCertificate(const Credentials& credentials,
                              wire::Role role = wire::Role::kWorker) {
    return Connect(As(role), *TlsContext::ForClient(credentials, cluster_.clock));
  }
  static std::string ErrorOf(const Session& session) {
    return session.joined.ok() ? "joined" : MessageOf(session.joined.status());
  }

  TempFolder folder_;
  TestCluster cluster_;
  TestLoop loop_;
  std::vector<StatusOr<Admitted>> admitted_;
  std::unique_ptr<Listener> listener_;
};

TEST_F(SessionTest, ATokenIsAnsweredWithACertificateThatWorksWithoutTheToken) {
  ListenTcp();
  const Session first = JoinWithToken(cluster_.NewToken());
  ASSERT_TRUE(first.joined.ok()) << first.joined.status();
  ASSERT_TRUE(first.joined->credentials);
  EXPECT_EQ(first.joined->welcome.cluster_id, cluster_.authority.cluster_id());
  EXPECT_EQ(first.joined->welcome.head_incarnation, 7u);
  EXPECT_EQ(first.joined->clock_warning, "");
  const Identity who = *first.joined->credentials->certificate.identity();
  EXPECT_EQ(who.role, wire::Role::kWorker);
  EXPECT_EQ(who.id, first.joined->welcome.subject);

  const Session again = JoinWithCertificate(*first.joined->credentials);
  ASSERT_TRUE(again.joined.ok()) << again.joined.status();
  EXPECT_EQ(again.joined->welcome.subject, first.joined->welcome.subject);
  ASSERT_EQ(admitted_.size(), 2u);
  EXPECT_EQ(admitted_[0]->proof, Proof::kToken);
  EXPECT_EQ(admitted_[1]->proof, Proof::kCertificate);
  EXPECT_EQ(admitted_[1]->hello.name, "node-b");
}

TEST_F(SessionTest, MessagesFlowBothWaysAfterwards) {
  ListenTcp();
  const Session session = JoinWithToken(cluster_.NewToken());
  ASSERT_TRUE(session.joined.ok()) << session.joined.status();
  wire::Message message;
  message.id = 9;
  message.body = wire::Ok();
  message.attachment = std::string(3 << 20, 'a');
  const auto echo = loop_.Run(Ask(session.connection, message));
  ASSERT_TRUE(echo.ok()) << echo.status();
  EXPECT_EQ(echo->reply_to, 9u);
  EXPECT_EQ(echo->attachment, message.attachment);
}

TEST_F(SessionTest, TheSameUserNeedsNothingOnAUnixSocketAndKeepsItsId) {
  ListenUnix();
  JoinOptions join = As(wire::Role::kWorker);
  join.hello.subject = NodeId(1, 2);
  join.key = PrivateKey::Generate();
  const Session session = Connect(std::move(join), nullptr);
  ASSERT_TRUE(session.joined.ok()) << session.joined.status();
  EXPECT_EQ(session.joined->welcome.subject, NodeId(1, 2));
  EXPECT_TRUE(session.joined->credentials);
  EXPECT_EQ(admitted_.at(0)->proof, Proof::kSameUser);
}

TEST_F(SessionTest, AWrongTokenIsRefused) {
  ListenTcp();
  Token token = cluster_.NewToken();
  token.secret = Secret(std::string(16, 'x'));
  const Session session = JoinWithToken(token);
  EXPECT_EQ(ErrorCodeOf(session.joined.status()), ErrorCode::kJoinRefused);
  EXPECT_EQ(ErrorOf(session),
            listener_->address().Text() +
                ": joining was refused: the token was refused: it is wrong, or was deleted "
                "on the head\n  get a new one on the head: troupe token create > token");
  const Token unknown =
      *MakeToken(wire::Role::kWorker, cluster_.authority.key_hash(), cluster_.random);
  EXPECT_EQ(ErrorOf(JoinWithToken(unknown)), ErrorOf(session)) << "the two must not be told apart";
}

TEST_F(SessionTest, AnExpiredTokenIsRefusedAndSaysSinceWhen) {
  ListenTcp();
  const Token token = cluster_.NewToken();
  cluster_.record.expires_us = cluster_.clock.WallTimeUs() - 2 * kHourUs;
  EXPECT_NE(ErrorOf(JoinWithToken(token)).find("it expired 2 h ago\n  get a new one"),
            std::string::npos);
}

TEST_F(SessionTest, ARevokedTokenIsRefused) {
  ListenTcp();
  const Token token = cluster_.NewToken();
  cluster_.record.revoked = true;
  EXPECT_NE(ErrorOf(JoinWithToken(token)).find("it was revoked"), std::string::npos);
}

TEST_F(SessionTest, ASingleUseTokenAdmitsOnce) {
  ListenTcp();
  const Token token = cluster_.NewToken();
  cluster_.record.single_use = true;
  cluster_.rules.on_token_used = [this](const TokenId&) {
    cluster_.record.used_us = cluster_.clock.WallTimeUs();
  };
  EXPECT_EQ(ErrorOf(JoinWithToken(token)), "joined");
  EXPECT_NE(ErrorOf(JoinWithToken(token)).find("single use"), std::string::npos);
}

// The thread that signs is held, so that what needs no signature can be seen to pass what waits for
// one.
TEST_F(SessionTest, SigningHoldsUpNobodyElseAndASingleUseTokenAdmitsOnceMeanwhile) {
  async::LoopThread signing("signing");
  std::promise<void> go;
  async::asio::post(signing.executor(), [held = go.get_future().share()] { held.wait(); });
  cluster_.rules.signing = signing.executor();
  const Token token = cluster_.NewToken();
  cluster_.record.single_use = true;
  int used = 0;
  cluster_.rules.on_token_used = [&](const TokenId&) {
    ++used;
    cluster_.record.used_us = cluster_.clock.WallTimeUs();
  };
  ListenTcp();
  std::optional<Session> slow;
  DialOptions dial(listener_->address());
  dial.tls = *TlsContext::ForPinnedClient(token.ca_key_hash, cluster_.clock);
  dial.expected.role = wire::Role::kHead;
  JoinOptions join = As(wire::Role::kWorker);
  join.token = token;
  join.key = PrivateKey::Generate();
  loop_.scope.Spawn("slow", JoinInto(std::move(dial), std::move(join), &cluster_.clock, &slow));
  while (used == 0) loop_.context.run_one();

  EXPECT_EQ(ErrorOf(JoinWithCertificate(cluster_.Issue(wire::Role::kWorker))), "joined");
  EXPECT_NE(ErrorOf(JoinWithToken(token)), "joined");
  EXPECT_FALSE(slow);
  go.set_value();
  while (!slow) loop_.context.run_one();
  EXPECT_EQ(ErrorOf(*slow), "joined");
  EXPECT_TRUE(slow->joined->credentials);
  EXPECT_EQ(used, 1);
}

TEST_F(SessionTest, AnotherClustersTokenIsRefusedBeforeAnythingIsSentAndNamesBothClusters) {
  ListenTcp();
  TestCluster other;
  const Session session = JoinWithToken(other.NewToken());
  EXPECT_EQ(ErrorCodeOf(session.joined.status()), ErrorCode::kWrongCluster);
  const std::string text = ErrorOf(session);
  EXPECT_NE(text.find("is not the cluster this token belongs to"), std::string::npos) << text;
  EXPECT_NE(text.find(other.authority.cluster_id().Short()), std::string::npos) << text;
  EXPECT_NE(text.find(cluster_.authority.cluster_id().Short()), std::string::npos) << text;
  EXPECT_TRUE(admitted_.empty());
}

TEST_F(SessionTest, AnotherClustersIdOnAUnixSocketIsRefused) {
  ListenUnix();
  JoinOptions join = As(wire::Role::kClient);
  join.hello.cluster_id = ClusterId(5, 5);
  const Session session = Connect(std::move(join), nullptr);
  EXPECT_EQ(ErrorCodeOf(session.joined.status()), ErrorCode::kWrongCluster);
}

TEST_F(SessionTest, ATokenOfAnotherRoleIsRefusedByTheClientItself) {
  ListenTcp();
  const Token token = cluster_.NewToken(wire::Role::kClient);
  JoinOptions join = As(wire::Role::kWorker);
  join.token = token;
  const Session session = Connect(std::move(join), cluster_.Pinned());
  EXPECT_NE(ErrorOf(session).find("this token is for the role client, needed is one for worker"),
            std::string::npos);
}

TEST_F(SessionTest, NeitherTokenNorCertificateIsRefused) {
  ListenTcp();
  const Session session = Connect(As(wire::Role::kClient), cluster_.Pinned());
  EXPECT_NE(ErrorOf(session).find("neither a token nor a certificate was shown"),
            std::string::npos);
}

TEST_F(SessionTest, AnExpiredCertificateIsRefusedUnlessTheRosterKnowsTheKey) {
  ListenTcp();
  const Credentials old = cluster_.Issue(wire::Role::kWorker, 10 * kDayUs, 7 * kDayUs);
  const Session refused = JoinWithCertificate(old);
  EXPECT_NE(ErrorOf(refused).find("expired 3 days ago"), std::string::npos) << ErrorOf(refused);
  cluster_.rules.may_rejoin = [&old](const Identity&, const std::string& key_hash) {
    return key_hash == old.key.PublicHash();
  };
  EXPECT_EQ(ErrorOf(JoinWithCertificate(old)), "joined");
}

TEST_F(SessionTest, AnotherClustersCertificateIsRefusedAndNamed) {
  ListenTcp();
  TestCluster other;
  // The node trusts this head's CA (so that TLS succeeds), but its own certificate is of another
  // cluster.
  Credentials mixed = other.Issue(wire::Role::kWorker);
  const std::string shown = other.authority.cluster_id().Short();
  mixed.ca = cluster_.authority.certificate();
  const Session session = JoinWithCertificate(mixed);
  EXPECT_NE(ErrorOf(session).find("belongs to cluster " + shown), std::string::npos)
      << ErrorOf(session);
}

TEST_F(SessionTest, ARoleTheCertificateDoesNotHaveIsRefused) {
  ListenTcp();
  const Session session =
      JoinWithCertificate(cluster_.Issue(wire::Role::kObserver), wire::Role::kWorker);
  EXPECT_NE(ErrorOf(session).find("its certificate is for the role observer, not for worker"),
            std::string::npos);
}

TEST(SessionDecide, VersionsAreNegotiatedOrRefusedByName) {
  TestCluster cluster;
  PeerInfo local;
  local.local = true;
  wire::Hello hello;
  hello.role = wire::Role::kClient;
  hello.version = 200;
  hello.version_min = 1;
  const auto newer = Decide(hello, local, cluster.rules, 0, cluster.random);
  ASSERT_TRUE(newer.ok()) << newer.status();
  EXPECT_EQ(newer->version, 1);
  hello.version_min = 150;
  const auto too_new = Decide(hello, local, cluster.rules, 0, cluster.random);
  EXPECT_EQ(ErrorCodeOf(too_new.status()), ErrorCode::kVersionMismatch);
  EXPECT_NE(
      MessageOf(too_new.status()).find("it speaks protocol version 150 to 200, this cluster 1"),
      std::string::npos);
}

TEST(SessionDecide, NobodyJoinsAsTheHead) {
  TestCluster cluster;
  PeerInfo local;
  local.local = true;
  wire::Hello hello;
  hello.version = hello.version_min = 1;
  hello.role = wire::Role::kHead;
  EXPECT_FALSE(Decide(hello, local, cluster.rules, 0, cluster.random).ok());
}

TEST_F(SessionTest, AClockThatIsOffIsNamed) {
  ListenTcp();
  const Token token = cluster_.NewToken();
  ShiftedClock late;
  late.shift_us = 30 * 60 * static_cast<std::int64_t>(kSecondUs);
  DialOptions dial(listener_->address());
  dial.tls = *TlsContext::ForPinnedClient(token.ca_key_hash, late);
  JoinOptions join = As(token.role);
  join.token = token;
  join.key = PrivateKey::Generate();
  const Session session = loop_.Run(DialAndJoin(std::move(dial), std::move(join), &late));
  ASSERT_TRUE(session.joined.ok()) << session.joined.status();
  EXPECT_NE(session.joined->clock_warning.find("clock is 30 min ahead of the head's"),
            std::string::npos)
      << session.joined->clock_warning;
}

}  // namespace
}  // namespace troupe::net
