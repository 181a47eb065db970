// Method: a node of two NUMA halves by hand; random histories of taking and giving back.
#include "placement/gpu_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "runtime/base/random.h"

namespace troupe::placement {
namespace {

using Ids = std::vector<std::uint32_t>;

// 0-3 on NUMA node 0, 4-7 on 1; two switches each.
std::vector<GpuPlace> EightGpus() {
  std::vector<GpuPlace> gpus;
  for (std::uint32_t i = 0; i < 8; ++i) {
    GpuPlace gpu;
    gpu.id = gpu.rail = i;
    gpu.numa_node = static_cast<std::int32_t>(i / 4);
    gpu.pcie_switch = static_cast<std::int32_t>(i / 2);
    gpus.push_back(gpu);
  }
  return gpus;
}

TEST(GpuChoice, TakesWhatIsLeftOfABrokenPairBeforeAWholeOne) {
  EXPECT_EQ(ChooseGpus(EightGpus(), {0, 1, 3, 4, 5, 6, 7}, 1), Ids{3});
  EXPECT_EQ(ChooseGpus(EightGpus(), {0, 1, 3, 4, 5, 6, 7}, 2), (Ids{0, 1}));
  EXPECT_EQ(ChooseGpus(EightGpus(), {0, 1, 3, 4, 5, 6, 7}, 4), (Ids{4, 5, 6, 7}));
}

TEST(GpuChoice, APairIsNotSplitOverNumaNodesWhileAnAlignedOneIsFree) {
  EXPECT_EQ(ChooseGpus(EightGpus(), {3, 4, 6, 7}, 2), (Ids{6, 7}));
  EXPECT_EQ(ChooseGpus(EightGpus(), {3, 4}, 2), (Ids{3, 4})) << "none is: then any";
}

TEST(GpuChoice, HalvesByPositionWhereNothingIsKnown) {
  std::vector<GpuPlace> gpus(8);
  for (std::uint32_t i = 0; i < 8; ++i) gpus[i].id = i;
  EXPECT_EQ(ChooseGpus(gpus, {1, 2, 3, 4, 5, 6, 7}, 2), (Ids{2, 3}));
  EXPECT_EQ(ChooseGpus(gpus, {1, 2, 3, 4, 5, 6, 7}, 4), (Ids{4, 5, 6, 7}));
}

TEST(GpuChoice, InOrderOfRails) {
  std::vector<GpuPlace> gpus = EightGpus();
  for (GpuPlace& gpu : gpus) gpu.rail = 7 - gpu.id;
  EXPECT_EQ(ChooseGpus(gpus, {0, 1, 2, 3, 4, 5, 6, 7}, 8), (Ids{7, 6, 5, 4, 3, 2, 1, 0}));
}

TEST(GpuChoice, P7_DisjointAndInOneHalfWheneverOneHoldsAll) {
  const std::vector<GpuPlace> gpus = EightGpus();
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    Prng random(seed);
    std::set<std::uint32_t> free;
    for (const GpuPlace& gpu : gpus) free.insert(gpu.id);
    std::vector<Ids> held;
    for (int step = 0; step < 30; ++step) {
      if (!held.empty() && random.Chance(400)) {
        std::swap(held[random.Below(held.size())], held.back());
        for (const std::uint32_t id : held.back())
          ASSERT_TRUE(free.insert(id).second) << "seed " << seed;
        held.pop_back();
        continue;
      }
      const std::size_t count = 1 + random.Below(4);
      const auto chosen = ChooseGpus(gpus, free, count);
      ASSERT_EQ(chosen.has_value(), count <= free.size()) << "seed " << seed;
      if (!chosen) continue;
      ASSERT_EQ(chosen->size(), count) << "seed " << seed;
      std::map<std::uint32_t, std::size_t> free_in_half;
      for (const std::uint32_t id : free) ++free_in_half[id / 4];
      const bool fits_half = free_in_half[0] >= count || free_in_half[1] >= count;
      const bool in_half = chosen->front() / 4 == chosen->back() / 4;
      ASSERT_TRUE(!fits_half || in_half) << "seed " << seed;
      for (const std::uint32_t id : *chosen) ASSERT_EQ(free.erase(id), 1u) << "seed " << seed;
      held.push_back(*chosen);
    }
  }
}

}  // namespace
}  // namespace troupe::placement
