// Method: one secret derived on two nodes, and what a changed secret or run name gives, side by
// side.
#include "runtime/net/run_secret.h"

#include <gtest/gtest.h>

#include "runtime/net/authority.h"

namespace troupe::net {
namespace {

Secret Bytes(char fill) { return Secret(std::string(kRunSecretBytes, fill)); }

TEST(RunSecret, TheSameOnEveryNode) {
  const auto a = DeriveRun(Bytes('s'), "job 7");
  const auto b = DeriveRun(Bytes('s'), "job 7");
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(FormatToken(a->worker).Reveal(), FormatToken(b->worker).Reveal());
  EXPECT_EQ(FormatToken(a->client).Reveal(), FormatToken(b->client).Reveal());
  EXPECT_EQ(a->port, b->port);
  EXPECT_GE(a->port, kRunPortFirst);
  EXPECT_LT(a->port, kRunPortFirst + kRunPortCount);
}

TEST(RunSecret, TheTokensPinTheAuthorityThatTheHeadMakes) {
  const auto run = DeriveRun(Bytes('s'), "");
  ASSERT_TRUE(run.ok());
  const auto authority = Authority::FromSeed(run->authority_seed.Reveal(), 1'000'000);
  ASSERT_TRUE(authority.ok());
  EXPECT_EQ(run->worker.ca_key_hash, authority->key_hash());
  EXPECT_EQ(ParseToken(FormatToken(run->client))->cluster(), authority->cluster_id());
}

TEST(RunSecret, AnotherSecretRunOrRoleSharesNothing) {
  const auto run = DeriveRun(Bytes('s'), "1");
  const auto other_run = DeriveRun(Bytes('s'), "2");
  const auto other_secret = DeriveRun(Bytes('t'), "1");
  EXPECT_NE(run->worker.ca_key_hash, other_run->worker.ca_key_hash);
  EXPECT_NE(run->worker.ca_key_hash, other_secret->worker.ca_key_hash);
  EXPECT_NE(run->worker.id, other_run->worker.id);
  EXPECT_NE(run->worker.id, run->client.id);
  EXPECT_NE(TokenKey(run->worker).Reveal(), TokenKey(run->client).Reveal());
}

TEST(RunSecret, AnotherLengthIsRefusedWithTheRemedy) {
  for (const std::size_t size : {0, 31, 33}) {
    const auto run = DeriveRun(Secret(std::string(size, 'x')), "");
    ASSERT_FALSE(run.ok());
    EXPECT_NE(MessageOf(run.status()).find("--make-secret"), std::string::npos);
  }
}

}  // namespace
}  // namespace troupe::net
