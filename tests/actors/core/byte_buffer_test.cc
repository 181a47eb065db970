// Method: random appends and consumes against a std::string that does the same.
#include "actors/core/call/byte_buffer.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/base/random.h"

namespace troupe::actors {
namespace {

void Compare(ByteBuffer& buffer, std::uint64_t seed) {
  Prng random(seed);
  std::string model;
  for (int i = 0; i < 2000; ++i) {
    const std::size_t count = random.Below(random.Chance(50) ? 20000 : 100);
    if (random.Chance(500)) {
      const std::string bytes(count, static_cast<char>('a' + i % 26));
      buffer.Append(bytes.data(), bytes.size());
      model += bytes;
    } else {
      const std::size_t some = std::min(count * 2, model.size());
      buffer.Consume(some);
      model.erase(0, some);
    }
    ASSERT_EQ(buffer.view(), model);
  }
}

TEST(ByteBuffer, IsAQueueOfBytes) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    ByteBuffer buffer;
    Compare(buffer, seed);
  }
}

TEST(ByteBuffer, StartsInBorrowedSpace) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    char space[256];
    ByteBuffer buffer(space, sizeof space);
    EXPECT_EQ(buffer.Extend(10), space);
    buffer.Clear();
    Compare(buffer, seed);
  }
}

TEST(ByteBuffer, ShrinkKeepsWhatIsInUse) {
  ByteBuffer buffer;
  buffer.Extend(100000);
  buffer.Shrink(1000);
  EXPECT_EQ(buffer.size(), 100000u);
  buffer.Clear();
  buffer.Shrink(1000);
  EXPECT_EQ(buffer.spare(), 0u);
  buffer.Append("x", 1);
  EXPECT_EQ(buffer.view(), "x");
}

}  // namespace
}  // namespace troupe::actors
