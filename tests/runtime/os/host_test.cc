// Method: ask this machine and compare with what must be so on every Linux.
#include "runtime/os/host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/os/cgroup.h"
#include "runtime/os/memory.h"

namespace troupe::os {
namespace {

TEST(Host, SaysWhoItIs) {
  EXPECT_EQ(BootId().find("/mnt:["), 36u) << BootId();
  EXPECT_NE(BootId().find("]/net:["), std::string::npos) << BootId();
  EXPECT_FALSE(HostName().empty());
  EXPECT_GE(UsableCpus(), 1u);
  EXPECT_LE(UsableCpus(), static_cast<unsigned>(sysconf(_SC_NPROCESSORS_CONF)));
}

TEST(Host, LoopbackReachesLoopbackAndNobody) {
  EXPECT_EQ(InterfaceTo({}).name, "lo");
  EXPECT_EQ(InterfaceTo({"127.0.0.1", "127.0.0.1"}).address, "127.0.0.1");
  EXPECT_EQ(InterfaceTo({"not a number"}).name, "lo") << "no name is looked up";
  EXPECT_EQ(AddressOf("lo"), "127.0.0.1");
  EXPECT_EQ(AddressOf("none7"), "");
}

TEST(Cgroup, ReadsWithoutFailing) {
  EXPECT_GE(CpuQuota(), 0.0);
  const OomKills kills = ReadOomKills();
  EXPECT_TRUE(kills.source.empty() || kills.source.rfind("cgroup", 0) == 0);
}

TEST(Memory, IsWhatTheMachineHasOrLess) {
  const Memory memory = ReadMemory();
  const auto machine = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                       static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  EXPECT_GT(memory.total_bytes, 0u);
  EXPECT_LE(memory.total_bytes, machine);
  EXPECT_GT(memory.available_bytes, 0u);
  EXPECT_LE(memory.available_bytes, memory.total_bytes);
}

}  // namespace
}  // namespace troupe::os
