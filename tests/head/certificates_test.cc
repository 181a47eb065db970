// Method: HeadCore with nodes made of words; what it has signed is looked at, nothing is.
//   CF-1 a certificate names only what the head has put on the node whose worker asks.
//   CF-2 a client gets one for itself; an observer, a worker and a stranger none.
#include "runtime/base/rank_actor.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

class Certificates : public HeadFixture {
 protected:
  wire::Relay RankOf(LaunchId launch, std::uint32_t rank, std::uint64_t epoch = 1) {
    wire::Relay relay;
    relay.process = ProcessId(8, 100 + rank);
    relay.launch = launch;
    relay.epoch = epoch;
    relay.rank = static_cast<std::int32_t>(rank);
    relay.actor = RankActorId(launch, epoch, rank);
    return relay;
  }
  /// The certificate decided for a relayed request, if any.
  std::optional<Certify> Ask(const FakeNode& node, const wire::Relay& relay) {
    MessageFrom input;
    input.session = node.session;
    input.relay = relay;
    return Ask(input);
  }
  std::optional<Certify> Ask(SessionId session) {
    MessageFrom input;
    input.session = session;
    return Ask(input);
  }
  std::optional<Certify> Ask(MessageFrom input) {
    input.message.id = 77;
    input.message.body = wire::CertifyProcess{"a request"};
    Effects effects = core_->Handle(input, now_, WallUs());
    std::optional<Certify> decided;
    if (!effects.certificates.empty()) decided = effects.certificates.front();
    EXPECT_LE(effects.certificates.size(), 1u);
    Take(std::move(effects));
    return decided;
  }
};

TEST_F(Certificates, CF1_ARankIsCertifiedThroughItsOwnNodeAndEpochOnly) {
  const FakeNode a = Join(1, 2);
  const FakeNode b = Join(2, 2);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  const LaunchId launch = Submit(client, 4);
  for (int i = 0; i < 4; ++i) {
    Serve(a);
    Serve(b);
  }
  ASSERT_EQ(LaunchOf(launch).ranks.size(), 4u);
  const std::uint32_t on_b = LaunchOf(launch).ranks[0].node == b.id ? 0 : 3;
  ASSERT_EQ(LaunchOf(launch).ranks[on_b].node, b.id);

  const auto given = Ask(b, RankOf(launch, on_b));
  ASSERT_TRUE(given);
  EXPECT_EQ(given->subject, RankActorId(launch, 1, on_b));
  EXPECT_EQ(given->role, wire::Role::kProcess);
  EXPECT_EQ(given->request, "a request");
  EXPECT_EQ(given->reply_to, 77u);
  EXPECT_EQ(given->to.process, RankOf(launch, on_b).process);

  EXPECT_FALSE(Ask(a, RankOf(launch, on_b)));  // another node's rank
  EXPECT_EQ(LastError(a.session), ErrorCode::kInvalid);
  EXPECT_FALSE(Ask(b, RankOf(launch, on_b, 2)));  // another epoch
  EXPECT_FALSE(Ask(b, RankOf(launch, 17)));       // no such rank
  wire::Relay posing = RankOf(launch, on_b);
  // An actor of its own rank, under another's name
  posing.actor = RankActorId(launch, 1, on_b == 0 ? 3 : 0);
  EXPECT_FALSE(Ask(b, posing));
  wire::Relay nobody;
  nobody.process = ProcessId(8, 1);
  EXPECT_FALSE(Ask(b, nobody));  // a store, a process of nothing
}

TEST_F(Certificates, CF1_AnActorIsCertifiedThroughItsOwnNodeOnlyAndNotOnceDead) {
  const FakeNode a = Join(1, 4);
  const FakeNode b = Join(2, 4);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  wire::CreateActor create;
  create.spec.actor = ActorId(4, 4);
  create.spec.class_name = "Counter";
  create.spec.resources = Amounts(1);
  create.spec.node = b.id;
  Say(client, create, 5);
  Serve(a);
  Serve(b);
  ASSERT_EQ(core_->state().actors.at(ActorId(4, 4)).place.node, b.id);
  wire::Relay relay;
  relay.process = ProcessId(8, 1);
  relay.actor = ActorId(4, 4);
  ASSERT_TRUE(Ask(b, relay));
  EXPECT_EQ(Ask(b, relay)->subject, ActorId(4, 4));
  EXPECT_FALSE(Ask(a, relay));
  wire::Relay unknown = relay;
  unknown.actor = ActorId(4, 5);
  EXPECT_FALSE(Ask(b, unknown));
  wire::KillActor kill;
  kill.actor = ActorId(4, 4);
  Say(client, kill, 6);
  wire::ActorEnded ended;
  ended.actor = ActorId(4, 4);
  ended.incarnation = core_->state().actors.at(ActorId(4, 4)).incarnation;
  Say(b.session, ended);
  EXPECT_FALSE(Ask(b, relay));
}

TEST_F(Certificates, CF2_AClientForItselfAndNobodyElse) {
  const FakeNode node = Join(1, 4);
  const auto given = Ask(Open(wire::Role::kClient, Id128{9, 1}));
  ASSERT_TRUE(given);
  EXPECT_EQ(given->subject, (Id128{9, 1}));
  EXPECT_EQ(given->role, wire::Role::kClient);
  EXPECT_FALSE(Ask(Open(wire::Role::kObserver, Id128{9, 2})));
  EXPECT_FALSE(Ask(node.session));
  // A client that poses as a worker's relay has no node.
  MessageFrom posing;
  posing.session = Open(wire::Role::kClient, Id128{9, 3});
  posing.relay = RankOf(LaunchId(1, 1), 0);
  EXPECT_FALSE(Ask(posing));
}

}  // namespace
}  // namespace troupe::head
