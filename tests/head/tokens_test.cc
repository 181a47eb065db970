// Method: HeadCore with a client made of words and a mint that counts; time is moved by hand.
//   TK-1 a token that is over is listed for another 25 hours, and then forgotten for good.
//   TK-2 there are never more than kTokensMax.
#include "head/core/nodes/tokens.h"

#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

using namespace std::chrono_literals;

class Tokens : public HeadFixture {
 protected:
  TokenId Make(std::uint64_t ttl_s, bool single_use = false) {
    wire::CreateToken create;
    create.ttl_s = ttl_s;
    create.single_use = single_use;
    Say(client_, create, 1);
    return Last<wire::TokenCreated>(client_).id;
  }
  std::size_t Listed() {
    Say(client_, wire::ListTokens(), 2);
    return Last<wire::TokenList>(client_).tokens.size();
  }
  void Restart() {
    Boot();
    client_ = Open(wire::Role::kClient, Id128(9, 9), true);
  }

  SessionId client_ = Open(wire::Role::kClient, Id128(9, 9), true);
};

TEST_F(Tokens, TK1_AnExpiredOneIsListedForADayAndThenForgotten) {
  Make(3600);
  Make(10 * 24 * 3600);
  Advance(25h + 59min);
  EXPECT_EQ(Listed(), 2u);
  Advance(2min);
  EXPECT_EQ(Listed(), 1u);
  Restart();
  EXPECT_EQ(core_->state().tokens.size(), 1u);
  EXPECT_EQ(Listed(), 1u);
}

TEST_F(Tokens, TK1_ForASingleUseItIsOverWithItsUse) {
  const TokenId once = Make(10 * 24 * 3600, true);
  const TokenId often = Make(10 * 24 * 3600);
  const TokenId never = Make(10 * 24 * 3600, true);
  Feed(TokenUsed{once});
  Feed(TokenUsed{often});
  Advance(23h);
  EXPECT_EQ(Listed(), 3u);
  Advance(2h);
  EXPECT_EQ(Listed(), 2u);
  EXPECT_EQ(core_->state().tokens.count(often) + core_->state().tokens.count(never), 2u);
}

TEST_F(Tokens, TK1_ARevokedOneIsOverWithItsRevocation) {
  const TokenId id = Make(10 * 24 * 3600);
  wire::RevokeToken revoke;
  revoke.id = id;
  Say(client_, revoke, 3);
  Advance(23h);
  EXPECT_EQ(Listed(), 1u);
  EXPECT_TRUE(core_->state().tokens.at(id).revoked);
  Advance(2h);
  EXPECT_EQ(Listed(), 0u);
}

TEST_F(Tokens, TK1_AFullDiskIsNotWrittenToForIt) {
  Make(3600);
  Advance(26h);
  Feed(DiskFull{true});
  EXPECT_EQ(Listed(), 1u);
  Feed(DiskFull{false});
  EXPECT_EQ(Listed(), 0u);
}

TEST_F(Tokens, TK2_TheLimitIsSaidAndMakesRoomWhenTheOldAreOver) {
  for (std::size_t i = 0; i < kTokensMax; ++i) {
    wire::TokenWritten token;
    token.id = TokenId(6, i + 1);
    token.role = wire::Role::kWorker;
    token.expires_us = WallUs() + 3'600'000'000;
    wire::Event event;
    event.body = token;
    durable_.push_back(std::move(event));
  }
  Restart();
  Say(client_, wire::CreateToken(), 4);
  const auto refused = Last<wire::ErrorReply>(client_);
  EXPECT_EQ(refused.code, static_cast<std::uint16_t>(ErrorCode::kTooLarge));
  EXPECT_NE(refused.text.find("troupe token revoke"), std::string::npos) << refused.text;
  EXPECT_EQ(core_->state().tokens.size(), kTokensMax);
  Advance(26h);
  Make(3600);
  EXPECT_EQ(core_->state().tokens.size(), 1u);
}

}  // namespace
}  // namespace troupe::head
