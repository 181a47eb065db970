#include "actors/core/remote/bulk_frame.h"

#include <gtest/gtest.h>

#include <string>

namespace troupe::actors {
namespace {

BulkFrame Part() {
  BulkFrame frame;
  frame.word = BulkWord::kPart;
  frame.id = {ProcessId(1, 2), 3};
  frame.offset = 4096;
  frame.bytes = 100;
  frame.total = 4196;
  return frame;
}

std::string Bytes(const BulkFrame& frame) {
  std::string bytes;
  AppendBulkFrame(bytes, frame);
  return bytes;
}

TEST(BulkFrame, IsReadAsItWasWritten) {
  const StatusOr<BulkFrame> read = ReadBulkFrame(Bytes(Part()));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->word, BulkWord::kPart);
  EXPECT_EQ(read->id, Part().id);
  EXPECT_EQ(read->offset, 4096u);
  EXPECT_EQ(read->bytes, 100u);
  EXPECT_EQ(read->total, 4196u);
  BulkFrame hello;
  hello.session = SessionId(7, 8);
  EXPECT_EQ(ReadBulkFrame(Bytes(hello))->session, SessionId(7, 8));
}

TEST(BulkFrame, WhatIsNoneIsRefused) {
  const std::string good = Bytes(Part());
  EXPECT_FALSE(ReadBulkFrame(good.substr(0, kBulkFrameBytes - 1)).ok());
  for (const std::size_t at : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 11u, 12u, 15u}) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x40);
    EXPECT_FALSE(ReadBulkFrame(bytes).ok()) << at;
  }
}

TEST(BulkFrame, AHoldSaysWhetherOthersHaveIt) {
  BulkFrame hold = WordOf(BulkWord::kHold, Part().id, 7);
  for (const std::uint64_t others : {0u, 1u, 2u}) {
    hold.bytes = others;
    const StatusOr<BulkFrame> read = ReadBulkFrame(Bytes(hold));
    EXPECT_EQ(read.ok(), others < 2);
    EXPECT_TRUE(!read.ok() || read->bytes == others);
  }
}

TEST(BulkFrame, NumbersThatCannotBeAreRefused) {
  const auto refused = [](auto change) {
    BulkFrame frame = Part();
    change(frame);
    return !ReadBulkFrame(Bytes(frame)).ok();
  };
  EXPECT_TRUE(refused([](BulkFrame& frame) { frame.bytes = 0; }));
  EXPECT_TRUE(refused([](BulkFrame& frame) { frame.bytes = 101; }));
  EXPECT_TRUE(refused([](BulkFrame& frame) { frame.bytes = ~std::uint64_t{0} - 4000; }));
  EXPECT_TRUE(refused([](BulkFrame& frame) { frame.offset = 4196; }));
  EXPECT_TRUE(refused([](BulkFrame& frame) { frame.total = ~std::uint64_t{0}; }));
  EXPECT_TRUE(refused([](BulkFrame& frame) {
    frame.word = BulkWord::kRead;
    frame.bytes = kBulkPartBytes + 1;
  }));
  EXPECT_TRUE(refused([](BulkFrame& frame) {
    frame.word = BulkWord::kHello;
    frame.session = SessionId();
  }));
}

}  // namespace
}  // namespace troupe::actors
