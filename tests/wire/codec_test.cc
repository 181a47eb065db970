// Method: encode, decode, compare; then damage the bytes at every position and demand an answer
// instead of a crash.
#include "runtime/wire/codec.h"

#include <gtest/gtest.h>

#include <utility>

#include "runtime/base/random.h"
#include "runtime/wire/limits.h"

namespace troupe::wire {
namespace {

SubmitLaunch ExampleLaunch() {
  SubmitLaunch submit;
  submit.request = RequestId(1, 2);
  submit.spec.name = "pretrain";
  submit.spec.mode = LaunchMode::kDriver;
  submit.spec.ranks = 16;
  Resource gpu;
  gpu.name = "GPU";
  gpu.ten_thousandths = 10000;
  submit.spec.per_rank = {gpu};
  EnvVar var;
  var.name = "NCCL_DEBUG";
  var.value = "INFO";
  submit.spec.environment.env = {var, var};
  submit.spec.environment.import_path = {"/a", "/b c"};
  submit.spec.payload.sha256 = std::string("\0\1\2", 3);
  return submit;
}

Message Example() {
  Message message;
  message.id = 77;
  message.reply_to = 5;
  message.body = ExampleLaunch();
  return message;
}

TEST(Codec, RoundTrip) {
  const StatusOr<std::string> bytes = EncodeBody(Example());
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes->size() % 8, 0u);
  const StatusOr<Message> again = DecodeBody(*bytes);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, Example());
}

TEST(Codec, EveryKindKeepsItsDefaults) {
  for (std::size_t kind = 0; kind < std::size(kBodyNames); ++kind) {
    Message message;
    message.body = Body::OfKind(kind);
    ASSERT_EQ(message.body.index(), kind);
    const StatusOr<std::string> bytes = EncodeBody(message);
    ASSERT_TRUE(bytes.ok()) << NameOf(message.body);
    const StatusOr<Message> again = DecodeBody(*bytes);
    ASSERT_TRUE(again.ok()) << NameOf(message.body) << again.status();
    EXPECT_EQ(*again, message) << NameOf(message.body);
  }
}

TEST(Codec, UnalignedBytesDecode) {
  const std::string bytes = *EncodeBody(Example());
  const std::string shifted = "x" + bytes;
  EXPECT_EQ(*DecodeBody(std::string_view(shifted).substr(1)), Example());
}

TEST(Codec, EveryTruncationIsAnError) {
  const std::string bytes = *EncodeBody(Example());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(DecodeBody(std::string_view(bytes).substr(0, n)).ok()) << n;
  }
}

TEST(Codec, DamagedBytesNeverCrash) {
  const std::string bytes = *EncodeBody(Example());
  Prng random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = bytes;
    for (int k = 0; k < 3; ++k)
      damaged[random.Below(damaged.size())] = static_cast<char>(random.Next());
    (void)DecodeBody(damaged);
  }
}

TEST(Codec, ListOverTheLimitIsRefused) {
  Message message;
  KvKeys keys;
  keys.keys.resize(kListMax + 1);
  message.body = keys;
  EXPECT_FALSE(EncodeBody(message).ok());
}

TEST(Codec, TooManySegmentsAreRefusedBeforeAllocation) {
  std::string bytes(16, '\xff');
  EXPECT_FALSE(DecodeBody(bytes).ok());
}

}  // namespace
}  // namespace troupe::wire
