// Method: Waits by itself, and a HeadCore with an observer that asks for more than its share. WA-1,
// WA-2 of head/core/machine/waits.h; the other things that grow with what peers send, each with its
// limit.
#include "head/core/machine/waits.h"

#include "head/core/nodes/roster.h"
#include "head/core/placed/names.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

using namespace std::chrono_literals;

TEST(Waits, WA1_TakenByNumberByLaunchAndWithTheirPeer) {
  Waits waits;
  const Route a{SessionId(1, 1), ProcessId()}, b{SessionId(1, 1), ProcessId(2, 2)},
      c{SessionId(1, 2), ProcessId()};
  const auto first = waits.Add({a, 1, LaunchId(5, 1)});
  waits.Add({b, 2, LaunchId(5, 1)});
  waits.Add({c, 3, LaunchId(5, 2)});
  ASSERT_TRUE(waits.Take(*first));
  EXPECT_FALSE(waits.Take(*first));
  EXPECT_EQ(waits.TakeOf(LaunchId(5, 1)).size(), 1u);
  waits.Add({a, 4, LaunchId(5, 3)});
  waits.Add({b, 5, LaunchId(5, 3)});
  waits.Drop(SessionId(1, 1), &b.process);
  EXPECT_EQ(waits.size(), 2u);
  waits.Drop(SessionId(1, 1), nullptr);
  EXPECT_EQ(waits.size(), 1u);
}

class Bounds : public HeadFixture {
 protected:
  wire::WaitMarker Wait(LaunchId launch, std::uint32_t timeout_ms = 0) {
    wire::WaitMarker wait;
    wait.launch = launch;
    wait.timeout_ms = timeout_ms;
    return wait;
  }
  SessionId client_ = Open(wire::Role::kClient, Id128(9, 9), true);
};

TEST_F(Bounds, WA2_OneMoreWaitThanItsShareIsRefusedWithTheLimitsName) {
  Join(1, 4);
  const LaunchId launch = Submit(client_, 1);
  const SessionId observer = Open(wire::Role::kObserver, Id128(4, 4));
  for (std::size_t i = 0; i <= Waits::kWaitsMax; ++i) Say(observer, Wait(launch), 10 + i);
  const auto refused = Last<wire::ErrorReply>(observer);
  EXPECT_EQ(refused.code, static_cast<std::uint16_t>(ErrorCode::kTooLarge));
  EXPECT_NE(refused.text.find("kWaitsMax"), std::string::npos) << refused.text;
  EXPECT_EQ(core_->state().waits.size(), Waits::kWaitsMax);
  Say(client_, Wait(launch), 5);
  EXPECT_EQ(core_->state().waits.size(), Waits::kWaitsMax + 1) << "of another";
  Feed(SessionClosed{observer});
  EXPECT_EQ(core_->state().waits.size(), 1u);
}

TEST_F(Bounds, DeadlinesOfWhatIsOverAreNotKept) {
  const FakeNode node = Join(1, 4);
  timeout_ms_ = 365ull * 24 * 3600 * 1000;
  std::size_t before = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const LaunchId launch = Submit(client_, 1);
    Say(client_, Wait(launch, 3'000'000'000u), 100 + i);
    Serve(node);
    Serve(node);
    Finish(node, launch, 0);
    Serve(node);
    if (i == 10) before = core_->state().timers.size();
  }
  EXPECT_EQ(Count<wire::MarkerReply>(client_), 50u);
  EXPECT_LE(core_->state().timers.size(), before);
}

TEST_F(Bounds, WA1_EachRunsOutByItself) {
  Join(1, 4);
  const LaunchId launch = Submit(client_, 1);
  Say(client_, Wait(launch, 1000), 21);
  Say(client_, Wait(launch, 3000), 22);
  Advance(2s);
  EXPECT_EQ(Last<wire::ErrorReply>(client_).code, static_cast<std::uint16_t>(ErrorCode::kTimeout));
  EXPECT_EQ(core_->state().waits.size(), 1u);
  Advance(2s);
  EXPECT_EQ(core_->state().waits.size(), 0u);
}

TEST_F(Bounds, ValuesTogetherHaveALimitAndWhatIsErasedMakesRoom) {
  const std::string large(kValueBytesMax, 'v');
  wire::KvPut put;
  for (std::size_t i = 0; i <= kAllValuesBytesMax / kValueBytesMax; ++i) {
    put.key = "k" + std::to_string(i);
    put.request = RequestId(3, i + 1);
    Say(client_, put, 100 + i, large);
  }
  const auto refused = Last<wire::ErrorReply>(client_);
  EXPECT_EQ(refused.code, static_cast<std::uint16_t>(ErrorCode::kTooLarge));
  EXPECT_NE(refused.text.find("kAllValuesBytesMax"), std::string::npos) << refused.text;
  wire::KvDelete gone;
  gone.key = "k0";
  gone.request = RequestId(3, 9999);
  Say(client_, gone, 7);
  const std::size_t before = core_->state().values.size();
  put.request = RequestId(3, 10000);
  Say(client_, put, 8, large.substr(1000));
  EXPECT_EQ(core_->state().values.size(), before + 1);
  Boot();
  std::size_t bytes = 0;
  for (const auto& [key, value] : core_->state().values) bytes += BytesOf(key, value.bytes);
  EXPECT_EQ(core_->state().values_bytes, bytes);
}

TEST_F(Bounds, NodesThatCameAndWentAreForgottenTheOldestFirst) {
  const std::size_t many = kDeadNodesMax + 3;
  for (std::size_t i = 0; i < many; ++i) {
    const NodeId id(7, 100 + i);
    const SessionId session = Open(wire::Role::kWorker, id);
    wire::RegisterNode node;
    node.node = id;
    node.name = "passing-" + std::to_string(i);
    Say(session, node, 1);
    wire::DrainNode leaves;
    Say(session, leaves);
    wire::Goodbye goodbye;
    Say(session, goodbye);
    Feed(SessionClosed{session});
    Advance(10s);
    ASSERT_LE(core_->state().dead_nodes.size(), kDeadNodesMax) << "before another one joins";
  }
  Join(1, 1);
  EXPECT_LE(core_->state().nodes.size(), kDeadNodesMax + 1);
  EXPECT_EQ(core_->state().nodes.count(NodeId(7, 100)), 0u);
  EXPECT_EQ(core_->state().nodes.count(NodeId(7, 100 + many - 1)), 1u);
  const std::size_t before = core_->state().nodes.size();
  Boot();
  EXPECT_EQ(core_->state().nodes.size(), before);
  EXPECT_LE(core_->state().dead_nodes.size(), kDeadNodesMax);
}

TEST_F(Bounds, KeysOfWhoNeverBecameANodeAreForgotten) {
  for (std::size_t i = 0; i <= kNodeKeysMax; ++i) {
    SessionOpened opened;
    opened.session = SessionId(300, i + 1);
    opened.role = wire::Role::kWorker;
    opened.subject = Id128(8, i + 1);
    opened.issued_key_hash = "hash";
    Feed(opened);
    Feed(SessionClosed{opened.session});
  }
  EXPECT_LE(core_->state().node_keys.size(), 1u);
}

TEST_F(Bounds, ANodeWhoseNameATerminalObeysIsRefused) {
  const std::vector<std::string> names = {"a\x1b[2Jb", "a b", "a\nb", std::string(300, 'n')};
  for (const std::string& name : names) {
    const SessionId session = Open(wire::Role::kWorker, NodeId(7, 50));
    wire::RegisterNode node;
    node.name = name;
    Say(session, node, 1);
    EXPECT_EQ(Count<wire::NodeRegistered>(session), 0u) << name;
    EXPECT_NE(Last<wire::ErrorReply>(session).text.find("is no name"), std::string::npos);
  }
}

}  // namespace
}  // namespace troupe::head
