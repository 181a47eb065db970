// Method: texts that are addresses and texts that are not.
#include "runtime/net/address.h"

#include <gtest/gtest.h>

namespace troupe::net {
namespace {

TEST(Address, EveryFormIsReadAndWrittenBack) {
  for (const char* text :
       {"10.0.0.1:6400", "node-a.example:0", "[::1]:65535", "unix:/tmp/x.sock"}) {
    const auto address = ParseAddress(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->Text(), text);
  }
  EXPECT_EQ(ParseAddress("/tmp/x.sock")->path, "/tmp/x.sock");
  EXPECT_EQ(ParseAddress("[::1]:7")->host, "::1");
}

TEST(Address, WhatIsNotOneSaysWhyAndWhatOneLooksLike) {
  for (const char* text :
       {"", "host", ":1", "host:", "host:x", "host:70000", "host:-1", "::1:5", "[::1:5", "[]:5",
        "unix:", "unix:relative", "host:1x", "[unix]:5", "[/x:y]:5", "a b:5", "a/b:5"}) {
    const auto address = ParseAddress(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(ErrorCodeOf(address.status()), ErrorCode::kInvalid);
    EXPECT_NE(MessageOf(address.status()).find("write host:port"), std::string::npos);
  }
}

TEST(Address, APathTooLongForASocketIsRefused) {
  EXPECT_TRUE(UnixAddress("/" + std::string(106, 'p')).ok());
  EXPECT_FALSE(UnixAddress("/" + std::string(107, 'p')).ok());
}

}  // namespace
}  // namespace troupe::net
