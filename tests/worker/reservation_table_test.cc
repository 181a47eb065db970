// Method: single steps by hand, then random reserve, release, attach and detach against the
// invariants after every step.
#include "worker/core/reservation_table.h"

#include <gtest/gtest.h>

#include "runtime/base/random.h"

namespace troupe::worker {
namespace {

wire::Bundle MakeBundle(std::uint32_t index, std::uint64_t cpu, std::uint64_t gpu) {
  wire::Bundle bundle;
  bundle.index = index;
  bundle.resources = AmountsToWire({{kCpu, cpu}});
  if (gpu > 0) bundle.resources.push_back(AmountsToWire({{kGpu, gpu}})[0]);
  return bundle;
}
wire::Reserve MakeReserve(std::uint64_t group, std::uint64_t attempt, std::uint64_t cpu,
                          std::uint64_t gpu = 0, std::uint64_t parent = 0) {
  wire::Reserve reserve;
  reserve.group = GroupId(0, group);
  reserve.attempt = attempt;
  if (parent != 0) reserve.parent = GroupId(0, parent);
  reserve.bundles = {MakeBundle(0, cpu, gpu)};
  return reserve;
}
ReservationKey Key(std::uint64_t group, std::uint64_t attempt) {
  return {GroupId(0, group), attempt};
}
ReservationTable Node() {
  return ReservationTable({{kCpu, 4 * kWhole}, {kGpu, 2 * kWhole}}, {0, 1});
}

TEST(ReservationTable, P1_RefusesWhatDoesNotFitAndSaysWhy) {
  ReservationTable table = Node();
  EXPECT_TRUE(table.Reserve(MakeReserve(1, 1, 3 * kWhole)).granted);
  const ReserveAnswer refused = table.Reserve(MakeReserve(2, 1, 2 * kWhole));
  EXPECT_FALSE(refused.granted);
  EXPECT_EQ(refused.reason, "bundle 0: needs 2 CPU, free: 1");
  EXPECT_TRUE(table.Conserves());
}

TEST(ReservationTable, WhatIsLentIsFreeUntilItIsWantedBackAndMadeGoodByWhoHadIt) {
  ReservationTable table = Node();
  ASSERT_TRUE(table.Reserve(MakeReserve(1, 1, 4 * kWhole)).granted);
  EXPECT_TRUE(table.Lend(Key(1, 1), 9 * kWhole)) << "no more than it has";
  EXPECT_EQ(AmountOf(table.Free(), kCpu), 4 * kWhole);
  ASSERT_TRUE(table.Reserve(MakeReserve(2, 1, 3 * kWhole)).granted);
  EXPECT_TRUE(table.Conserves());
  EXPECT_TRUE(table.Lend(Key(1, 1), 0));
  EXPECT_EQ(AmountOf(table.Free(), kCpu), 0u);
  EXPECT_FALSE(table.Reserve(MakeReserve(3, 1, kWhole)).granted);
  EXPECT_TRUE(table.Conserves());
  table.Release(Key(2, 1));
  EXPECT_EQ(AmountOf(table.Free(), kCpu), 0u) << "it is in use by who had lent it";
  EXPECT_TRUE(table.Conserves());
  EXPECT_TRUE(table.Lend(Key(1, 1), kWhole));
  table.Release(Key(1, 1));
  EXPECT_EQ(AmountOf(table.Free(), kCpu), 4 * kWhole);
  EXPECT_TRUE(table.Conserves());
}

TEST(ReservationTable, P1_PartlyTakenBundlesAreGivenBack) {
  ReservationTable table = Node();
  wire::Reserve reserve = MakeReserve(1, 1, 3 * kWhole);
  reserve.bundles.push_back(MakeBundle(1, 3 * kWhole, 0));
  EXPECT_FALSE(table.Reserve(reserve).granted);
  EXPECT_EQ(table.Free(), (Amounts{{kCpu, 4 * kWhole}, {kGpu, 2 * kWhole}}));
}

TEST(ReservationTable, GpusOfABundleAreOnOneNumaNodeIfTheyCanBe) {
  std::vector<wire::Device> devices(4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    devices[i].index = i;
    devices[i].numa_node = i < 2 ? 0 : 1;
  }
  ReservationTable table({{kCpu, 4 * kWhole}, {kGpu, 4 * kWhole}}, {0, 1, 2, 3}, devices);
  EXPECT_EQ(table.Reserve(MakeReserve(1, 1, kWhole, kWhole)).grants[0].gpu_ids,
            (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(table.Reserve(MakeReserve(2, 1, kWhole, 2 * kWhole)).grants[0].gpu_ids,
            (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(table.Reserve(MakeReserve(3, 1, kWhole, kWhole)).grants[0].gpu_ids,
            (std::vector<std::uint32_t>{1}));
}

TEST(ReservationTable, RepeatedReserveIsAnsweredAlike) {
  ReservationTable table = Node();
  const ReserveAnswer first = table.Reserve(MakeReserve(1, 1, kWhole, kWhole));
  const ReserveAnswer again = table.Reserve(MakeReserve(1, 1, kWhole, kWhole));
  EXPECT_TRUE(again.granted);
  EXPECT_EQ(first.grants, again.grants);
  EXPECT_TRUE(table.Conserves());
}

TEST(ReservationTable, TombstoneRefusesAReleasedAttemptAndALowerOne) {
  ReservationTable table = Node();
  ASSERT_TRUE(table.Reserve(MakeReserve(1, 2, kWhole)).granted);
  table.Release(Key(1, 2));
  EXPECT_FALSE(table.Reserve(MakeReserve(1, 2, kWhole)).granted);
  EXPECT_FALSE(table.Reserve(MakeReserve(1, 1, kWhole)).granted);
  EXPECT_TRUE(table.Reserve(MakeReserve(1, 3, kWhole)).granted);
}

TEST(ReservationTable, ReleaseOfAnUnknownAttemptIsATombstone) {
  ReservationTable table = Node();
  table.Release(Key(9, 4));
  EXPECT_FALSE(table.Reserve(MakeReserve(9, 4, kWhole)).granted);
}

TEST(ReservationTable, DrainingHoldsUntilItsProcessesAreGone) {
  ReservationTable table = Node();
  ASSERT_TRUE(table.Reserve(MakeReserve(1, 1, 4 * kWhole)).granted);
  const ProcessId process(1, 1);
  ASSERT_TRUE(table.Attach(Key(1, 1), process));
  EXPECT_EQ(table.Release(Key(1, 1)), std::vector<ReservationKey>{Key(1, 1)});
  EXPECT_FALSE(table.Reserve(MakeReserve(2, 1, kWhole)).granted);
  EXPECT_FALSE(table.Attach(Key(1, 1), ProcessId(1, 2))) << "nothing starts in a draining lease";
  EXPECT_TRUE(table.Holdings()[0].draining);
  table.Detach(process);
  EXPECT_EQ(table.TakeFreed(), std::vector<ReservationKey>{Key(1, 1)});
  EXPECT_TRUE(table.Reserve(MakeReserve(2, 2, 4 * kWhole)).granted);
}

TEST(ReservationTable, AHigherAttemptReplacesALowerOne) {
  ReservationTable table = Node();
  ASSERT_TRUE(table.Reserve(MakeReserve(1, 1, 4 * kWhole)).granted);
  EXPECT_TRUE(table.Reserve(MakeReserve(1, 2, 4 * kWhole)).granted);
  EXPECT_EQ(table.TakeFreed(), std::vector<ReservationKey>{Key(1, 1)});
}

TEST(ReservationTable, ChildLeasesComeOutOfTheParentAndEndWithIt) {
  ReservationTable table = Node();
  ASSERT_TRUE(table.Reserve(MakeReserve(1, 1, 2 * kWhole, kWhole)).granted);
  const ReserveAnswer child = table.Reserve(MakeReserve(2, 1, kWhole, kWhole, 1));
  ASSERT_TRUE(child.granted);
  EXPECT_EQ(child.grants[0].gpu_ids, std::vector<std::uint32_t>{0});
  EXPECT_EQ(AmountOf(table.Free(), kCpu), 2 * kWhole) << "the node's free amount is untouched";
  EXPECT_FALSE(table.Reserve(MakeReserve(3, 1, 2 * kWhole, 0, 1)).granted);
  ASSERT_TRUE(table.Attach(Key(2, 1), ProcessId(5, 5)));
  EXPECT_EQ(table.Release(Key(1, 1)).size(), 2u);
  EXPECT_TRUE(table.TakeFreed().empty()) << "the child still drains";
  table.Detach(ProcessId(5, 5));
  EXPECT_EQ(table.TakeFreed(), (std::vector<ReservationKey>{Key(2, 1), Key(1, 1)}));
  EXPECT_TRUE(table.Holdings().empty());
}

TEST(ReservationTable, P7_GpusAreDisjointAndFractionsShareOneDevice) {
  ReservationTable table = Node();
  const auto half = table.Reserve(MakeReserve(1, 1, 0, kWhole / 2));
  const auto whole = table.Reserve(MakeReserve(2, 1, 0, kWhole));
  const auto other_half = table.Reserve(MakeReserve(3, 1, 0, kWhole / 2));
  EXPECT_EQ(half.grants[0].gpu_ids, other_half.grants[0].gpu_ids);
  EXPECT_NE(half.grants[0].gpu_ids, whole.grants[0].gpu_ids);
  EXPECT_FALSE(table.Reserve(MakeReserve(4, 1, 0, 1000)).granted);
  EXPECT_EQ(table.Reserve(MakeReserve(5, 1, 0, 3 * kWhole / 2)).reason,
            "bundle 0: 1.5 GPU: more than one must be a whole number");
}

TEST(ReservationTable, P1_P7_HoldUnderRandomSteps) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Prng random(seed);
    ReservationTable table = Node();
    std::vector<ProcessId> processes;
    for (int step = 0; step < 150; ++step) {
      const std::uint64_t group = 1 + random.Below(6);
      const std::uint64_t attempt = 1 + random.Below(5);
      switch (random.Below(4)) {
        case 0:
          table.Reserve(MakeReserve(group, attempt, random.Below(4) * kWhole / 2,
                                    random.Below(4) * kWhole / 2,
                                    random.Chance(400) ? 1 + random.Below(6) : 0));
          break;
        case 1:
          table.Release(Key(group, attempt));
          break;
        case 2:
          processes.push_back(ProcessId::Random(random));
          table.Attach(Key(group, attempt), processes.back());
          break;
        default:
          if (!processes.empty()) table.Detach(processes[random.Below(processes.size())]);
      }
      ASSERT_TRUE(table.Conserves()) << "seed " << seed << " step " << step;
    }
    for (const ProcessId process : processes) table.Detach(process);
    for (std::uint64_t group = 1; group <= 6; ++group) table.Release(Key(group, 99));
    ASSERT_TRUE(table.Holdings().empty()) << "seed " << seed;
    ASSERT_EQ(table.Free(), (Amounts{{kCpu, 4 * kWhole}, {kGpu, 2 * kWhole}})) << "seed " << seed;
  }
}

}  // namespace
}  // namespace troupe::worker
