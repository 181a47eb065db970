// Method: HeadCore whose wall clock and monotonic clock are moved apart by hand. LT-1 to LT-4 of
// head/core/machine/lived_time.h.
#include "head/core/machine/lived_time.h"

#include "head/core/machine/snapshot.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kDayUs = 24ull * 3600 * 1'000'000;

class LivedTime : public HeadFixture {
 protected:
  void SetAhead(std::uint64_t days) { wall_at_zero_us_ += days * kDayUs; }
  TokenId MakeToken(std::uint64_t ttl_s) {
    wire::CreateToken create;
    create.ttl_s = ttl_s;
    Say(client_, create, 1);
    return Last<wire::TokenCreated>(client_).id;
  }
  bool Good(const TokenId& id) const {
    const auto found = core_->state().tokens.find(id);
    return found != core_->state().tokens.end() &&
           ExpiresUs(core_->state(), found->second, now_, WallUs()) > WallUs();
  }
  LaunchId Ended() {
    const FakeNode node = Join(1, 4);
    const LaunchId launch = Submit(client_, 1);
    Serve(node);
    Finish(node, launch, 0);
    EXPECT_TRUE(LaunchOf(launch).marker.has_value());
    Feed(SessionClosed{node.session});
    return launch;
  }
  bool Kept(const LaunchId& launch) const { return core_->state().launches.count(launch) > 0; }
  /// An hour of a head, with an input now and then.
  void Hours(int count) {
    for (int i = 0; i < count; ++i) {
      Advance(1h);
      Feed(Tick());
    }
  }
  bool Said(const std::string& words) const {
    for (const auto& note : core_->state().history.notes()) {
      if (note.message.find(words) != std::string::npos) return true;
    }
    return false;
  }

  SessionId client_ = Open(wire::Role::kClient, Id128(9, 9), true);
};

TEST_F(LivedTime, LT2_AClockAheadByDaysRetiresNothing) {
  const LaunchId launch = Ended();
  SetAhead(30);
  Boot();
  Hours(2);
  EXPECT_TRUE(Kept(launch));
  Hours(7 * 24);
  EXPECT_FALSE(Kept(launch));
}

TEST_F(LivedTime, LT1_AHeadThatRestartsEveryMinuteKeepsNothingForEver) {
  const LaunchId launch = Ended();
  for (int minute = 0; minute < 7 * 24 * 60 && Kept(launch); ++minute) {
    Advance(1min);
    Boot();
  }
  EXPECT_FALSE(Kept(launch));
}

TEST_F(LivedTime, LT1_ASnapshotHasIt) {
  Hours(5);
  durable_ = SnapshotOf(core_->state());
  const std::uint64_t lived_us = core_->state().lived_us;
  EXPECT_GE(lived_us, 4ull * 3600 * 1'000'000);
  Boot();
  EXPECT_GE(LivedUs(core_->state(), now_), lived_us);
}

TEST_F(LivedTime, LT3_ATokenIsGoodByTheLongerOfTwoClocks) {
  const TokenId id = MakeToken(24 * 3600);
  SetAhead(10);
  Boot();
  EXPECT_TRUE(Good(id));
  Hours(22);  // and one that may have passed before the start
  EXPECT_TRUE(Good(id));
  Hours(2);
  EXPECT_FALSE(Good(id));
}

TEST_F(LivedTime, LT3_AClockThatIsSetBackEndsNoneEither) {
  SetAhead(10);
  const TokenId id = MakeToken(24 * 3600);
  wall_at_zero_us_ -= 10 * kDayUs;
  Hours(30);
  EXPECT_TRUE(Good(id)) << "by the wall clock it has days";
}

TEST_F(LivedTime, LT3_ARevokedOneIsRememberedThoughTheClockRunsAhead) {
  const TokenId id = MakeToken(24 * 3600);
  wire::RevokeToken revoke;
  revoke.id = id;
  Say(client_, revoke, 5);
  SetAhead(10);
  Boot();
  client_ = Open(wire::Role::kClient, Id128(9, 9), true);
  MakeToken(60);  // forgets old ones
  EXPECT_FALSE(Good(id));
  ASSERT_EQ(core_->state().tokens.count(id), 1u);
  Hours(26);
  MakeToken(60);
  EXPECT_EQ(core_->state().tokens.count(id), 0u);
}

TEST_F(LivedTime, LT4_AJumpIsSaid) {
  Hours(2);
  EXPECT_FALSE(Said("the clock of its host was set"));
  SetAhead(3);
  Hours(1);
  EXPECT_TRUE(Said("72.0 hours more"));
}

}  // namespace
}  // namespace troupe::head
