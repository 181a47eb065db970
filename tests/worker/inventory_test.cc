// Method: models as NVIDIA's library tells them; devices are data.
#include "worker/devices/inventory.h"

#include <gtest/gtest.h>

namespace troupe::worker {
namespace {

std::vector<wire::Device> Models(std::initializer_list<const char*> models) {
  std::vector<wire::Device> devices;
  for (const char* model : models) devices.emplace_back().model = model;
  return devices;
}

TEST(GpuType, IsTheFirstWordThatIsNoMakerAndNoFamily) {
  const std::pair<const char*, const char*> known[] = {
      {"NVIDIA H100 80GB HBM3", "H100"},
      {"NVIDIA H200", "H200"},
      {"NVIDIA A100-SXM4-40GB", "A100"},
      {"Tesla V100-SXM2-16GB", "V100"},
      {"Tesla T4", "T4"},
      {"NVIDIA A10G", "A10G"},
      {"NVIDIA L40S", "L40S"},
      {"NVIDIA GH200 480GB", "GH200"},
      {"NVIDIA GeForce RTX 4090", "RTX4090"},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000"},
      {"NVIDIA RTX 6000 Ada Generation", "RTX6000"},
      {"NVIDIA RTX A6000", "RTXA6000"},
      {"NVIDIA TITAN V", "TITANV"},
      {"NVIDIA", ""},
      {"", ""}};
  for (const auto& [model, type] : known) EXPECT_EQ(GpuTypeOf(Models({model})), type) << model;
}

TEST(GpuType, IsThatOfAllOrOfNone) {
  EXPECT_EQ(GpuTypeOf({}), "");
  EXPECT_EQ(GpuTypeOf(Models({"NVIDIA H200", "NVIDIA H200"})), "H200");
  EXPECT_EQ(GpuTypeOf(Models({"NVIDIA H200", "NVIDIA A100-SXM4-40GB"})), "");
}

Inventory Machine(std::uint32_t count) {
  Inventory all = Offer({}, 0, count);
  for (std::uint32_t i = 0; i < count; ++i) {
    wire::Device device;
    device.index = i;
    device.uuid = "GPU-" + std::to_string(i) + "abc";
    all.devices.push_back(device);
  }
  return all;
}

TEST(Inventory, WhatANodeIsToldToOfferIsOfItsOwnDevices) {
  const Inventory two = Offer(Narrow(Machine(4), "3,1,GPU-0"), 4, 2);
  ASSERT_EQ(two.devices.size(), 2u);
  EXPECT_EQ(two.devices[0].uuid, "GPU-3abc");
  EXPECT_EQ(two.gpu_ids, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(two.tokens, (std::map<std::uint32_t, std::string>{{0, "3"}, {1, "1"}}))
      << "not the numbers of others' devices";
}

TEST(Inventory, WhatIsOfferedBeyondItsDevicesNamesNoDevice) {
  const Inventory four = Offer(Narrow(Machine(2), "1"), 2, 4);
  EXPECT_EQ(four.devices.size(), 1u);
  EXPECT_EQ(four.tokens,
            (std::map<std::uint32_t, std::string>{{0, "1"}, {1, "2"}, {2, "3"}, {3, "4"}}));
  const Inventory none = Offer({}, 0, 2);
  EXPECT_EQ(none.tokens, (std::map<std::uint32_t, std::string>{{0, "0"}, {1, "1"}}));
}

TEST(Inventory, AMaskNarrowsAndOrders) {
  const Inventory all = Machine(3);
  const Inventory narrowed = Narrow(all, "2,GPU-0,7,1");
  ASSERT_EQ(narrowed.devices.size(), 2u) << "what follows an entry that names nothing is not seen";
  EXPECT_EQ(narrowed.devices[0].uuid, "GPU-2abc");
  EXPECT_EQ(narrowed.devices[1].uuid, "GPU-0abc");
  EXPECT_EQ(narrowed.tokens.at(0), "2");
  EXPECT_EQ(narrowed.gpu_ids, (std::vector<std::uint32_t>{0, 1}));
}

}  // namespace
}  // namespace troupe::worker
