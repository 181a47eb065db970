// Method: fill every kind of message with random values many times; what comes back must be equal.
#include <gtest/gtest.h>

#include "runtime/wire/codec.h"
#include "runtime/wire/frame.h"
#include "runtime/wire/inspect.h"

namespace troupe::wire {
namespace {

TEST(CodecProperty, AnyMessageComesBackEqual) {
  Prng random(11);
  for (int round = 0; round < 200; ++round) {
    for (std::size_t kind = 0; kind < std::size(kBodyNames); ++kind) {
      Message message;
      message.id = random.Next();
      message.reply_to = random.Next();
      message.body = RandomBody(kind, random);
      FillText(message.attachment, random);
      const StatusOr<Message> again = DecodeFrame(*EncodeFrame(message));
      ASSERT_TRUE(again.ok()) << NameOf(message.body) << ": " << again.status();
      ASSERT_EQ(*again, message) << NameOf(message.body);
    }
  }
}

TEST(CodecProperty, DamagedFramesOfEveryKindNeverCrash) {
  Prng random(12);
  for (int round = 0; round < 50; ++round) {
    for (std::size_t kind = 0; kind < std::size(kBodyNames); ++kind) {
      Message message;
      message.body = RandomBody(kind, random);
      std::string frame = *EncodeFrame(message);
      for (int i = 0; i < 4; ++i) {
        frame[kHeaderBytes + random.Below(frame.size() - kHeaderBytes)] =
            static_cast<char>(random.Next());
      }
      (void)DecodeFrame(frame);
    }
  }
}

}  // namespace
}  // namespace troupe::wire
