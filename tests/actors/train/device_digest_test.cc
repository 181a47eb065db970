// The digest's kernel, run by the fake CUDA from the PTX that GPUs get, or with TROUPE_NCCL_LIB by
// the GPU that is there: what it finds is what the host finds.
#include "actors/train/device_digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/actors/train/gpu_ranks.h"

namespace troupe::train {
namespace {

class DeviceDigestTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (RanksFor(GetParam()) < 1) GTEST_SKIP() << "needs a GPU";
  }
  void OnGpu(const std::function<void(Rank&, Gpu&)>& body) {
    ExpectSuccess(RunRanks(1, {}, [&](Rank& rank) {
      Gpu gpu(rank, GetParam());
      body(rank, gpu);
    }));
  }
};

std::vector<unsigned char> Bytes(std::size_t count) {
  std::vector<unsigned char> made(count);
  std::uint32_t value = 2463534242u;
  for (unsigned char& each : made) {
    value ^= value << 13, value ^= value >> 17, value ^= value << 5;  // Marsaglia's xorshift
    each = static_cast<unsigned char>(value);
  }
  return made;
}

/// The digest of the bytes from `skip` on, by the device, added to `before`.
std::uint64_t OnDevice(Rank& rank, Gpu& gpu, DeviceDigest& digest,
                       const std::vector<unsigned char>& bytes, std::uint64_t before = 0) {
  const CudaPointer data = gpu.Allocate(bytes.size() + 1);
  gpu.Check(gpu.cuda().call.copy_to_device(data, bytes.data(), bytes.size(), gpu.stream()), "copy");
  const CudaPointer sum = gpu.ToDevice(std::vector<std::uint64_t>{before});
  const Status begun = digest.AddTo(sum, data, bytes.size(), gpu.device(), gpu.stream());
  rank.Require(begun.ok(), MessageOf(begun));
  return gpu.ToHost<std::uint64_t>(sum, 1).front();
}

TEST_P(DeviceDigestTest, FindsWhatTheHostFindsOfAnySize) {
  OnGpu([](Rank& rank, Gpu& gpu) {
    DeviceDigest digest(gpu.cuda());
    for (const std::size_t size : {1u, 2u, 3u, 4u, 5u, 1023u, 1024u, 1025u, 70'001u, 1'100'003u}) {
      const auto bytes = Bytes(size);
      const auto found = OnDevice(rank, gpu, digest, bytes, 7);
      rank.Require(found == 7 + HostDigest(bytes.data(), size),
                   "another digest of " + std::to_string(size) + " bytes");
    }
  });
}

TEST_P(DeviceDigestTest, OfNothingIsNothing) {
  OnGpu([](Rank& rank, Gpu& gpu) {
    DeviceDigest digest(gpu.cuda());
    rank.Require(OnDevice(rank, gpu, digest, {}, 5) == 5, "something was added");
  });
}

TEST_P(DeviceDigestTest, AddressesThatTheKernelCannotReadAreRefused) {
  OnGpu([](Rank& rank, Gpu& gpu) {
    DeviceDigest digest(gpu.cuda());
    const CudaPointer data = gpu.Allocate(64), sum = gpu.Allocate(16);
    for (const auto& [at, into] : {std::pair{data + 1, sum}, std::pair{data, sum + 4}}) {
      const Status refused = digest.AddTo(into, at, 8, gpu.device(), gpu.stream());
      rank.Require(ErrorCodeOf(refused) == ErrorCode::kInvalid, MessageOf(refused));
    }
  });
}

TEST_P(DeviceDigestTest, ADeviceThatIsNotThereIsSaid) {
  OnGpu([](Rank& rank, Gpu& gpu) {
    DeviceDigest digest(gpu.cuda());
    const Status none =
        digest.AddTo(gpu.Allocate(8), gpu.Allocate(8), 8, gpu.cuda().device_count(), gpu.stream());
    rank.Require(MessageOf(none).find("there is no CUDA device") != std::string::npos,
                 MessageOf(none));
  });
}

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceDigestTest, testing::Values(LibrariesToTest().back()),
                         NameOfLibrary);

TEST(HostDigest, ABitAndWordsThatChangedPlacesAreFound) {
  auto bytes = Bytes(4096);
  std::set<std::uint64_t> found{HostDigest(bytes.data(), bytes.size())};
  bytes[1000] ^= 1;
  found.insert(HostDigest(bytes.data(), bytes.size()));
  std::swap_ranges(bytes.begin(), bytes.begin() + 4, bytes.begin() + 4);
  found.insert(HostDigest(bytes.data(), bytes.size()));
  EXPECT_EQ(found.size(), 3u);
}

TEST(HostDigest, IsTheSameAtAnyAddress) {
  const auto bytes = Bytes(1001);
  std::vector<unsigned char> moved(bytes.size() + 1);
  std::copy(bytes.begin(), bytes.end(), moved.begin() + 1);
  EXPECT_EQ(HostDigest(bytes.data(), bytes.size()), HostDigest(moved.data() + 1, bytes.size()));
}

}  // namespace
}  // namespace troupe::train
