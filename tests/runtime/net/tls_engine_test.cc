// Method: two engines in one thread pass their bytes to each other by hand, so that every byte that
// would reach a network is seen, counted, cut or changed by the test.
#include "runtime/net/tls_engine.h"

#include <gtest/gtest.h>

#include "runtime/net/openssl.h"
#include "tests/runtime/net/test_cluster.h"

namespace troupe::net {
namespace {

struct Pair {
  Pair(std::shared_ptr<const TlsContext> client_context,
       std::shared_ptr<const TlsContext> server_context, ExpectedPeer expected = {})
      : client(*TlsEngine::Client(std::move(client_context), std::move(expected), "10.0.0.1:6400")),
        server(*TlsEngine::Server(std::move(server_context), "10.0.0.7:40112")) {}

  /// Passes bytes until nobody has any; the first error of each side is kept.
  void Run() {
    client_status = client->Start();
    while (client->HasOutgoing() || server->HasOutgoing()) {
      const std::string to_server = client->TakeOutgoing();
      sent_by_client += to_server.size();
      if (!to_server.empty() && server_status.ok()) server_status = server->Feed(to_server);
      const std::string to_client = server->TakeOutgoing();
      if (!to_client.empty() && client_status.ok()) client_status = client->Feed(to_client);
    }
  }
  static std::string ReadAll(TlsEngine& engine) {
    std::string all;
    char block[1000];
    for (;;) {
      const StatusOr<std::size_t> n = engine.Read(block, sizeof block);
      if (!n.ok() || *n == 0) return all;
      all.append(block, *n);
    }
  }

  std::unique_ptr<TlsEngine> client, server;
  Status client_status, server_status;
  std::size_t sent_by_client = 0;
};

TEST(TlsEngine, DataPassesBothWaysAndTheExportersAgree) {
  TestCluster cluster;
  Pair pair(cluster.Pinned(), cluster.Server());
  pair.Run();
  ASSERT_TRUE(pair.client->established() && pair.server->established()) << pair.client_status;
  const std::string much(500'000, 'm');
  ASSERT_TRUE(pair.client->Write(much).ok());
  ASSERT_TRUE(pair.server->Feed(pair.client->TakeOutgoing()).ok());
  EXPECT_EQ(Pair::ReadAll(*pair.server), much);
  ASSERT_TRUE(pair.server->Write("answer").ok());
  ASSERT_TRUE(pair.client->Feed(pair.server->TakeOutgoing()).ok());
  EXPECT_EQ(Pair::ReadAll(*pair.client), "answer");
  EXPECT_EQ(*pair.client->Exporter("EXPORTER-x"), *pair.server->Exporter("EXPORTER-x"));
  EXPECT_NE(*pair.client->Exporter("EXPORTER-x"), *pair.client->Exporter("EXPORTER-y"));
}

TEST(TlsEngine, AWrongPinEndsTheHandshakeBeforeAnythingIsSent) {
  TestCluster cluster, other;
  Pair pair(other.Pinned(), cluster.Server());
  EXPECT_TRUE(pair.client->Start().ok());
  const std::string hello = pair.client->TakeOutgoing();
  ASSERT_TRUE(pair.server->Feed(hello).ok());
  pair.client_status = pair.client->Feed(pair.server->TakeOutgoing());
  EXPECT_EQ(ErrorCodeOf(pair.client_status), ErrorCode::kWrongCluster);
  EXPECT_NE(
      MessageOf(pair.client_status).find("10.0.0.1:6400 is not the cluster this token belongs to"),
      std::string::npos);
  EXPECT_FALSE(pair.client->established());
  EXPECT_FALSE(pair.client->Write("secret").ok());
  // All that may still leave is an alert (and a change-cipher-spec filler): no certificate, no
  // data.
  EXPECT_LT(pair.client->TakeOutgoing().size(), 64u);
  EXPECT_FALSE(pair.server->established());
}

TEST(TlsEngine, AClientWithACertificateChecksThePinFirstToo) {
  TestCluster cluster, other;
  const Credentials node = other.Issue(wire::Role::kWorker);
  Pair pair(*TlsContext::ForClient(node, other.clock), cluster.Server());
  pair.Run();
  EXPECT_EQ(ErrorCodeOf(pair.client_status), ErrorCode::kWrongCluster);
  EXPECT_NE(MessageOf(pair.client_status).find("is not the cluster this certificate belongs to"),
            std::string::npos);
  EXPECT_EQ(pair.server->verdict().key_hash, "") << "the client's certificate was sent";
}

TEST(TlsEngine, TheServerLearnsWhoTheClientIs) {
  TestCluster cluster;
  const Credentials node = cluster.Issue(wire::Role::kWorker);
  Pair pair(*TlsContext::ForClient(node, cluster.clock), cluster.Server());
  pair.Run();
  ASSERT_TRUE(pair.server->verdict().identity);
  EXPECT_EQ(*pair.server->verdict().identity, *node.certificate.identity());
  EXPECT_EQ(pair.server->verdict().key_hash, node.key.PublicHash());
  EXPECT_EQ(pair.client->verdict().identity->role, wire::Role::kHead);
}

TEST(TlsEngine, WithoutACertificateTheServerHasNoIdentity) {
  TestCluster cluster;
  Pair pair(cluster.Pinned(), cluster.Server());
  pair.Run();
  EXPECT_TRUE(pair.server->established());
  EXPECT_FALSE(pair.server->verdict().identity);
}

TEST(TlsEngine, AServerThatRequiresACertificateRefusesWithoutOne) {
  TestCluster cluster;
  Pair pair(cluster.Pinned(), cluster.Server(TlsContext::Clients::kRequired));
  pair.Run();
  EXPECT_FALSE(pair.server->established());
  EXPECT_FALSE(pair.server_status.ok());
}

TEST(TlsEngine, AnExpiredServerIsRefusedAndSaysSo) {
  TestCluster cluster;
  cluster.head = cluster.Issue(wire::Role::kHead, 10 * kDayUs, 7 * kDayUs);
  Pair pair(cluster.Pinned(), cluster.Server());
  pair.Run();
  EXPECT_EQ(ErrorCodeOf(pair.client_status), ErrorCode::kJoinRefused);
  EXPECT_NE(MessageOf(pair.client_status).find("expired 3 days ago"), std::string::npos)
      << pair.client_status;
}

TEST(TlsEngine, AClockBehindIsNamedAsSuch) {
  TestCluster cluster;
  ShiftedClock behind;
  behind.shift_us = -5 * static_cast<std::int64_t>(kHourUs);
  Pair pair(*TlsContext::ForPinnedClient(cluster.authority.key_hash(), behind), cluster.Server());
  pair.Run();
  EXPECT_NE(MessageOf(pair.client_status).find("one of the two clocks is wrong by at least"),
            std::string::npos);
}

TEST(TlsEngine, AnExpiredClientIsKeptForTheServerToDecide) {
  TestCluster cluster;
  const Credentials old = cluster.Issue(wire::Role::kWorker, 10 * kDayUs, 7 * kDayUs);
  Pair pair(*TlsContext::ForClient(old, cluster.clock), cluster.Server());
  pair.Run();
  EXPECT_TRUE(pair.server->verdict().out_of_date);
  EXPECT_TRUE(pair.server->verdict().identity);
  Pair strict(*TlsContext::ForClient(old, cluster.clock),
              cluster.Server(TlsContext::Clients::kRequired));
  strict.Run();
  EXPECT_FALSE(strict.server->established());
}

TEST(TlsEngine, TheExpectedRoleAndIdAreChecked) {
  TestCluster cluster;
  ExpectedPeer worker;
  worker.role = wire::Role::kWorker;
  Pair role(cluster.Pinned(), cluster.Server(), worker);
  role.Run();
  EXPECT_NE(MessageOf(role.client_status).find("not the worker asked for"), std::string::npos);
  ExpectedPeer head;
  head.role = wire::Role::kHead;
  head.id = NodeId(1, 1);
  Pair id(cluster.Pinned(), cluster.Server(), head);
  id.Run();
  EXPECT_FALSE(id.client->established());
  head.id = cluster.head.certificate.identity()->id;
  Pair right(cluster.Pinned(), cluster.Server(), head);
  right.Run();
  EXPECT_TRUE(right.client->established());
}

TEST(TlsEngine, ACertificateSignedByALeafIsRefused) {
  // A node may not act as an authority: its own certificate and name, but signed with its leaf key.
  TestCluster cluster, forger;
  Credentials forged = forger.Issue(wire::Role::kHead);
  forged.ca = cluster.authority.certificate();  // shows the true CA beside a leaf it never signed
  cluster.head = forged;
  Pair pair(cluster.Pinned(),
            *TlsContext::ForServer(forged, TlsContext::Clients::kOptional, cluster.clock));
  pair.Run();
  EXPECT_FALSE(pair.client->established());
  EXPECT_FALSE(pair.client_status.ok());
}

TEST(TlsEngine, TheServerNameArrives) {
  TestCluster cluster;
  ExpectedPeer expected;
  expected.server_name = ActorId(3, 4).Hex();
  Pair pair(cluster.Pinned(), cluster.Server(), expected);
  pair.Run();
  EXPECT_EQ(pair.server->server_name(), ActorId(3, 4).Hex());
}

TEST(TlsEngine, AFarewellIsACleanEndJunkIsNot) {
  TestCluster cluster;
  Pair pair(cluster.Pinned(), cluster.Server());
  pair.Run();
  pair.client->Shutdown();
  ASSERT_TRUE(pair.server->Feed(pair.client->TakeOutgoing()).ok());
  char byte;
  EXPECT_EQ(*pair.server->Read(&byte, 1), 0u);
  EXPECT_TRUE(pair.server->closed());

  Pair tampered(cluster.Pinned(), cluster.Server());
  tampered.Run();
  ASSERT_TRUE(tampered.client->Write("data").ok());
  std::string record = tampered.client->TakeOutgoing();
  record[record.size() - 1] = static_cast<char>(record.back() ^ 1);
  ASSERT_TRUE(tampered.server->Feed(record).ok());
  EXPECT_EQ(ErrorCodeOf(tampered.server->Read(&byte, 1).status()), ErrorCode::kInvalid);
}

TEST(TlsEngine, JunkInsteadOfAHandshakeIsAnError) {
  TestCluster cluster;
  auto server = *TlsEngine::Server(cluster.Server(), "10.0.0.7:40112");
  const Status junk = server->Feed("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(ErrorCodeOf(junk), ErrorCode::kInvalid);
  EXPECT_EQ(MessageOf(junk).find("10.0.0.7:40112"), 0u);
}

// A client by OpenSSL alone, as programs that are not this project's have it.
struct HttpClient {
  HttpClient(TestCluster& cluster, std::string_view offered, const std::string& name) {
    context.reset(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()),
                        cluster.authority.certificate().get());
    ssl.reset(SSL_new(context.get()), SSL_free);
    SSL_set1_host(ssl.get(), name.c_str());
    SSL_set_alpn_protos(ssl.get(), reinterpret_cast<const unsigned char*>(offered.data()),
                        static_cast<unsigned>(offered.size()));
    SSL_set_bio(ssl.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(ssl.get());
  }
  /// Returns true if the handshake completed, with the server's certificate accepted.
  bool Meet(TlsEngine& server) {
    for (int i = 0; i < 10 && SSL_do_handshake(ssl.get()) != 1; ++i) {
      char block[20000];
      const int n = BIO_read(SSL_get_wbio(ssl.get()), block, sizeof block);
      if (n > 0 && !server.Feed({block, static_cast<std::size_t>(n)}).ok()) return false;
      const std::string back = server.TakeOutgoing();
      BIO_write(SSL_get_rbio(ssl.get()), back.data(), static_cast<int>(back.size()));
    }
    char block[20000];
    const int n = BIO_read(SSL_get_wbio(ssl.get()), block, sizeof block);
    if (n > 0) (void)server.Feed({block, static_cast<std::size_t>(n)});
    return SSL_is_init_finished(ssl.get()) == 1;
  }
  std::shared_ptr<SSL_CTX> context;
  std::shared_ptr<SSL> ssl;
};

TEST(TlsEngine, ClientsThatOfferHttpGetACertificateWithNamesAndOthersDoNot) {
  TestCluster cluster;
  const std::vector<std::string> names = {"localhost", "10.0.0.1", "::1", "a b", "x,URI:y", ""};
  const auto pem =
      cluster.authority.IssueForHttp(cluster.head.key, names, cluster.clock.WallTimeUs(), kDayUs);
  const Certificate http = *Certificate::FromPem(*pem);
  EXPECT_FALSE(http.identity().ok()) << "it says nothing in the runtime's own protocol";
  const auto optional = TlsContext::Clients::kOptional;
  const auto serving = *TlsContext::ForServer(cluster.head, optional, cluster.clock, http);
  const auto silent = *TlsContext::ForServer(cluster.head, optional, cluster.clock);
  const auto meets = [&](const auto& context, std::string_view offered, const std::string& name) {
    auto server = *TlsEngine::Server(context, "a client");
    (void)server->Start();
    const bool met = HttpClient(cluster, offered, name).Meet(*server);
    return met ? "met by " + std::string(server->protocol()) : "not met";
  };
  for (const char* name : {"localhost", "10.0.0.1", "::1"}) {
    EXPECT_EQ(meets(serving, "\x02h2\x08http/1.1", name), "met by http/1.1") << name;
  }
  EXPECT_EQ(meets(serving, "\x08http/1.1", "elsewhere"), "not met");
  EXPECT_EQ(meets(serving, "\x0etroupe-objects\x08http/1.1", "localhost"), "not met");
  EXPECT_EQ(meets(serving, "\x02h2", "localhost"), "not met");
  EXPECT_EQ(meets(silent, "\x08http/1.1", "localhost"), "not met");
  Pair pair(cluster.Pinned(), serving);
  pair.Run();
  EXPECT_TRUE(pair.client->established() && pair.server->established()) << pair.client_status;
  EXPECT_EQ(pair.client->verdict().identity->role, wire::Role::kHead);
}

}  // namespace
}  // namespace troupe::net
