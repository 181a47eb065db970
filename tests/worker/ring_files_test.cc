// Files as processes leave them behind, and which of them stay.
#include "worker/ring_files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/obs/trace.h"
#include "runtime/os/directory.h"

namespace troupe::worker {
namespace {

class RingFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/troupe-rings-XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { os::RemoveTree(folder_); }
  std::string Path(std::uint64_t process) const {
    return folder_ + "/" + ProcessId(1, process).Hex();
  }
  void Make(std::uint64_t process, std::size_t bytes) const {
    std::ofstream(Path(process), std::ios::binary) << std::string(bytes, 'x');
  }

  std::string folder_;
};

TEST_F(RingFilesTest, TheLatestStayAndSayWhenTheyEnded) {
  RingFiles rings(folder_);
  rings.Ended(ProcessId(1, 1u << 20), Instant(Duration(5)));  // a process without a ring
  for (std::uint64_t i = 1; i <= RingFiles::kEndedMax + 3; ++i) {
    Make(i, obs::kTraceHeaderBytes);
    rings.Ended(ProcessId(1, i), Instant(Duration(1000 + i)));
  }
  EXPECT_FALSE(std::filesystem::exists(Path(3)));
  EXPECT_TRUE(std::filesystem::exists(Path(4)));
  std::ifstream file(Path(4), std::ios::binary);
  file.seekg(offsetof(obs::TraceHeader, ended_ns));
  std::int64_t ended_ns = 0;
  file.read(reinterpret_cast<char*>(&ended_ns), sizeof ended_ns);
  EXPECT_EQ(ended_ns, 1004);
}

TEST_F(RingFilesTest, LargeOnesGoSooner) {
  RingFiles rings(folder_);
  constexpr std::size_t kBytes = 24u << 20;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    Make(i, kBytes);
    rings.Ended(ProcessId(1, i), Instant(Duration(1)));
  }
  EXPECT_FALSE(std::filesystem::exists(Path(1)));
  EXPECT_TRUE(std::filesystem::exists(Path(2)) && std::filesystem::exists(Path(3)));
}

}  // namespace
}  // namespace troupe::worker
