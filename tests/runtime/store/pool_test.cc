// Method: real segments of a few MiB; what a reader sees through a mapping of the descriptor, here
// and in a forked child, and what a hostile descriptor or location is answered.
#include "runtime/store/pool.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/store/copy.h"
#include "runtime/store/reading.h"
#include "runtime/store/spill_file.h"

namespace troupe::store {
namespace {

const ProcessId kSelf(1, 1);
const ProcessId kOwner(2, 1);
const NodeId kNode(9, 1);
constexpr std::uint64_t kLarge = 3u << 20;

// Without the background's spares, whose time is not the test's.
PoolOptions Limit(std::uint64_t bytes) {
  PoolOptions options;
  options.bytes_max = bytes;
  options.spares = false;
  return options;
}

// Byte i of the value with this seed.
void Fill(char* data, std::uint64_t bytes, unsigned seed) {
  for (std::uint64_t i = 0; i < bytes; ++i)
    data[i] = static_cast<char>(i * 31 + seed * 97 + (i >> 8));
}
std::uint64_t Checksum(const char* data, std::uint64_t bytes) {
  std::uint64_t sum = 0xcbf29ce484222325ull;
  for (std::uint64_t i = 0; i < bytes; ++i)
    sum = (sum ^ static_cast<unsigned char>(data[i])) * 0x100000001b3ull;
  return sum;
}

Location Put(Pool& pool, std::uint64_t bytes, unsigned seed) {
  auto writing = pool.Begin(bytes);
  EXPECT_TRUE(writing.ok()) << writing.status();
  Fill(writing->data, bytes, seed);
  return pool.Lend(*writing, kOwner);
}
void Release(Pool& pool, const Location& location, bool clean = true) {
  pool.Free(kOwner, location.slot, location.generation, clean);
}
struct Open {
  UniqueFd fd;
  std::uint64_t bytes = 0;
};
Open OpenOf(const Pool& pool, const Location& location) {
  Open open;
  auto fd = pool.DescriptorOf(location.slot.segment, &open.bytes);
  EXPECT_TRUE(fd.ok()) << fd.status();
  open.fd = std::move(fd).value();
  return open;
}

TEST(Pool, AReaderSeesTheBytesWithoutACopy) {
  Pool pool(kSelf, kNode, Limit(1u << 30));
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{150'000}, kLarge}) {
    const Location location = Put(pool, bytes, 5);
    EXPECT_EQ(location.offset % 64, 0u);
    const Open open = OpenOf(pool, location);
    auto reading = Reading::ReadOnly(open.fd.get(), open.bytes);
    ASSERT_TRUE(reading.ok()) << reading.status();
    auto data = reading->At(location);
    ASSERT_TRUE(data.ok()) << data.status();
    std::string expected(bytes, 0);
    Fill(expected.data(), bytes, 5);
    EXPECT_EQ(Checksum(*data, bytes), Checksum(expected.data(), bytes));
  }
}

TEST(Pool, O1_AReleasedSlotIsRecycledAndItsOldLocationRefused) {
  Pool pool(kSelf, kNode, Limit(1u << 30));
  const Location first = Put(pool, kLarge, 1);
  const Open open = OpenOf(pool, first);
  auto reading = Reading::ReadOnly(open.fd.get(), open.bytes);
  ASSERT_TRUE(reading.ok());
  Release(pool, first);
  const Location second = Put(pool, kLarge, 2);
  EXPECT_TRUE(first.slot == second.slot);
  EXPECT_EQ(second.generation, 2u);
  EXPECT_EQ(pool.figures().made, 1u);
  EXPECT_EQ(ErrorCodeOf(reading->At(first).status()), ErrorCode::kFenced);
  EXPECT_TRUE(reading->At(second).ok()) << "the kept mapping serves the next value";
  Release(pool, second, /*clean=*/false);
  Put(pool, kLarge, 3);
  EXPECT_EQ(pool.figures().made, 2u) << "what was released uncleanly is not written again";
  const auto closed = pool.TakeClosed();
  ASSERT_EQ(closed.size(), 1u);
  std::uint64_t bytes = 0;
  EXPECT_EQ(ErrorCodeOf(pool.DescriptorOf(closed[0].segment, &bytes).status()), ErrorCode::kFenced);
  EXPECT_TRUE(reading->At(second).ok()) << "who mapped it reads on";
}

TEST(Pool, SmallValuesShareASegment) {
  Pool pool(kSelf, kNode, Limit(1u << 30));
  const Location a = Put(pool, 150'000, 1);
  const Location b = Put(pool, 150'000, 2);
  EXPECT_EQ(a.slot.segment, b.slot.segment);
  EXPECT_NE(a.slot.slot, b.slot.slot);
  EXPECT_EQ(pool.figures().segments, 1u);
}

// Method: the child checks its view, waits, and checks it again after a thousand puts of its
// parent.
TEST(Pool, O1_AForkedChildReadsTheSameBytesThroughAThousandPuts) {
  Pool pool(kSelf, kNode, Limit(1u << 30));
  const Location held = Put(pool, kLarge, 7);
  const Open open = OpenOf(pool, held);
  auto reading = Reading::ReadOnly(open.fd.get(), open.bytes);
  ASSERT_TRUE(reading.ok());
  char* const data = reading->At(held).value();
  const std::uint64_t sum = Checksum(data, kLarge);
  int go[2];
  int ready[2];
  ASSERT_EQ(pipe2(go, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(go[1]);
    char byte = 0;
    if (Checksum(data, kLarge) != sum) _exit(2);
    if (write(ready[1], "r", 1) != 1) _exit(3);
    if (read(go[0], &byte, 1) != 1) _exit(4);
    _exit(Checksum(data, kLarge) == sum ? 0 : 5);
  }
  ASSERT_GT(child, 0);
  close(go[0]);
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  Release(pool, held, /*clean=*/false);  // a fork happened while a view lived
  for (unsigned n = 0; n < 1000; ++n) {
    auto writing = pool.Begin(kLarge);
    ASSERT_TRUE(writing.ok()) << writing.status();
    std::memset(writing->data, static_cast<int>(n), 4096);
    std::memset(writing->data + kLarge - 4096, static_cast<int>(n), 4096);
    Release(pool, pool.Lend(*writing, kOwner));
  }
  EXPECT_EQ(pool.figures().made, 2u) << "the thousand share one segment";
  ASSERT_EQ(write(go[1], "g", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  EXPECT_EQ(Checksum(data, kLarge), sum) << "the parent's own view, too";
  for (const int fd : {go[1], ready[0], ready[1]}) close(fd);
}

/// Returns true if a segment is mapped there; a sanitizer's replacement is none.
bool HasMemfdAt(const char* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t from = 0, to = 0;
    std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &from, &to);
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (from <= at && at < to) return line.find("memfd:") != std::string::npos;
  }
  return false;
}

TEST(Pool, AChildNeitherInheritsTheWritableMappingNorMakesObjects) {
  Pool pool(kSelf, kNode, Limit(1u << 30));
  auto writing = pool.Begin(kLarge);
  ASSERT_TRUE(writing.ok());
  ASSERT_TRUE(HasMemfdAt(writing->data - writing->offset));
  const pid_t child = fork();
  if (child == 0) {
    const bool mapped = HasMemfdAt(writing->data - writing->offset);
    pool.Free(kOwner, {kSelf, 1, 0}, 1, true);
    _exit((mapped ? 1 : 0) + (pool.Begin(kLarge).ok() ? 2 : 0));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Pool, ASegmentCannotBeWrittenByWhoGetsItsDescriptor) {
  Pool pool(kSelf, kNode, Limit(1u << 30));
  const Location location = Put(pool, kLarge, 1);
  const Open open = OpenOf(pool, location);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, open.fd.get(), 0), MAP_FAILED);
  EXPECT_LT(pwrite(open.fd.get(), "x", 1, 0), 0);
  EXPECT_LT(ftruncate(open.fd.get(), 0), 0);
  const std::string path = "/proc/self/fd/" + std::to_string(open.fd.get());
  const UniqueFd again(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(!again.valid() || pwrite(again.get(), "x", 1, 0) < 0);
  // A private mapping may be written: nobody else sees it.
  auto mine = Reading::Private(open.fd.get(), open.bytes);
  ASSERT_TRUE(mine.ok()) << mine.status();
  auto shared = Reading::ReadOnly(open.fd.get(), open.bytes);
  ASSERT_TRUE(shared.ok());
  const std::uint64_t sum = Checksum(shared->At(location).value(), kLarge);
  std::memset(mine->At(location).value(), 0xFF, kLarge);
  EXPECT_EQ(Checksum(shared->At(location).value(), kLarge), sum);
}

TEST(Pool, HostileDescriptorsAndLocationsAreRefused) {
  const UniqueFd plain(memfd_create("plain", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(plain.get(), 4096), 0);
  EXPECT_EQ(ErrorCodeOf(Reading::ReadOnly(plain.get(), 4096).status()), ErrorCode::kInvalid)
      << "not sealed";
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(ErrorCodeOf(Reading::ReadOnly(null.get(), 4096).status()), ErrorCode::kInvalid);
  EXPECT_EQ(ErrorCodeOf(Reading::ReadOnly(-1, 4096).status()), ErrorCode::kInvalid);
  Pool pool(kSelf, kNode, Limit(1u << 30));
  const Location location = Put(pool, kLarge, 1);
  const Open open = OpenOf(pool, location);
  EXPECT_EQ(ErrorCodeOf(Reading::ReadOnly(open.fd.get(), open.bytes + 1).status()),
            ErrorCode::kInvalid)
      << "a SIGBUS in waiting";
  auto reading = Reading::ReadOnly(open.fd.get(), open.bytes);
  ASSERT_TRUE(reading.ok());
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{63}, open.bytes,
                                     open.bytes + 64, UINT64_MAX - 63, std::uint64_t{65}}) {
    Location bad = location;
    bad.offset = offset;
    EXPECT_FALSE(reading->At(bad).ok()) << offset;
  }
  Location bad = location;
  bad.bytes = UINT64_MAX;
  EXPECT_EQ(ErrorCodeOf(reading->At(bad).status()), ErrorCode::kInvalid);
}

TEST(Pool, OverItsLimitItClosesWhatIsIdleThenRefuses) {
  Pool pool(kSelf, kNode, Limit(10u << 20));
  const Location small = Put(pool, 150'000, 1);  // 8 MiB of shared slots
  EXPECT_EQ(ErrorCodeOf(pool.Begin(kLarge).status()), ErrorCode::kTooLarge);
  Release(pool, small);
  const Location large = Put(pool, kLarge, 2);
  EXPECT_EQ(pool.figures().segments, 1u);
  const auto refused = pool.Begin(20u << 20);
  EXPECT_EQ(ErrorCodeOf(refused.status()), ErrorCode::kTooLarge);
  EXPECT_NE(MessageOf(refused.status()).find("of 10 MiB it may"), std::string::npos);
  EXPECT_EQ(ErrorCodeOf(pool.Begin(UINT64_MAX).status()), ErrorCode::kTooLarge);
  Release(pool, large);
}

TEST(Pool, TrimClosesWhatWasIdleForLongAndKeepsOne) {
  Pool pool(kSelf, kNode, Limit(16u << 20));
  const Location a = Put(pool, kLarge, 1);
  const Location b = Put(pool, kLarge, 2);
  const Location c = Put(pool, kLarge, 3);
  for (const Location& one : {a, b, c}) Release(pool, one);
  Instant now{std::chrono::seconds(50)};
  pool.Trim(now);
  pool.Trim(now + std::chrono::seconds(9));
  EXPECT_GE(pool.figures().segments, 3u) << "idle for nine seconds";
  pool.Trim(now + std::chrono::seconds(10));
  EXPECT_LE(pool.figures().bytes, 8u << 20);
  EXPECT_GE(pool.figures().segments, 1u);
}

TEST(Pool, AClassThatGrowsHasASpare) {
  Pool pool(kSelf, kNode);
  Put(pool, kLarge, 1);
  EXPECT_EQ(pool.figures().made, 1u) << "one value is no growth";
  Put(pool, kLarge, 2);
  pool.WaitForSpares();
  EXPECT_EQ(pool.figures().made, 3u);
  Put(pool, kLarge, 3);
  EXPECT_EQ(pool.figures().waited_for, 2u) << "the third had the spare";
}

TEST(Pool, AWritingThatIsGivenUpIsFree) {
  Pool pool(kSelf, kNode, Limit(1u << 30));
  auto writing = pool.Begin(kLarge);
  ASSERT_TRUE(writing.ok());
  EXPECT_EQ(pool.figures().in_use, 1u);
  pool.GiveUp(*writing);
  EXPECT_EQ(pool.figures().in_use, 0u);
  Put(pool, kLarge, 1);
  EXPECT_EQ(pool.figures().made, 1u);
}

TEST(Pool, ReserveMakesTheMemoryBefore) {
  Pool pool(kSelf, kNode, Limit(1u << 30));
  ASSERT_TRUE(pool.Reserve(kLarge).ok());
  Put(pool, kLarge, 1);
  EXPECT_EQ(pool.figures().waited_for, 0u);
}

TEST(Copy, BothWaysCopyEveryLength) {
  std::string from(70'000, 0);
  Fill(from.data(), from.size(), 3);
  for (const std::size_t bytes : {0, 1, 63, 64, 4095, 4096, 4097, 65'536, 70'000}) {
    std::string to(from.size() + 1, '#');
    CopyBytes(to.data(), from.data(), bytes);
    EXPECT_EQ(to.compare(0, bytes, from, 0, bytes), 0);
    EXPECT_EQ(to[bytes], '#') << bytes;
    std::string other(from.size() + 1, '#');
    CopyByString(other.data(), from.data(), bytes);
    EXPECT_EQ(to, other);
  }
}

// ---- on a disk --------------------------------------------------------------------------------

/// Room in memory for one value of kLarge.
PoolOptions OneInMemory() {
  PoolOptions options = Limit(4u << 20);
  options.spill_folder = DefaultSpillFolder();
  return options;
}

class OnDisk : public testing::Test {
 protected:
  void SetUp() override {
    if (DefaultSpillFolder().empty()) GTEST_SKIP() << "neither /var/tmp nor /tmp lies on a disk";
  }
  static void ExpectValue(const Pool& pool, const Location& location, unsigned seed) {
    std::string expected(location.bytes, '\0');
    Fill(expected.data(), location.bytes, seed);
    const Open open = OpenOf(pool, location);
    auto reading = Reading::ReadOnly(open.fd.get(), open.bytes);
    ASSERT_TRUE(reading.ok()) << reading.status();
    const StatusOr<char*> at = reading->At(location);
    ASSERT_TRUE(at.ok()) << at.status();
    EXPECT_EQ(std::memcmp(*at, expected.data(), location.bytes), 0);
  }
};

TEST_F(OnDisk, WhatMemoryHasNoRoomForIsReadFromThere) {
  Pool pool(kSelf, kNode, OneInMemory());
  std::vector<Location> put;
  for (unsigned seed = 0; seed < 5; ++seed) put.push_back(Put(pool, kLarge, seed));
  put.push_back(Put(pool, 150'000, 5));
  put.push_back(Put(pool, 150'000, 6));
  EXPECT_EQ(put[5].slot.segment, put[6].slot.segment) << "small ones share a file too";
  for (unsigned seed = 0; seed < put.size(); ++seed) ExpectValue(pool, put[seed], seed);
  const Pool::Figures figures = pool.figures();
  EXPECT_EQ(figures.bytes, 4u << 20);
  EXPECT_EQ(figures.disk_bytes, (4 * 4u + 8u) << 20);
  Release(pool, put[0]);
  const Location next = Put(pool, kLarge, 9);
  EXPECT_TRUE(next.slot == put[0].slot) << "what is free in memory is used first";
  for (std::size_t i = 1; i < put.size(); ++i) Release(pool, put[i]);
  EXPECT_EQ(pool.figures().disk_bytes, 0u) << "a disk keeps nothing for the next value";
  EXPECT_EQ(pool.TakeClosed().size(), 5u);
  ExpectValue(pool, next, 9);
}

TEST_F(OnDisk, AValueGoesThereBeforeTheSystemIsShortOfMemory) {
  PoolOptions options = Limit(1u << 30);
  options.spill_folder = DefaultSpillFolder();
  options.memory_left = [] { return std::uint64_t{5u << 20}; };
  Pool pool(kSelf, kNode, options);
  ExpectValue(pool, Put(pool, kLarge, 1), 1);
  EXPECT_EQ(pool.figures().disk_bytes, 0u);
  ExpectValue(pool, Put(pool, 2 * kLarge, 2), 2);
  EXPECT_EQ(pool.figures().disk_bytes, 8u << 20);
}

TEST_F(OnDisk, WhoGetsItsDescriptorCanOnlyRead) {
  Pool pool(kSelf, kNode, OneInMemory());
  Put(pool, kLarge, 1);
  const Location location = Put(pool, kLarge, 2);
  const Open open = OpenOf(pool, location);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, open.fd.get(), 0), MAP_FAILED);
  EXPECT_LT(pwrite(open.fd.get(), "x", 1, 0), 0);
  EXPECT_LT(ftruncate(open.fd.get(), 0), 0);
  auto mine = Reading::Private(open.fd.get(), open.bytes);
  ASSERT_TRUE(mine.ok()) << mine.status();
  std::memset(mine->At(location).value(), 0xFF, kLarge);
  ExpectValue(pool, location, 2);
}

TEST_F(OnDisk, OtherFilesAreNoObjectsMemory) {
  const std::string folder = DefaultSpillFolder();
  std::string name = folder + "/troupe-pool-test-XXXXXX";
  const UniqueFd named(mkostemp(name.data(), O_CLOEXEC));
  ASSERT_TRUE(named.valid());
  ASSERT_EQ(ftruncate(named.get(), 4096), 0);
  const UniqueFd reading(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(ErrorCodeOf(Reading::ReadOnly(reading.get(), 4096).status()), ErrorCode::kInvalid)
      << "others can open it";
  unlink(name.c_str());
  EXPECT_TRUE(Reading::ReadOnly(reading.get(), 4096).ok());
  EXPECT_EQ(ErrorCodeOf(Reading::ReadOnly(named.get(), 4096).status()), ErrorCode::kInvalid)
      << "it can be written to";
  EXPECT_EQ(ErrorCodeOf(Reading::ReadOnly(reading.get(), 8192).status()), ErrorCode::kInvalid)
      << "it is too short";
}

TEST_F(OnDisk, WhereThereIsNoRoomTheErrorSaysWhy) {
  PoolOptions options = OneInMemory();
  const auto why = [&options](std::uint64_t bytes) {
    Pool pool(kSelf, kNode, options);
    const Status status = pool.Begin(bytes).status();
    EXPECT_EQ(ErrorCodeOf(status), ErrorCode::kTooLarge);
    return MessageOf(status);
  };
  EXPECT_THAT(why(1ull << 45), testing::HasSubstr("(5 %) stay so"));
  options.spill_folder = "/dev/shm";
  EXPECT_THAT(why(8u << 20), testing::HasSubstr("kept in memory"));
  options.spill_folder = "/nowhere";
  EXPECT_THAT(why(8u << 20),
              testing::HasSubstr("objects cannot go to disk in /nowhere: No such file"));
  options.spill_folder.clear();
  EXPECT_THAT(why(8u << 20),
              testing::HasSubstr("this process holds 0 MiB of objects, of 4 MiB it may"));
}

}  // namespace
}  // namespace troupe::store
