// Method: HeadCore with clients made of words, one of which came by a token; nodes that answer.
// RT-1 to RT-5 of head/core/launched/revocation.h.
#include "head/core/launched/revocation.h"

#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

class Revocation : public HeadFixture {
 protected:
  Revocation() {
    Say(local_, MakeToken(wire::Role::kClient), 1);
    token_ = Last<wire::TokenCreated>(local_).id;
    client_ = OpenBy(token_, wire::Role::kClient, Id128(5, 5));
  }
  static wire::CreateToken MakeToken(wire::Role role) {
    wire::CreateToken create;
    create.role = role;
    return create;
  }
  SessionId OpenBy(const TokenId& token, wire::Role role, Id128 subject) {
    SessionOpened opened;
    opened.session = SessionId(200, ++sessions_);
    opened.role = role;
    opened.subject = subject;
    opened.token = token;
    Feed(opened);
    return opened.session;
  }
  wire::TokenRevoked Revoke() {
    wire::RevokeToken revoke;
    revoke.id = token_;
    Say(local_, revoke, 7);
    return Last<wire::TokenRevoked>(local_);
  }
  LaunchId SubmitDetached(SessionId client) {
    wire::SubmitLaunch submit;
    submit.spec.ranks = 1;
    submit.spec.per_rank = Amounts(1);
    submit.spec.attempts_max = 1;
    submit.spec.detached = true;
    submit.spec.name = "detached";
    submit.request = RequestId(11, ++requests_);
    Say(client, submit, 3000 + requests_);
    return Last<wire::LaunchAccepted>(client).launch;
  }
  ActorId Make(SessionId client, std::uint64_t number, bool detached = false) {
    wire::CreateActor create;
    create.spec.actor = ActorId(30, number);
    create.spec.class_name = "Thing";
    create.spec.detached = detached;
    if (detached) create.spec.name = "thing-" + std::to_string(number);
    Say(client, create, 2000 + number);
    return create.spec.actor;
  }
  bool Ends(LaunchId launch) const {
    return LaunchOf(launch).marker.has_value() || LaunchOf(launch).stop_asked.has_value();
  }
  bool Closed(SessionId session) const {
    return std::any_of(closed_.begin(), closed_.end(),
                       [&](const Close& each) { return each.session == session; });
  }

  SessionId local_ = Open(wire::Role::kClient, Id128(9, 9), true);
  TokenId token_;
  SessionId client_;
};

TEST_F(Revocation, RT2_TheSessionsOfItsClientsAndObserversEndAndNoOthers) {
  const SessionId observer = OpenBy(token_, wire::Role::kObserver, Id128(5, 6));
  const SessionId worker = OpenBy(token_, wire::Role::kWorker, Id128(5, 7));
  const SessionId another = OpenBy(TokenId(77, 1), wire::Role::kClient, Id128(5, 8));
  Revoke();
  EXPECT_TRUE(Closed(client_));
  EXPECT_TRUE(Closed(observer));
  EXPECT_FALSE(Closed(worker)) << "RT-5";
  EXPECT_FALSE(Closed(another));
  EXPECT_FALSE(Closed(local_));
}

TEST_F(Revocation, RT3_WhatItMadeEndsAndWhatIsDetachedIsListed) {
  const FakeNode node = Join(1, 8);
  const LaunchId launch = Submit(client_, 1);
  const LaunchId detached = SubmitDetached(client_);
  const LaunchId of_another = Submit(local_, 1);
  const ActorId actor = Make(client_, 1);
  const ActorId stays = Make(client_, 2, true);
  Serve(node);
  StartActors(node);
  wire::CreateGroup group;
  group.group = GroupId(40, 1);
  group.bundles.resize(1);
  group.bundles[0].resources = Amounts(1);
  Say(client_, group, 50);
  const wire::TokenRevoked said = Revoke();
  ASSERT_EQ(said.detached.size(), 1u);
  EXPECT_EQ(said.detached[0].launch, detached);
  Serve(node);
  EXPECT_TRUE(Ends(launch));
  EXPECT_EQ(LaunchOf(detached).phase, wire::LaunchState::kRunning);
  EXPECT_EQ(LaunchOf(of_another).phase, wire::LaunchState::kRunning);
  const State& state = core_->state();
  EXPECT_TRUE(state.actors.at(actor).doomed || !state.actors.at(actor).live());
  EXPECT_TRUE(state.actors.at(stays).live() && !state.actors.at(stays).doomed);
  const auto left = state.groups.find(GroupId(40, 1));
  EXPECT_TRUE(left == state.groups.end() || !left->second.live());
}

TEST_F(Revocation, RT3_ItsClientMayBeAwayMeanwhile) {
  const FakeNode node = Join(1, 8);
  const LaunchId launch = Submit(client_, 1);
  Serve(node);
  Feed(SessionClosed{client_});
  Revoke();
  EXPECT_TRUE(Ends(launch));
}

TEST_F(Revocation, RT4_WorkersAreToldNowAndWhenTheyRegister) {
  const FakeNode before = Join(1, 8);
  EXPECT_EQ(Count<wire::Revoked>(before.session), 0u);
  Revoke();
  ASSERT_EQ(Count<wire::Revoked>(before.session), 1u);
  EXPECT_EQ(Last<wire::Revoked>(before.session).tokens, std::vector<TokenId>{token_});
  const FakeNode after = Join(2, 8);
  EXPECT_EQ(Last<wire::Revoked>(after.session).tokens, std::vector<TokenId>{token_});
}

TEST_F(Revocation, RT4_NodesThatCannotBeToldAreNamedWithTheTimeUntilWhich) {
  const FakeNode node = Join(1, 8);
  Feed(SessionClosed{node.session});
  const wire::TokenRevoked said = Revoke();
  EXPECT_EQ(said.cut_off, std::vector<std::string>{"node-a"});
  EXPECT_EQ(said.until_us, WallUs() + 24ull * 3600 * 1'000'000);
}

TEST_F(Revocation, RT1_ARestartedHeadKnowsItAndTellsIt) {
  Revoke();
  Boot();
  EXPECT_TRUE(core_->state().tokens.at(token_).revoked);
  const FakeNode node = Join(1, 8);
  EXPECT_EQ(Last<wire::Revoked>(node.session).tokens, std::vector<TokenId>{token_});
}

TEST_F(Revocation, RT5_ATokenOfWorkersIsToldToNobody) {
  Say(local_, MakeToken(wire::Role::kWorker), 2);
  token_ = Last<wire::TokenCreated>(local_).id;
  const FakeNode node = Join(1, 8);
  Revoke();
  EXPECT_EQ(Count<wire::Revoked>(node.session), 0u);
  EXPECT_FALSE(Closed(node.session));
}

TEST_F(Revocation, WhoRevokesTheirOwnIsAnsweredFirst) {
  wire::RevokeToken revoke;
  revoke.id = token_;
  Say(client_, revoke, 8);
  EXPECT_EQ(Count<wire::TokenRevoked>(client_), 1u);
  EXPECT_TRUE(Closed(client_));
}

}  // namespace
}  // namespace troupe::head
