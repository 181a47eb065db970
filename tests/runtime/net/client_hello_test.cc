// Method: real ClientHellos made by the TLS engine, whole, cut short at every length, split over
// records and changed byte by byte; and a peek at a real socket.
#include "runtime/net/client_hello.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/net/tls_engine.h"
#include "tests/runtime/net/test_cluster.h"

namespace troupe::net {
namespace {

using State = ServerNamePeek::State;

std::string HelloFor(const std::string& server_name) {
  TestCluster cluster;
  ExpectedPeer expected;
  expected.server_name = server_name;
  auto engine = *TlsEngine::Client(cluster.Pinned(), expected, "peer");
  EXPECT_TRUE(engine->Start().ok());
  return engine->TakeOutgoing();
}

TEST(ClientHello, TheServerNameIsRead) {
  const std::string id = ActorId(1, 2).Hex();
  const ServerNamePeek peek = ParseClientHello(HelloFor(id));
  EXPECT_EQ(peek.state, State::kName);
  EXPECT_EQ(peek.name, id);
}

TEST(ClientHello, WithoutOneItSaysSo) {
  EXPECT_EQ(ParseClientHello(HelloFor("")).state, State::kNone);
}

TEST(ClientHello, CutShortItWaitsForMore) {
  const std::string hello = HelloFor("0123456789abcdef0123456789abcdef");
  for (std::size_t n = 0; n < hello.size(); ++n) {
    EXPECT_EQ(ParseClientHello(hello.substr(0, n)).state, State::kIncomplete) << n;
  }
}

TEST(ClientHello, SplitOverRecordsItIsTheSame) {
  const std::string hello = HelloFor("0123456789abcdef0123456789abcdef");
  const std::string body = hello.substr(5);
  std::string split;
  for (std::size_t at = 0; at < body.size(); at += 50) {
    const std::string part = body.substr(at, 50);
    split += std::string("\x16\x03\x01\x00", 4) + static_cast<char>(part.size()) + part;
  }
  EXPECT_EQ(ParseClientHello(split).name, "0123456789abcdef0123456789abcdef");
}

TEST(ClientHello, WhatIsNotTlsIsToldApart) {
  EXPECT_EQ(ParseClientHello("GET / HTTP/1.1\r\n").state, State::kNotTls);
  EXPECT_EQ(ParseClientHello(std::string("\x16\x03\x01\x00\x00", 5)).state, State::kNotTls);
  EXPECT_EQ(ParseClientHello(std::string("\x16\x03\x01\x00\x04\x02\x00\x00\x00", 9)).state,
            State::kNotTls);
  EXPECT_EQ(ParseClientHello(std::string("\x16\x03\x01\x00\x04\x01\xff\xff\xff", 9)).state,
            State::kNotTls);
}

TEST(ClientHello, NoChangedByteMakesItReadOutOfBounds) {
  const std::string hello = HelloFor("0123456789abcdef0123456789abcdef");
  for (std::size_t at = 0; at < hello.size(); ++at) {
    for (const int flip : {1, 0x80, 0xff}) {
      std::string changed = hello;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      ParseClientHello(changed);  // the sanitizers are the assertion
    }
  }
}

TEST(ClientHello, PeekingConsumesNothing) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const UniqueFd here(ends[0]), there(ends[1]);
  EXPECT_EQ(PeekServerName(here.get())->state, State::kIncomplete);
  const std::string hello = HelloFor("00000000000000010000000000000002");
  ASSERT_EQ(write(there.get(), hello.data(), hello.size()), static_cast<ssize_t>(hello.size()));
  for (int i = 0; i < 2; ++i) {
    std::size_t seen = 0;
    EXPECT_EQ(PeekServerName(here.get(), &seen)->name, "00000000000000010000000000000002");
    EXPECT_EQ(seen, hello.size());
  }
  char all[8192];
  EXPECT_EQ(read(here.get(), all, sizeof all), static_cast<ssize_t>(hello.size()));
}

}  // namespace
}  // namespace troupe::net
