// Method: a token is written, read back, damaged in every way a person can, and proven over two TLS
// exporters; what the head keeps of it is searched for its secret.
#include "runtime/net/token.h"

#include <gtest/gtest.h>

#include "runtime/net/digest.h"
#include "tests/runtime/net/test_cluster.h"

namespace troupe::net {
namespace {

constexpr std::uint64_t kTokenNow = 1'800'000'000ull * kSecondUs;
const std::string kExporter(32, 'e');

Token SomeToken(wire::Role role = wire::Role::kWorker) {
  Prng random(7);
  return *MakeToken(role, Sha256("a CA key"), random);
}
std::string TextOf(const Token& token) { return std::string(FormatToken(token).Reveal()); }
std::string ErrorOf(const std::string& text) {
  const auto token = ParseToken(Secret(text));
  return token.ok() ? "parsed" : MessageOf(token.status());
}

TEST(Token, IsReadBackAsWritten) {
  const Token token = SomeToken();
  const std::string text = TextOf(token);
  EXPECT_EQ(text.substr(0, 11), "rt1.worker.");
  const auto read = ParseToken(Secret("  " + text + "\n"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->id, token.id);
  EXPECT_EQ(read->role, token.role);
  EXPECT_EQ(read->ca_key_hash, token.ca_key_hash);
  EXPECT_EQ(read->secret.Reveal(), token.secret.Reveal());
  EXPECT_EQ(read->cluster(), ClusterIdOf(Sha256("a CA key")));
}

TEST(Token, TwoAreDifferent) {
  async::OsRandom random;
  const Token a = *MakeToken(wire::Role::kClient, Sha256("k"), random);
  const Token b = *MakeToken(wire::Role::kClient, Sha256("k"), random);
  EXPECT_NE(a.id, b.id);
  EXPECT_NE(a.secret.Reveal(), b.secret.Reveal());
  EXPECT_FALSE(MakeToken(wire::Role::kHead, Sha256("k"), random).ok());
}

TEST(Token, CutShortAtAnyPlaceItIsRefused) {
  const std::string text = TextOf(SomeToken());
  for (std::size_t n = 0; n < text.size(); ++n)
    EXPECT_NE(ErrorOf(text.substr(0, n)), "parsed") << n;
}

TEST(Token, AnyChangedCharacterIsNoticedByTheCheckSum) {
  const std::string text = TextOf(SomeToken());
  for (std::size_t at = 11; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = changed[at] == 'a' ? 'b' : 'a';
    EXPECT_NE(ErrorOf(changed), "parsed") << at;
  }
  std::string changed = text;
  changed[20] = changed[20] == 'a' ? 'b' : 'a';
  EXPECT_NE(ErrorOf(changed).find("a character was changed or lost in copying"), std::string::npos);
}

TEST(Token, EachDefectHasItsOwnWords) {
  EXPECT_NE(ErrorOf("").find("it is empty"), std::string::npos);
  EXPECT_NE(ErrorOf("hello").find("does not begin with \"rt1.\""), std::string::npos);
  EXPECT_NE(ErrorOf("rt2.worker.a.b.c").find("not a token of this version"), std::string::npos);
  EXPECT_NE(ErrorOf("rt1.worker.abc").find("3 parts instead of 5: it was copied only in part"),
            std::string::npos);
  EXPECT_NE(ErrorOf("rt1.worker.a.b.c.d").find("6 parts instead of 5: something else was copied"),
            std::string::npos);
  EXPECT_NE(ErrorOf("rt1.worker.secret.sum").find("hash of the cluster's certificate is missing"),
            std::string::npos);
  EXPECT_NE(ErrorOf(std::string(1000, 'x')).find("far too long"), std::string::npos);
  Token token = SomeToken();
  token.role = wire::Role::kHead;
  EXPECT_NE(ErrorOf(TextOf(token)).find("its role is none of"), std::string::npos);
  token = SomeToken();
  token.ca_key_hash = "";
  EXPECT_NE(ErrorOf(TextOf(token)).find("hash of the cluster's certificate in it is missing"),
            std::string::npos);
}

TEST(Token, NoErrorRepeatsTheToken) {
  const std::string text = TextOf(SomeToken());
  const std::string secret = text.substr(text.size() - 40, 20);
  for (const std::string& bad : {text + "x", text.substr(0, text.size() - 1), "x" + text}) {
    EXPECT_EQ(ErrorOf(bad).find(secret), std::string::npos);
  }
}

TEST(Token, TheProofHoldsForOneSessionAndOneRole) {
  const Token token = SomeToken();
  const TokenRecord record = RecordOf(token, kTokenNow);
  const std::string proof = TokenProof(TokenKey(token), token.role, kExporter);
  EXPECT_TRUE(VerifyProof(record, token.role, kExporter, proof, kTokenNow).ok());
  const std::string other_session(32, 'f');
  EXPECT_FALSE(VerifyProof(record, token.role, other_session, proof, kTokenNow).ok())
      << "a replayed proof";
  EXPECT_FALSE(VerifyProof(record, wire::Role::kClient, kExporter, proof, kTokenNow).ok());
  EXPECT_FALSE(
      VerifyProof(record, token.role, "", TokenProof(record.key, token.role, ""), kTokenNow).ok())
      << "a session that is not TLS";
}

TEST(Token, ARightProofForAnotherRoleIsToldWhich) {
  const Token token = SomeToken();
  const std::string proof = TokenProof(TokenKey(token), wire::Role::kClient, kExporter);
  const Status refused =
      VerifyProof(RecordOf(token, kTokenNow), wire::Role::kClient, kExporter, proof, kTokenNow);
  EXPECT_NE(MessageOf(refused).find("for the role worker, not for client"), std::string::npos);
}

TEST(Token, ExpiryRevocationAndUseAreToldOnlyToWhoHoldsIt) {
  const Token token = SomeToken();
  TokenRecord record = RecordOf(token, kTokenNow, kTokenLifetimeUs, true);
  const std::string proof = TokenProof(TokenKey(token), token.role, kExporter);
  const auto refusal = [&](std::uint64_t now, const std::string& shown) {
    return MessageOf(VerifyProof(record, token.role, kExporter, shown, now));
  };
  const std::string wrong = MessageOf(UnknownToken());
  EXPECT_NE(refusal(kTokenNow + 26 * kHourUs, proof).find("it expired 2 h ago"), std::string::npos);
  EXPECT_EQ(refusal(kTokenNow + 26 * kHourUs, std::string(32, 'x')), wrong);
  record.used_us = kTokenNow;
  EXPECT_NE(refusal(kTokenNow, proof).find("single use"), std::string::npos);
  record.revoked = true;
  EXPECT_NE(refusal(kTokenNow, proof).find("revoked"), std::string::npos);
  EXPECT_EQ(refusal(kTokenNow, std::string(32, 'x')), wrong);
}

TEST(Token, TheRecordHoldsAKeyThatIsNotTheSecret) {
  const Token token = SomeToken();
  const TokenRecord record = RecordOf(token, kTokenNow);
  EXPECT_EQ(record.key.Reveal().find(token.secret.Reveal()), std::string::npos);
  EXPECT_EQ(record.expires_us, kTokenNow + kTokenLifetimeUs);
}

TEST(Token, AsABearersItIsComparedWholeAndMustBeInForce) {
  const Token token = SomeToken(wire::Role::kObserver);
  const auto said = [&](TokenRecord record, const Token& shown, std::uint64_t now_us) {
    const Status status = VerifyBearer(record, shown, now_us);
    return status.ok() ? "in" : MessageOf(status);
  };
  const TokenRecord record = RecordOf(token, kTokenNow);
  EXPECT_EQ(said(record, token, kTokenNow), "in");
  Token wrong = token;
  wrong.secret = Secret(std::string(16, 'x'));
  EXPECT_EQ(said(record, wrong, kTokenNow), MessageOf(UnknownToken()));
  Token client = token;
  client.role = wire::Role::kClient;
  EXPECT_EQ(said(record, client, kTokenNow), MessageOf(UnknownToken()));
  EXPECT_NE(said(record, token, record.expires_us).find("expired"), std::string::npos);
  TokenRecord changed = record;
  changed.revoked = true;
  EXPECT_NE(said(changed, token, kTokenNow).find("revoked"), std::string::npos);
  EXPECT_EQ(said(changed, wrong, kTokenNow), MessageOf(UnknownToken()));
  changed = record;
  changed.single_use = true;
  EXPECT_NE(said(changed, token, kTokenNow).find("single use"), std::string::npos);
}

}  // namespace
}  // namespace troupe::net
