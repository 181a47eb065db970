// Method: the maker's slots and the keeper, one transition a test; the maker's death around a reply
// is played with a table as the owner.
#include <gtest/gtest.h>

#include "runtime/store/core/references.h"
#include "runtime/store/core/slots.h"
#include "tests/sim/objects/keeper.h"

namespace troupe::store {
namespace {

const ProcessId kLender(1, 1);
const ProcessId kMaker(2, 1);
const ProcessId kOther(3, 1);
const Instant kNow{std::chrono::seconds(5)};

Taken LentTo(Slots& slots, const ProcessId& owner, std::uint64_t bytes = 4u << 20) {
  auto taken = slots.Take(bytes);
  if (!taken) {
    slots.Add(*ShapeFor(bytes));
    taken = slots.Take(bytes);
  }
  slots.Lend(taken->at, owner);
  return *taken;
}

TEST(Slots, O1_OnlyACleanFreeOfThisGenerationMakesASlotFree) {
  Slots slots;
  const Taken first = LentTo(slots, kLender);
  EXPECT_EQ(first.generation, 1u);
  slots.Free(kOther, first.at, 1, true);
  slots.Free(kLender, first.at, 2, true);
  EXPECT_EQ(slots.StateOf(first.at), SlotState::kLent);
  slots.Free(kLender, first.at, 1, true);
  EXPECT_EQ(slots.StateOf(first.at), SlotState::kFree);
  const Taken second = LentTo(slots, kLender);
  EXPECT_EQ(second.generation, 2u);
  slots.Free(kLender, second.at, 1, true);  // the late repeat of the first
  EXPECT_EQ(slots.StateOf(second.at), SlotState::kLent);
}

TEST(Slots, O1_AnUncleanFreeAndAnOwnersDeathAbandon) {
  Slots slots;
  const Taken forked = LentTo(slots, kLender);
  slots.Free(kLender, forked.at, 1, false);
  const Taken orphan = LentTo(slots, kOther);
  slots.OwnerLost(kOther, /*dead=*/true);
  const auto closed = slots.TakeClosed();
  ASSERT_EQ(closed.size(), 2u);
  EXPECT_TRUE(closed[0].forget && closed[1].forget);
  EXPECT_EQ(slots.segments(), 0u);
  EXPECT_EQ(slots.StateOf(orphan.at), SlotState::kAbandoned);
}

TEST(Slots, O7_WhatAStruckOwnerHasIsLeftToTheKeeper) {
  Slots slots;
  const Taken left = LentTo(slots, kLender);
  slots.OwnerLost(kLender, /*dead=*/false);
  slots.Free(kLender, left.at, 1, true);
  const auto closed = slots.TakeClosed();
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_FALSE(closed[0].forget);
}

TEST(Slots, ASharedSegmentIsClosedWhenItsLastSlotEnds) {
  Slots slots;
  const Taken ruined = LentTo(slots, kLender, 200'000);
  const Taken lent = LentTo(slots, kOther, 200'000);
  EXPECT_EQ(ruined.at.segment, lent.at.segment);
  slots.Free(kLender, ruined.at, 1, false);
  EXPECT_TRUE(slots.TakeClosed().empty());
  slots.Free(kOther, lent.at, 1, true);
  EXPECT_EQ(slots.TakeClosed().size(), 1u);
  EXPECT_FALSE(slots.Take(200'000).has_value()) << "no slot of a closed segment is given out";
}

TEST(Slots, AValueGetsASlotAtMostAQuarterTooLarge) {
  for (const std::uint64_t bytes :
       {std::uint64_t{1}, std::uint64_t{100'000}, std::uint64_t{1'000'000}, std::uint64_t{20} << 20,
        std::uint64_t{800'000'000}}) {
    const SegmentShape shape = *ShapeFor(bytes);
    EXPECT_GE(shape.slot_bytes, bytes + kSlotHeaderBytes);
    EXPECT_EQ(shape.bytes() % kHugePage, 0u);
    EXPECT_LE(shape.slots * shape.slot_bytes, shape.bytes());
    if (bytes >= std::uint64_t{16} << 20 || (bytes >= 100'000 && bytes <= 900'000)) {
      EXPECT_LE(static_cast<double>(shape.slot_bytes),
                1.125 * static_cast<double>(bytes) + 4096.0 + 64.0)
          << bytes;
    }
  }
  EXPECT_FALSE(ShapeFor(UINT64_MAX).has_value());
  Slots slots;
  slots.Add(*ShapeFor(100u << 20));
  EXPECT_FALSE(slots.Take(20u << 20).has_value());
  EXPECT_TRUE(slots.Take(90u << 20).has_value());
}

TEST(Slots, ASegmentInUseIsNotTrimmed) {
  Slots slots;
  const Taken taken = LentTo(slots, kLender);
  EXPECT_FALSE(slots.Trim(taken.at.segment));
  slots.Free(kLender, taken.at, 1, true);
  EXPECT_TRUE(slots.Trim(taken.at.segment));
  EXPECT_EQ(slots.TakeClosed().size(), 1u);
}

class Transfer : public ::testing::Test {
 protected:
  Transfer() : table(kLender) {
    result = table.Expect(kNow);
    location.node = NodeId(9, 1);
    location.slot = {kMaker, 1, 0};
    location.generation = 1;
    keeper.Assign(location.slot, 1, result);
  }
  std::vector<AskAdopt> Asked() {
    std::vector<AskAdopt> asked;
    for (const KeeperAction& action : keeper.TakeActions()) {
      if (const auto* ask = std::get_if<AskAdopt>(&action)) asked.push_back(*ask);
    }
    return asked;
  }
  void Reply() { table.Fulfil(result, Answer{Value::At(location), {}}, kMaker, kNow); }

  References table;
  Keeper keeper;
  ObjectId result;
  Location location;
};

TEST_F(Transfer, O7_WaitKillGet) {
  Reply();
  table.Dead(kMaker, "killed", kNow);
  keeper.MakerDied(kMaker);
  const auto asked = Asked();
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_TRUE(asked[0].maker_dead);
  const bool keep = table.Adopt(asked[0].object, asked[0].slot, asked[0].generation, kNow);
  EXPECT_TRUE(keep);
  keeper.Answer(asked[0].slot, asked[0].generation, keep);
  EXPECT_TRUE(keeper.Has(location.slot));
  table.Expire(
      kNow + std::chrono::seconds(2));  // the maker is buried: the owner still knows where to free
  static_cast<void>(table.TakeEffects());
  table.DropHandle(result, kNow + std::chrono::seconds(3));
  bool freed = false;
  for (const Effect& effect : table.TakeEffects()) {
    const auto* free = std::get_if<FreeAtKeeper>(&effect);
    if (free == nullptr) continue;
    freed = true;
    keeper.Free(free->slot, free->generation);
  }
  EXPECT_TRUE(freed);
  EXPECT_TRUE(keeper.Empty());
}

TEST_F(Transfer, O2_WhatNobodyAdoptsIsFreed) {
  table.Fail(result, "ActorDied", kNow);
  keeper.MakerDied(kMaker);
  for (const AskAdopt& ask : Asked()) {
    keeper.Answer(ask.slot, ask.generation,
                  table.Adopt(ask.object, ask.slot, ask.generation, kNow));
  }
  EXPECT_TRUE(keeper.Empty());
}

TEST_F(Transfer, O2_TheOwnersDeathEndsWhatADeadMakerLeft) {
  keeper.OwnerDied(kLender);
  EXPECT_FALSE(keeper.Empty()) << "its maker lives, and takes it back itself";
  keeper.MakerDied(kMaker);
  keeper.OwnerDied(kLender);
  EXPECT_TRUE(keeper.Empty());
}

TEST_F(Transfer, O5_TheSameReplyAgainFreesNothing) {
  table.Connected(kMaker, 1, 0, kNow);
  Reply();
  Reply();
  table.Fulfil(result, Answer{Value::Inline("second"), {}}, kMaker, kNow);
  EXPECT_EQ(table.Look(result).value.kind, ValueKind::kSegments);
  for (const Effect& effect : table.TakeEffects())
    EXPECT_FALSE(std::holds_alternative<SendFrame>(effect));
}

TEST_F(Transfer, O2_AReplyNobodyWaitsForIsFreedAtItsMaker) {
  table.Connected(kMaker, 1, 0, kNow);
  table.DropHandle(result, kNow);
  Reply();
  std::size_t freed = 0;
  for (const Effect& effect : table.TakeEffects()) {
    const auto* send = std::get_if<SendFrame>(&effect);
    if (send != nullptr && std::holds_alternative<Free>(send->frame.body)) ++freed;
  }
  EXPECT_EQ(freed, 1u);
}

TEST_F(Transfer, O2_AWithdrawnReplyIsFreedOnlyIfItNeverCame) {
  table.Connected(kMaker, 1, 0, kNow);
  Reply();
  table.Frame(kMaker, 1, 0, ControlFrame{1, Withdraw{result, location}}, kNow);
  for (const Effect& effect : table.TakeEffects())
    EXPECT_FALSE(std::holds_alternative<SendFrame>(effect));
  Location other = location;
  other.generation = 2;
  table.Frame(kMaker, 1, 0, ControlFrame{2, Withdraw{result, other}}, kNow);
  bool freed = false;
  for (const Effect& effect : table.TakeEffects()) {
    const auto* send = std::get_if<SendFrame>(&effect);
    freed = freed || (send != nullptr && std::get<Free>(send->frame.body).generation == 2);
  }
  EXPECT_TRUE(freed);
}

TEST_F(Transfer, O4_TheLastLocationsNodeLost) {
  Reply();
  table.NodeDied(NodeId(9, 2), "node-b is lost", kNow);
  EXPECT_EQ(table.Look(result).known, Known::kValue);
  table.NodeDied(NodeId(9, 1), "node-a is lost", kNow);
  EXPECT_EQ(table.Look(result).known, Known::kLost);
  EXPECT_EQ(table.Look(result).cause, "node-a is lost");
}

TEST(Keeper, O1_ALateFreeOrAnswerOfAnotherGenerationChangesNothing) {
  Keeper keeper;
  const SlotId slot{kMaker, 1, 0};
  keeper.Assign(slot, 1, {kLender, 1});
  keeper.Assign(slot, 2, {kLender, 2});
  keeper.MakerDied(kMaker);
  keeper.Answer(slot, 1, false);
  keeper.Free(slot, 1);
  EXPECT_TRUE(keeper.Has(slot));
  keeper.Answer(slot, 2, false);
  EXPECT_TRUE(keeper.Empty());
}

}  // namespace
}  // namespace troupe::store
