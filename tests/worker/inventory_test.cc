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
      {"NVIDIA H100 80GB HBM3", "H100"}, {"NVIDIA H200", "H200"},         {"NVIDIA A100-SXM4-40GB", "A100"},
      {"Tesla V100-SXM2-16GB", "V100"},  {"Tesla T4", "T4"},              {"NVIDIA A10G", "A10G"},
      {"NVIDIA L40S", "L40S"},           {"NVIDIA GH200 480GB", "GH200"}, {"NVIDIA GeForce RTX 4090", "RTX4090"},
      {"NVIDIA RTX A6000", "RTXA6000"},  {"NVIDIA TITAN V", "TITANV"},    {"NVIDIA", ""},
      {"", ""}};
  for (const auto& [model, type] : known) EXPECT_EQ(GpuTypeOf(Models({model})), type) << model;
}

TEST(GpuType, IsThatOfAllOrOfNone) {
  EXPECT_EQ(GpuTypeOf({}), "");
  EXPECT_EQ(GpuTypeOf(Models({"NVIDIA H200", "NVIDIA H200"})), "H200");
  EXPECT_EQ(GpuTypeOf(Models({"NVIDIA H200", "NVIDIA A100-SXM4-40GB"})), "");
}

TEST(Inventory, AMaskNarrowsAndOrders) {
  Inventory all = LogicalDevices(3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    wire::Device device;
    device.index = i;
    device.uuid = "GPU-" + std::to_string(i) + "abc";
    all.devices.push_back(device);
  }
  const Inventory narrowed = Narrow(all, "2,GPU-0,7,1");
  ASSERT_EQ(narrowed.devices.size(), 2u) << "what follows an entry that names nothing is not seen";
  EXPECT_EQ(narrowed.devices[0].uuid, "GPU-2abc");
  EXPECT_EQ(narrowed.devices[1].uuid, "GPU-0abc");
  EXPECT_EQ(narrowed.tokens.at(0), "2");
  EXPECT_EQ(narrowed.gpu_ids, (std::vector<std::uint32_t>{0, 1}));
}

}  // namespace
}  // namespace troupe::worker
