// Method: cut a stream of frames at every position and get the same messages; break one header
// field at a time and get the named error.
#include "runtime/wire/frame.h"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::wire {
namespace {

Message Numbered(std::uint64_t id) {
  Message message;
  message.id = id;
  KvPut put;
  put.scope = "s";
  put.key = "key" + std::to_string(id);
  message.body = put;
  message.attachment = std::string(id * 3, 'v');
  return message;
}

TEST(Frame, HeaderIsSixteenLittleEndianBytes) {
  FrameHeader header;
  header.flags = 0x0102;
  header.body_bytes = 8;
  header.attachment_bytes = 0x01020304;
  char bytes[kHeaderBytes];
  EncodeHeader(header, bytes);
  const std::string expected("TR\1\0\2\1\0\0\x08\0\0\0\4\3\2\1", 16);
  EXPECT_EQ(std::string(bytes, 16), expected);
}

TEST(FrameReader, AnyCutGivesTheSameMessages) {
  std::string stream;
  for (std::uint64_t id = 1; id <= 4; ++id) stream += *EncodeFrame(Numbered(id));
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    FrameReader reader;
    std::vector<Message> got;
    for (const std::string& part : {stream.substr(0, cut), stream.substr(cut)}) {
      reader.Feed(part);
      while (auto next = reader.Next()) {
        ASSERT_TRUE(next->ok());
        got.push_back(**next);
      }
    }
    ASSERT_EQ(got.size(), 4u);
    for (std::uint64_t id = 1; id <= 4; ++id) EXPECT_EQ(got[id - 1], Numbered(id));
    EXPECT_EQ(reader.pending_bytes(), 0u);
  }
}

TEST(FrameReader, JunkIsRefusedAndNothingFollows) {
  FrameReader reader;
  reader.Feed("GET / HTTP/1.1\r\n\r\n");
  auto next = reader.Next();
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(ErrorCodeOf(next->status()), ErrorCode::kInvalid);
  reader.Feed(*EncodeFrame(Numbered(1)));
  EXPECT_FALSE(reader.Next().has_value());
}

TEST(FrameReader, UnauthenticatedPeerMaySendLittle) {
  FrameReader reader(kUnauthenticatedLimits);
  reader.Feed(*EncodeFrame(Numbered(2)));  // has an attachment
  EXPECT_EQ(ErrorCodeOf(reader.Next()->status()), ErrorCode::kTooLarge);
}

TEST(Frame, SizesAreHeldBeforeAnythingIsRead) {
  FrameHeader header;
  header.body_bytes = kBodyBytesMax + 8;
  char bytes[kHeaderBytes];
  EncodeHeader(header, bytes);
  EXPECT_EQ(ErrorCodeOf(DecodeHeader(bytes, {}).status()), ErrorCode::kTooLarge);
  header.body_bytes = 4;
  EncodeHeader(header, bytes);
  EXPECT_EQ(ErrorCodeOf(DecodeHeader(bytes, {}).status()), ErrorCode::kInvalid);
  header.body_bytes = 8;
  header.version = kProtocolVersion + 1;
  EncodeHeader(header, bytes);
  EXPECT_EQ(ErrorCodeOf(DecodeHeader(bytes, {}).status()), ErrorCode::kVersionMismatch);
}

TEST(Frame, DatagramRoundTrip) {
  EXPECT_EQ(*DecodeFrame(*EncodeFrame(Numbered(9))), Numbered(9));
  EXPECT_FALSE(DecodeFrame("short").ok());
  EXPECT_FALSE(DecodeFrame(*EncodeFrame(Numbered(9)) + "x").ok());
}

}  // namespace
}  // namespace troupe::wire
