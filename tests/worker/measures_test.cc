// Method: figures of a made-up procfs, and of the GPUs of a made-up library of NVIDIA's.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "worker/measures/gpu_measures.h"
#include "worker/measures/node_measures.h"

namespace troupe::worker {
namespace {

using wire::MeasureKind;

/// The value of a kind, key and GPU; nullopt: it is not among them.
std::optional<double> ValueOf(const std::vector<wire::Measure>& measures, MeasureKind kind,
                              const std::string& key = "", int gpu = -1) {
  for (const wire::Measure& each : measures) {
    if (each.kind == kind && each.key == key && each.gpu == gpu) return each.value;
  }
  return std::nullopt;
}

class Measures : public ::testing::Test {
 protected:
  Measures() : proc_(testing::TempDir() + "/proc-" + std::to_string(getpid())) {
    std::filesystem::create_directories(proc_ + "/net");
    std::filesystem::create_directories(proc_ + "/pressure");
    std::filesystem::create_directories(proc_ + "/7/fd");
  }
  ~Measures() override { std::filesystem::remove_all(proc_); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(proc_ + "/" + name) << text;
  }
  /// Ticks of user code, and resident pages.
  void WriteProcess(int ticks, int pages) {
    Write("7/stat", "7 (a) b)) S 1 1 1 0 -1 0 0 0 0 0 " + std::to_string(ticks) +
                        " 0 0 0 20 0 1 0 5 0 " + std::to_string(pages) + " 0 0");
  }

  const std::string proc_;
};

TEST_F(Measures, AreReadFromProcfs) {
  Write("stat", "cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 2 3\n");
  Write("net/dev",
        "Inter-| Receive | Transmit\n face |bytes packets\n"
        "    lo: 9 0 0 0 0 0 0 0 9 0 0 0 0 0 0 0\n"
        "  eth0: 5000 1 0 0 0 0 0 0 700 2 0 0 0 0 0 0\n");
  Write("pressure/io", "some avg10=12.50 avg60=0.00 avg300=0.00 total=1\nfull avg10=1.00\n");
  WriteProcess(200, 3);
  NodeMeasurer measurer({testing::TempDir(), testing::TempDir() + "/."}, proc_);
  const std::vector<MeasuredProcess> processes = {{7, "rank"}, {8, "actor"}};
  std::vector<wire::Measure> first = measurer.Read(processes);
  EXPECT_FALSE(ValueOf(first, MeasureKind::kCpuRatio)) << "there is no call before it";
  EXPECT_EQ(ValueOf(first, MeasureKind::kNetworkReceivedBytes, "eth0"), 5000);
  EXPECT_EQ(ValueOf(first, MeasureKind::kNetworkSentBytes, "eth0"), 700);
  EXPECT_FALSE(ValueOf(first, MeasureKind::kNetworkSentBytes, "lo"));
  EXPECT_EQ(ValueOf(first, MeasureKind::kPressureRatio, "io"), 0.125);
  EXPECT_FALSE(ValueOf(first, MeasureKind::kPressureRatio, "cpu")) << "it cannot be read";
  const double tick_s = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_EQ(ValueOf(first, MeasureKind::kComponentCpuSeconds, "rank"), 200 * tick_s);
  EXPECT_EQ(ValueOf(first, MeasureKind::kComponentMemoryBytes, "rank"),
            3.0 * static_cast<double>(sysconf(_SC_PAGESIZE)));
  EXPECT_GT(ValueOf(first, MeasureKind::kDiskFreeBytes, testing::TempDir()), 0);
  EXPECT_FALSE(ValueOf(first, MeasureKind::kDiskFreeBytes, testing::TempDir() + "/."))
      << "one file system is measured once";
  EXPECT_GT(ValueOf(first, MeasureKind::kMemoryFreeBytes), 0);

  Write("stat", "cpu  150 0 125 725 100 0 0 0 0 0\n");
  WriteProcess(260, 3);
  std::vector<wire::Measure> second = measurer.Read(processes);
  EXPECT_EQ(ValueOf(second, MeasureKind::kCpuRatio), 0.75);
  EXPECT_EQ(ValueOf(second, MeasureKind::kComponentCpuSeconds, "rank"), 260 * tick_s);
  std::vector<wire::Measure> third = measurer.Read({});
  EXPECT_EQ(ValueOf(third, MeasureKind::kComponentCpuSeconds, "rank"), 260 * tick_s)
      << "time of processes that have ended counts";
  EXPECT_FALSE(ValueOf(third, MeasureKind::kComponentMemoryBytes, "rank"));
}

// The library is found by its SONAME, so one that is loaded stands for the machine's.
TEST(GpuMeasures, AreThoseThatNvidiasLibraryTells) {
  void* const library = dlopen(FAKE_NVML, RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  std::vector<wire::Device> devices(3);
  devices[0].uuid = "GPU-1abc";  // the node offers its second GPU as its first
  devices[1].index = 1;
  devices[1].uuid = "GPU-2abc";
  devices[2].index = 2;
  devices[2].uuid = "MIG-unknown";
  GpuMeasurer measurer(devices);
  const std::vector<wire::Measure> read = measurer.Read();
  EXPECT_EQ(ValueOf(read, MeasureKind::kGpuUtilizationRatio, "", 0), 0.25);
  EXPECT_EQ(ValueOf(read, MeasureKind::kGpuUtilizationRatio, "", 1), 0.5);
  EXPECT_FALSE(ValueOf(read, MeasureKind::kGpuUtilizationRatio, "", 2));
  EXPECT_EQ(ValueOf(read, MeasureKind::kGpuMemoryUsedBytes, "", 0), double(1u << 30));
  EXPECT_EQ(ValueOf(read, MeasureKind::kGpuPowerWatts, "", 0), 350.5);
  EXPECT_EQ(ValueOf(read, MeasureKind::kGpuEnergyJoules, "", 0), 12000.5);
  EXPECT_EQ(ValueOf(read, MeasureKind::kGpuTemperatureCelsius, "", 0), 61);
  EXPECT_EQ(ValueOf(read, MeasureKind::kGpuSmClockHertz, "", 0), 1.98e9);
  EXPECT_EQ(ValueOf(read, MeasureKind::kGpuPcieReplays, "", 0), 3);
  EXPECT_FALSE(ValueOf(read, MeasureKind::kGpuPcieReplays, "", 1)) << "not supported";
  EXPECT_EQ(ValueOf(read, MeasureKind::kGpuXidErrors, "79", 0), 2);
  EXPECT_EQ(ValueOf(measurer.Read(), MeasureKind::kGpuXidErrors, "79", 0), 2) << "a counter";
  EXPECT_EQ(ValueOf(read, MeasureKind::kGpuLastXid, "", 0), 79);
  dlclose(library);
}

}  // namespace
}  // namespace troupe::worker
