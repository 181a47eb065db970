#include "actors/core/call/object_frame.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/store/core/control_frame.h"

namespace troupe::actors {
namespace {

std::string Hello() {
  std::string bytes;
  AppendObjectFrame(bytes, {ObjectWord::kHello, ProcessId(1, 2), ProcessId(3, 4), 5, 6});
  return bytes;
}

TEST(ObjectFrame, IsReadAsItWasWritten) {
  const std::string bytes = Hello();
  ASSERT_EQ(bytes.size(), kObjectFrameBytes);
  ObjectFrame frame;
  std::string why;
  ASSERT_EQ(ReadObjectFrame(bytes + "more", &frame, &why), ObjectParse::kFrame);
  EXPECT_EQ(frame.word, ObjectWord::kHello);
  EXPECT_EQ(frame.a, ProcessId(1, 2));
  EXPECT_EQ(frame.b, ProcessId(3, 4));
  EXPECT_EQ(frame.x, 5u);
  EXPECT_EQ(frame.y, 6u);
}

TEST(ObjectFrame, ComesInPieces) {
  const std::string bytes = Hello();
  ObjectFrame frame;
  std::string why;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(ReadObjectFrame(bytes.substr(0, size), &frame, &why), ObjectParse::kNeedMore) << size;
  }
}

TEST(ObjectFrame, ControlFramesAreTheStores) {
  std::string bytes;
  store::AppendAck(bytes, 7);
  ObjectFrame frame;
  std::string why;
  EXPECT_EQ(ReadObjectFrame(bytes, &frame, &why), ObjectParse::kControl);
}

TEST(ObjectFrame, AnythingElseIsNamed) {
  ObjectFrame frame;
  // Magic, version, kind, zero, body length, the second zero; then words that are none.
  for (const std::size_t at : {0u, 1u, 2u, 3u, 6u, 7u, 8u, 11u, 12u, 15u}) {
    std::string bytes = Hello();
    bytes[at] = static_cast<char>(bytes[at] ^ 0x40);
    std::string why;
    EXPECT_EQ(ReadObjectFrame(bytes, &frame, &why), ObjectParse::kBad) << at;
    EXPECT_FALSE(why.empty());
  }
  for (const char word : {char{0}, char{8}, char{127}}) {
    std::string bytes = Hello();
    bytes[4] = word;
    std::string why;
    EXPECT_EQ(ReadObjectFrame(bytes, &frame, &why), ObjectParse::kBad) << int{word};
  }
}

}  // namespace
}  // namespace troupe::actors
