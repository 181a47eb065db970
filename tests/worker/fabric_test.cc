// Method: trees as /sys and /proc have them, of machines with InfiniBand, RoCE and neither.
#include "worker/devices/fabric.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "worker/devices/inventory.h"

namespace troupe::worker {
namespace {

using Texts = std::vector<std::string>;

class FabricTest : public testing::Test {
 protected:
  FabricTest() {
    std::filesystem::remove_all(root_);
    Interface("lo", "unknown", "");
    Write("/dev/infiniband/uverbs0", "");
  }
  ~FabricTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void Interface(const std::string& name, const std::string& state, const std::string& speed,
                 bool hardware = true) {
    Write("/sys/class/net/" + name + "/operstate", state + "\n");
    if (!speed.empty()) Write("/sys/class/net/" + name + "/speed", speed + "\n");
    if (hardware) Write("/sys/class/net/" + name + "/device/vendor", "0x15b3\n");
  }
  void Port(const std::string& device, const std::string& layer, const std::string& state,
            const std::string& rate, const std::string& gid = "") {
    const std::string folder = "/sys/class/infiniband/" + device + "/ports/1/";
    Write(folder + "link_layer", layer + "\n");
    Write(folder + "state", state + "\n");
    Write(folder + "rate", rate + "\n");
    if (!gid.empty()) Write(folder + "gids/0", gid + "\n");
  }
  std::string Text(const Addresses& addresses = {}) {
    return placement::FabricText(ReadFabric(root_, addresses));
  }

  const std::string root_ = testing::TempDir() + "fabric-" +
                            testing::UnitTest::GetInstance()->current_test_info()->name() +
                            std::to_string(getpid());
};

TEST_F(FabricTest, InterfacesWithAnAddressOrUp) {
  Interface("eth0", "up", "1000");
  Interface("eth1", "down", "-1");
  Interface("ens3", "up", "-1");
  Interface("veth7", "up", "10000", false);
  Interface("wg0", "unknown", "", false);
  EXPECT_EQ(Text({{"eth0", {"10.0.0.1/24", "fd00::2/64"}}, {"wg0", {"10.8.0.1/16"}}}),
            "if ens3 up 0;if eth0 up 1000 10.0.0.1/24 fd00::2/64;if wg0 up 0 10.8.0.1/16;");
}

TEST_F(FabricTest, InfiniBandWithTheSubnetOfItsManager) {
  Port("mlx5_0", "InfiniBand", "4: ACTIVE", "400 Gb/sec (4X NDR)",
       "fe80:0000:0000:0000:0c42:a103:0065:2e6a");
  Write("/sys/class/infiniband/mlx5_0/device/net/ib0/dev_port", "0\n");
  Port("mlx5_1", "InfiniBand", "1: DOWN", "2.5 Gb/sec (1X SDR)",
       "fe80:0000:0000:0000:0c42:a103:0065:2e6b");
  EXPECT_EQ(Text(),
            "rdma mlx5_0:1 InfiniBand ACTIVE 400000 4X_NDR ib0 fe80000000000000;"
            "rdma mlx5_1:1 InfiniBand DOWN 2500 1X_SDR - fe80000000000000;");
}

TEST_F(FabricTest, RoceWithTheNetworksOfItsInterfaces) {
  Port("mlx5_2", "Ethernet", "4: ACTIVE", "100 Gb/sec (4X EDR)",
       "fe80:0000:0000:0000:0c42:a1ff:fe65:2e6a");
  Write("/sys/class/infiniband/mlx5_2/ports/1/gid_attrs/ndevs/0", "ens2\n");
  Write("/sys/class/infiniband/mlx5_2/ports/1/gid_attrs/ndevs/1", "ens2\n");
  Write("/sys/class/infiniband/mlx5_2/ports/1/gid_attrs/ndevs/3", "ens2.100\n");
  EXPECT_EQ(placement::FabricText(
                {{},
                 ReadFabric(root_, {{"ens2", {"10.1.0.9/20"}}, {"ens2.100", {"fd00::9/64"}}}).ports,
                 {},
                 ""}),
            "rdma mlx5_2:1 Ethernet ACTIVE 100000 4X_EDR ens2 10.1.0.0/20 fd00::/64;");
}

TEST_F(FabricTest, PortsOfAContainerThatMayNotOpenThemAreNotActive) {
  Port("mlx5_0", "InfiniBand", "4: ACTIVE", "400 Gb/sec (4X NDR)");
  std::filesystem::remove_all(root_ + "/dev/infiniband");
  EXPECT_EQ(Text(), "rdma mlx5_0:1 InfiniBand NO_VERBS_DEVICE 400000 4X_NDR -;");
}

TEST_F(FabricTest, HowNetworkCardsReadTheMemoryOfGpus) {
  EXPECT_EQ(ReadFabric(root_, {}).gpudirect, "");
  Write("/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n");
  Write("/proc/sys/kernel/osrelease", "5.4.0-42-generic\n");
  EXPECT_EQ(ReadFabric(root_, {}).gpudirect, "") << "the kernel is older than dma-buf for peers";
  Write("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  EXPECT_EQ(ReadFabric(root_, {}).gpudirect, "dma-buf");
  Write("/sys/module/nv_peer_mem/initstate", "live\n");
  EXPECT_EQ(ReadFabric(root_, {}).gpudirect, "nv_peer_mem");
}

TEST_F(FabricTest, NothingThereIsNothing) {
  EXPECT_EQ(Text(), "");
  std::filesystem::remove_all(root_);
  EXPECT_EQ(Text(), "");
}

TEST_F(FabricTest, AFileOfNcclIsTheAdministratorsWord) {
  Write("/etc/nccl.conf", "# of the cluster\nNCCL_SOCKET_IFNAME=ens3\n\nNCCL_IB_HCA==mlx5_0\n");
  Write("/home/.nccl.conf", "NCCL_DEBUG=WARN\n");
  using Names = std::set<std::string>;
  EXPECT_EQ(NcclFileNames(root_, "", root_ + "/home"),
            (Names{"NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_DEBUG"}));
  EXPECT_EQ(NcclFileNames(root_, root_ + "/none", root_ + "/home"),
            (Names{"NCCL_SOCKET_IFNAME", "NCCL_IB_HCA"}));
  EXPECT_EQ(NcclFileNames(root_ + "/none", "", ""), Names());
}

TEST(Fabric, NetworksOfAddresses) {
  const std::pair<const char*, const char*> known[] = {{"10.0.0.1/24", "10.0.0.0/24"},
                                                       {"10.1.37.9/20", "10.1.32.0/20"},
                                                       {"10.0.0.1/32", "10.0.0.1/32"},
                                                       {"fd00:1::9/64", "fd00:1::/64"},
                                                       {"10.0.0.1", ""},
                                                       {"ten/8", ""}};
  for (const auto& [address, network] : known) EXPECT_EQ(NetworkOf(address), network) << address;
}

TEST(Fabric, GpusWithEqualLinksAreOneGroup) {
  const auto texts = [](const std::vector<GpuLinks>& gpus) {
    Texts found;
    for (const placement::NvLinks& each : GroupLinks(gpus)) {
      found.push_back(each.gpus + " " + std::to_string(each.links));
    }
    return found;
  };
  EXPECT_EQ(texts({{0, 18, 26}, {1, 18, 26}, {2, 18, 26}, {3, 18, 26}}), Texts{"0-3 18"});
  EXPECT_EQ(texts({{0, 4, 25}, {1, 4, 25}, {2, 2, 25}, {6, 4, 25}, {7, 4, 25}}),
            (Texts{"0-1+6-7 4", "2 2"}));
  EXPECT_EQ(texts({{0, 0, 0}, {1, 0, 0}}), Texts());
}

// The library is found by its SONAME, so one that is loaded stands for the machine's.
TEST(Fabric, LinksAreThoseThatNvidiasLibrarySaysAreUp) {
  void* const library = dlopen(FAKE_NVML, RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  const StatusOr<Gpus> gpus = ReadNvml();
  ASSERT_TRUE(gpus.ok()) << MessageOf(gpus.status());
  ASSERT_EQ(gpus->devices.size(), 3u);
  EXPECT_EQ(gpus->devices[1].uuid, "GPU-1abc");
  placement::Fabric fabric;
  fabric.nvlinks = GroupLinks(gpus->links);
  EXPECT_EQ(placement::FabricText(fabric), "nvlink 0 18 26562;nvlink 1 12 26562;");
  const Inventory second = FindDevices("1", std::nullopt);
  ASSERT_EQ(second.links.size(), 1u);
  EXPECT_EQ(second.links[0].index, 0u) << "by the ids of what the node offers";
  EXPECT_EQ(second.links[0].links, 12u);
  dlclose(library);
}

TEST(Fabric, WhatAnRdmaLabelSays) {
  const auto kind = [](const char* text) { return RdmaKind(placement::ParseFabric(text)); };
  EXPECT_EQ(
      kind("rdma mlx5_0:1 InfiniBand ACTIVE 400000 - -;rdma mlx5_9:1 Ethernet ACTIVE 100000 - -;"),
      "infiniband");
  EXPECT_EQ(kind("rdma mlx5_0:1 InfiniBand DOWN 10000 - -;rdma mlx5_9:1 Ethernet ACTIVE 1 - -;"),
            "roce");
  EXPECT_EQ(kind("rdma rdmap0:1 Unspecified ACTIVE 100000 - -;if eth0 up 1;"), "");
}

}  // namespace
}  // namespace troupe::worker
