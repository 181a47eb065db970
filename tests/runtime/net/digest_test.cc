// Method: known answers of the standards' own vectors, and round trips.
#include "runtime/net/digest.h"

#include <gtest/gtest.h>

#include "runtime/net/human_time.h"

namespace troupe::net {
namespace {

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c));
    text += two;
  }
  return text;
}

TEST(Digest, Sha256OfNothingAndOfAbc) {
  EXPECT_EQ(Hex(Sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Hex(Sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Digest, HmacOfRfc4231Case2) {
  EXPECT_EQ(Hex(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Digest, HkdfOfRfc5869Case1) {
  const std::string secret(22, '\x0b'), info("\xf0\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9");
  const std::string salt("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c", 13);
  EXPECT_EQ(Hex(HkdfSha256(secret, salt, info).Reveal()),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
}

TEST(Digest, Base32OfRfc4648AndBack) {
  EXPECT_EQ(Base32("foobar"), "mzxw6ytboi");
  EXPECT_EQ(Base32("f"), "my");
  for (std::size_t size = 0; size < 40; ++size) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(37 * i + size);
    EXPECT_EQ(FromBase32(Base32(bytes)), bytes);
  }
}

TEST(Digest, Base32RefusesWhatNoBytesEncodeTo) {
  EXPECT_FALSE(FromBase32("m"));   // a length of no byte string
  EXPECT_FALSE(FromBase32("mz"));  // filling that is not zero: a second text for the same byte
  EXPECT_FALSE(FromBase32("MY"));
  EXPECT_FALSE(FromBase32("m1"));
}

TEST(Digest, Crc32cOfItsCheckString) { EXPECT_EQ(Crc32c("123456789"), 0xe3069283u); }

TEST(Digest, ConstantTimeEqualIsEquality) {
  EXPECT_TRUE(ConstantTimeEqual("abc", "abc"));
  EXPECT_FALSE(ConstantTimeEqual("abc", "abd"));
  EXPECT_FALSE(ConstantTimeEqual("abc", "ab"));
}

TEST(HumanTime, LengthsAreInTheLargestUnitThatFitsTwice) {
  EXPECT_EQ(HumanLength(119 * kSecondUs), "119 s");
  EXPECT_EQ(HumanLength(120 * kSecondUs), "2 min");
  EXPECT_EQ(HumanLength(2 * kHourUs + 5), "2 h");
  EXPECT_EQ(HumanLength(47 * kHourUs), "47 h");
  EXPECT_EQ(HumanLength(3 * kDayUs), "3 days");
  EXPECT_EQ(HumanTime(1'700'000'000ull * kSecondUs), "2023-11-14 22:13 UTC");
}

}  // namespace
}  // namespace troupe::net
