// Method: events applied to a state, and snapshots of it; a client asks a head that has replayed
// them.
//   TS-1 the outcomes of the latest kTombstonesMax retired launches are remembered, the oldest go
//        first.
//   TS-2 a snapshot keeps which are the oldest.
#include "head/core/machine/snapshot.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

wire::Event Retired(std::uint64_t number) {
  wire::LaunchRetired retired;
  retired.launch = LaunchId(number * 0x9E3779B97F4A7C15u, number);  // in no order
  retired.outcome = wire::Outcome::kSucceeded;
  wire::Event event;
  event.body = retired;
  return event;
}
LaunchId Id(std::uint64_t number) {
  return wire::Get<wire::LaunchRetired>(Retired(number).body).launch;
}

TEST(Tombstones, TS1_TheLatestAreRemembered) {
  State state;
  for (std::uint64_t i = 0; i < kTombstonesMax + 10; ++i) Apply(state, Retired(i));
  Apply(state, Retired(kTombstonesMax + 9));  // again: nothing more goes
  EXPECT_EQ(state.tombstones.size(), kTombstonesMax);
  EXPECT_EQ(state.tombstone_order.size(), kTombstonesMax);
  EXPECT_EQ(state.tombstones.count(Id(9)), 0u);
  EXPECT_EQ(state.tombstones.count(Id(10)), 1u);
}

TEST(Tombstones, TS2_ASnapshotKeepsTheirOrder) {
  State state;
  for (std::uint64_t i = 0; i < kTombstonesMax; ++i) Apply(state, Retired(i));
  State copy;
  for (const wire::Event& event : SnapshotOf(state)) Apply(copy, event);
  EXPECT_EQ(copy.tombstone_order, state.tombstone_order);
  Apply(copy, Retired(kTombstonesMax));
  EXPECT_EQ(copy.tombstones.count(Id(0)), 0u);
  EXPECT_EQ(copy.tombstones.count(Id(1)), 1u);
}

using TombstonesOfAHead = HeadFixture;

TEST_F(TombstonesOfAHead, TS1_WhoWaitsForAForgottenOneIsToldThatItMayBe) {
  const auto wait = [&](std::uint64_t number) {
    const SessionId client = Open(wire::Role::kClient, Id128(9, number + 1), true);
    wire::WaitMarker message;
    message.launch = Id(number);
    Say(client, message, 1);
    return client;
  };
  durable_.push_back(Retired(0));
  Boot();
  EXPECT_EQ(Last<wire::MarkerReply>(wait(0)).marker.outcome, wire::Outcome::kSucceeded);
  EXPECT_EQ(Last<wire::ErrorReply>(wait(1)).text.find("no longer kept"), std::string::npos);
  for (std::uint64_t i = 1; i <= kTombstonesMax; ++i) durable_.push_back(Retired(i));
  Boot();
  const auto forgotten = Last<wire::ErrorReply>(wait(0));
  EXPECT_EQ(forgotten.code, static_cast<std::uint16_t>(ErrorCode::kUnknownOutcome));
  EXPECT_NE(forgotten.text.find("no longer kept"), std::string::npos) << forgotten.text;
}

}  // namespace
}  // namespace troupe::head
