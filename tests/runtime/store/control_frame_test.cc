// Method: random frames there and back; every prefix, and every flipped bit, is answered and not
// obeyed blindly; what was released (golden/TYPE.bin) reads for ever and encodes to the same bytes.
// A new type gets its file by running this program with TROUPE_GOLDEN_WRITE=1.
#include "runtime/store/core/control_frame.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/base/random.h"

namespace troupe::store {
namespace {

namespace fs = std::filesystem;
constexpr const char* kNames[] = {"Hold",   "HoldOk", "Gone", "Changed", "Settle",
                                  "Recall", "Drop",   "Free", "Withdraw"};
static_assert(std::size(kNames) == std::variant_size_v<ControlBody>);

ObjectId SomeObject(Prng& random) { return {ProcessId::Random(random), random.Next()}; }
SlotId SomeSlot(Prng& random) {
  return {ProcessId::Random(random), static_cast<std::uint32_t>(random.Next()),
          static_cast<std::uint32_t>(random.Next())};
}
Location SomePlace(Prng& random) {
  return {NodeId::Random(random), SomeSlot(random), random.Next(), random.Next(), random.Next()};
}
Answer SomeAnswer(Prng& random) {
  Answer answer;
  switch (random.Below(4)) {
    case 0:
      break;
    case 1:
      answer.value = Value::Inline(std::string(random.Below(100), 'v'));
      break;
    case 2:
      answer.value = Value::Error("ValueError");
      break;
    default:
      answer.value = Value::At(SomePlace(random));
      answer.value.locations.push_back(SomePlace(random));
  }
  for (std::uint64_t n = random.Below(3); n > 0; --n) {
    const ObjectId id = SomeObject(random);
    answer.contained.push_back({id, random.Next()});
  }
  return answer;
}

ControlFrame SomeFrame(std::size_t type, Prng& random) {
  ControlFrame frame;
  frame.n = 1 + random.Below(1u << 30);
  const ObjectId id = SomeObject(random);
  const bool clean = random.Chance(500);
  switch (type) {
    case 0:
      frame.body = Hold{id, random.Next()};
      break;
    case 1:
      frame.body = HoldOk{id, SomeAnswer(random)};
      break;
    case 2:
      frame.body = Gone{id};
      break;
    case 3:
      frame.body = Changed{id, SomeAnswer(random)};
      break;
    case 4:
      frame.body = Settle{random.Next(), clean};
      break;
    case 5:
      frame.body = Recall{random.Next()};
      break;
    case 6:
      frame.body = Drop{id, clean};
      break;
    case 7:
      frame.body = Free{SomeSlot(random), random.Next(), clean};
      break;
    default:
      frame.body = Withdraw{id, SomePlace(random)};
  }
  return frame;
}

std::string Encoded(const ControlFrame& frame, std::uint64_t acknowledged) {
  std::string bytes;
  AppendFrame(bytes, frame, acknowledged);
  return bytes;
}

TEST(ControlFrame, EveryTypeThereAndBack) {
  Prng random(7);
  for (int round = 0; round < 200; ++round) {
    for (std::size_t type = 0; type < std::size(kNames); ++type) {
      const ControlFrame frame = SomeFrame(type, random);
      const std::string bytes = Encoded(frame, 99);
      ReceivedFrame received;
      std::string why;
      ASSERT_EQ(ReadFrame(bytes, {}, &received, &why), FrameOutcome::kFrame)
          << kNames[type] << ": " << why;
      EXPECT_EQ(received.frame.body.index(), type);
      EXPECT_EQ(received.acknowledged, 99u);
      EXPECT_EQ(received.bytes, bytes.size());
      EXPECT_EQ(Encoded(received.frame, 99), bytes);
      for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
        ASSERT_EQ(ReadFrame(std::string_view(bytes).substr(0, cut), {}, &received, &why),
                  FrameOutcome::kNeedMore);
        ASSERT_EQ(received.bytes, cut < kControlHeadBytes ? kControlHeadBytes : bytes.size());
      }
    }
  }
}

// A changed bit is either refused, in words, or is another frame that encodes to exactly these
// bytes.
TEST(ControlFrame, AChangedBitIsRefusedOrMeansWhatItSays) {
  Prng random(11);
  for (std::size_t type = 0; type < std::size(kNames); ++type) {
    const std::string bytes = Encoded(SomeFrame(type, random), 5);
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      std::string changed = bytes;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
      ReceivedFrame received;
      std::string why;
      const FrameOutcome outcome = ReadFrame(changed, {}, &received, &why);
      if (outcome == FrameOutcome::kBad) {
        EXPECT_FALSE(why.empty());
      }
      if (outcome != FrameOutcome::kFrame || received.bytes != changed.size()) continue;
      ASSERT_EQ(Encoded(received.frame, received.acknowledged), changed)
          << kNames[type] << " bit " << bit;
    }
  }
}

TEST(ControlFrame, AnAcknowledgementAlone) {
  std::string bytes;
  AppendAck(bytes, 42);
  ReceivedFrame received;
  std::string why;
  ASSERT_EQ(ReadFrame(bytes, {}, &received, &why), FrameOutcome::kFrame);
  EXPECT_TRUE(received.alone);
  EXPECT_EQ(received.acknowledged, 42u);
}

TEST(ControlFrame, LimitsHoldBeforeAnythingIsAllocated) {
  Prng random(3);
  ControlFrame frame;
  frame.n = 1;
  Answer answer;
  answer.value = Value::Inline("v");
  for (int i = 0; i < 10; ++i) answer.contained.push_back({SomeObject(random), 1});
  frame.body = HoldOk{SomeObject(random), answer};
  const std::string bytes = Encoded(frame, 0);
  ReceivedFrame received;
  std::string why;
  ControlLimits limits;
  limits.contained_max = 9;
  EXPECT_EQ(ReadFrame(bytes, limits, &received, &why), FrameOutcome::kBad);
  EXPECT_EQ(why, "too many references in a value");
  limits = {};
  limits.frame_bytes_max = 64;
  EXPECT_EQ(ReadFrame(bytes.substr(0, kControlHeadBytes), limits, &received, &why),
            FrameOutcome::kBad);
  EXPECT_EQ(why, "a frame over the limit of size");
}

// Found by the fuzzer: bytes behind a value that has none were read over.
TEST(ControlFrame, BytesOfAValueThatHasNoneAreRefused) {
  ControlFrame frame;
  frame.n = 1;
  frame.body = Changed{{ProcessId(1, 1), 1}, Answer()};
  std::string bytes = Encoded(frame, 0);
  bytes[8] = static_cast<char>(bytes[8] + 64);  // the body is longer,
  bytes[kControlHeadBytes + 24 + 12] = 64;      // by a pending value's bytes
  bytes.append(64, 'x');
  ReceivedFrame received;
  std::string why;
  EXPECT_EQ(ReadFrame(bytes, {}, &received, &why), FrameOutcome::kBad);
  EXPECT_EQ(why, "a value and bytes that do not belong together");
}

TEST(ControlFrame, EveryReleasedFrameStillReads) {
  for (std::size_t type = 0; type < std::size(kNames); ++type) {
    const fs::path path = fs::path(TROUPE_STORE_GOLDEN_DIR) / (std::string(kNames[type]) + ".bin");
    if (std::getenv("TROUPE_GOLDEN_WRITE") != nullptr && !fs::exists(path)) {
      Prng random(100 + type);
      std::ofstream(path, std::ios::binary) << Encoded(SomeFrame(type, random), 1 + type);
    }
    std::ifstream in(path, std::ios::binary);
    ASSERT_TRUE(in.good()) << path << " is not there";
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    ReceivedFrame received;
    std::string why;
    ASSERT_EQ(ReadFrame(bytes, {}, &received, &why), FrameOutcome::kFrame) << path << ": " << why;
    EXPECT_EQ(received.frame.body.index(), type);
    EXPECT_EQ(received.acknowledged, 1 + type);
    EXPECT_EQ(Encoded(received.frame, received.acknowledged), bytes) << path;
  }
}

}  // namespace
}  // namespace troupe::store
