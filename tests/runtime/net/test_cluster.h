// A cluster of one test: an authority, a head's certificate, contexts for both sides, and a loop to
// run coroutines on. Clock: the real one plus an offset the test sets.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "runtime/async/os_random.h"
#include "runtime/async/real_clock.h"
#include "runtime/async/scope.h"
#include "runtime/net/authority.h"
#include "runtime/net/credentials.h"
#include "runtime/net/dialer.h"
#include "runtime/net/human_time.h"
#include "runtime/net/listener.h"
#include "runtime/net/session.h"
#include "runtime/net/tls_context.h"
#include "runtime/net/token.h"

namespace troupe::net {

class ShiftedClock final : public Clock {
 public:
  Instant Now() const override { return real_.Now(); }
  std::uint64_t WallTimeUs() const override {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(real_.WallTimeUs()) + shift_us);
  }
  std::int64_t shift_us = 0;

 private:
  async::RealClock real_;
};

/// A folder of its own, removed with the test.
class TempFolder {
 public:
  TempFolder() {
    std::string name = "/tmp/troupe-test-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct TestCluster {
  TestCluster()
      : authority(*Authority::Create(clock.WallTimeUs())), head(Issue(wire::Role::kHead)) {
    rules.cluster = authority.cluster_id();
    rules.head_incarnation = 7;
    rules.name = "head-host";
    rules.ca_pem = authority.certificate().Pem();
    rules.authority = &authority;
  }
  Credentials Issue(wire::Role role, std::int64_t issued_ago_us = 0,
                    std::uint64_t lifetime_us = kDayUs) {
    const PrivateKey key = PrivateKey::Generate();
    const std::uint64_t when = clock.WallTimeUs() - static_cast<std::uint64_t>(issued_ago_us);
    const auto pem = authority.IssueFor(key, role, NodeId::Random(random), when, lifetime_us);
    return *MakeCredentials(key, *pem, authority.certificate().Pem());
  }
  std::shared_ptr<const TlsContext> Server(
      TlsContext::Clients clients = TlsContext::Clients::kOptional) {
    return *TlsContext::ForServer(head, clients, clock);
  }
  std::shared_ptr<const TlsContext> Pinned() {
    return *TlsContext::ForPinnedClient(authority.key_hash(), clock);
  }
  /// A token whose record the rules know.
  Token NewToken(wire::Role role = wire::Role::kWorker) {
    Token token = *MakeToken(role, authority.key_hash(), random);
    record = RecordOf(token, clock.WallTimeUs());
    rules.find_token = [this](const TokenId& id) -> std::optional<TokenRecord> {
      if (record.id == id) return record;
      return std::nullopt;
    };
    return token;
  }

  ShiftedClock clock;
  async::OsRandom random;
  Authority authority;
  Credentials head;
  SessionRules rules;
  TokenRecord record;
};

/// Runs coroutines to their end on a loop of the test's own.
struct TestLoop {
  boost::asio::io_context context{1};
  async::Scope scope{context.get_executor(), "test"};

  template <class T>
  T Run(async::Task<T> task) {
    std::optional<T> result;
    scope.Spawn("run", Store(std::move(task), &result));
    context.restart();
    while (!result && context.run_one() > 0) {
    }
    EXPECT_TRUE(scope.first_error().ok()) << scope.first_error();
    return std::move(*result);
  }
  void Poll() {
    context.restart();
    context.poll();
  }

 private:
  template <class T>
  static async::Task<void> Store(async::Task<T> task, std::optional<T>* result) {
    result->emplace(co_await std::move(task));
  }
};

}  // namespace troupe::net
