// Method: frames written here are read back; each rule broken one at a time; then many random and
// randomly damaged frames, which must never be read outside their bytes (run under ASan).
#include "actors/core/call/call_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "actors/core/call/call_control.h"
#include "runtime/base/random.h"

namespace troupe::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string NamedCall(const std::string& method, const std::vector<std::string>& keywords,
                      CallHead head, const std::string& values) {
  ByteBuffer frame;
  frame.Extend(kFrameHeadBytes);
  head.keyword_count = static_cast<std::uint16_t>(keywords.size());
  frame.AppendValue(head);
  frame.AppendValue(static_cast<std::uint16_t>(method.size()));
  frame.Append(method.data(), method.size());
  for (const std::string& name : keywords) {
    frame.AppendValue(static_cast<std::uint16_t>(name.size()));
    frame.Append(name.data(), name.size());
  }
  frame.Append(values.data(), values.size());
  SealFrame(frame, kFlagNamed, 7, 5);
  return std::string(frame.view());
}

ParseOutcome Parse(std::string_view bytes, Frame* frame, std::string* why) {
  return ParseFrame(bytes, CallLimits(), frame, why);
}

TEST(CallFrame, RoundTrip) {
  CallHead head;
  head.shape = 3;
  head.arg_count = 4;
  const std::string bytes = NamedCall("step", {"lr", "x"}, head, "VALUES");
  EXPECT_EQ(bytes.size() % 8, 0u);
  Frame frame;
  std::string why;
  ASSERT_EQ(Parse(bytes, &frame, &why), ParseOutcome::kFrame) << why;
  EXPECT_EQ(frame.bytes, bytes.size());
  EXPECT_EQ(frame.head.flags, kFlagNamed);
  EXPECT_EQ(frame.head.sequence, 7u);
  EXPECT_EQ(frame.head.ack, 5u);
  CallPrefix call;
  ASSERT_TRUE(ParseCall(frame, CallLimits(), &call).ok());
  EXPECT_EQ(call.head.shape, 3);
  EXPECT_EQ(call.method, "step");
  EXPECT_THAT(call.keywords, ElementsAre("lr", "x"));
  EXPECT_EQ(call.values.substr(0, 6), "VALUES");
}

std::string Hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

TEST(CallFrame, GoldenBytes) {
  CallHead head;
  head.shape = 3;
  head.arg_count = 1;
  EXPECT_EQ(Hex(NamedCall("f", {}, head, "12345")),
            "54520201"
            "0200"
            "0000"
            "10000000"
            "00000000"
            "0700000000000000"
            "0500000000000000"
            "0300010000000000"
            "010066"
            "3132333435");
  CallControl hello;
  hello.session = SessionId(0x1122334455667788, 0x99aabbccddeeff00);
  hello.resumes = true;
  EXPECT_EQ(Hex(ControlFrame(ControlKind::kHello, hello, 6)),
            "54520201"
            "2000"
            "0000"
            "18000000"
            "00000000"
            "0000000000000000"
            "0600000000000000"
            "01000000"
            "01000000"
            "8877665544332211"
            "00ffeeddccbbaa99");
  EXPECT_EQ(Hex(ControlFrame(ControlKind::kWelcome, {}, 9)),
            "54520201"
            "2000"
            "0000"
            "18000000"
            "00000000"
            "0000000000000000"
            "0900000000000000"
            "02000000"
            "00000000"
            "0000000000000000"
            "0000000000000000");
}

TEST(CallFrame, EachBrokenRuleOfAControlFrameIsNamed) {
  CallControl hello;
  hello.session = SessionId(1, 2);
  const std::string good = ControlFrame(ControlKind::kHello, hello, 0);
  struct Case {
    std::size_t at;
    char value;
    const char* why;
  };
  const Case cases[] = {{4, 33, "a call or a reply as well"},
                        {16, 1, "a call or a reply as well"},
                        {8, 16, "16 bytes"},
                        {32, 9, "kind 9"},
                        {32, 0, "kind 0"},
                        {32, 2, "does not go with its kind"},
                        {36, 2, "does not go with its kind"}};
  for (const Case& c : cases) {
    std::string bytes = good;
    bytes[c.at] = c.value;
    Frame frame;
    std::string why;
    ASSERT_EQ(Parse(bytes, &frame, &why), ParseOutcome::kFrame) << why;
    EXPECT_THAT(MessageOf(ParseControl(frame).status()), HasSubstr(c.why));
  }
  Frame frame;
  std::string why;
  ASSERT_EQ(Parse(good, &frame, &why), ParseOutcome::kFrame);
  ASSERT_TRUE(ParseControl(frame).ok());
  EXPECT_EQ(ParseControl(frame)->session, hello.session);
  const std::string nobody = ControlFrame(ControlKind::kHello, {}, 0);
  ASSERT_EQ(Parse(nobody, &frame, &why), ParseOutcome::kFrame);
  EXPECT_FALSE(ParseControl(frame).ok());
}

TEST(CallFrame, AnyPrefixNeedsMore) {
  const std::string bytes = NamedCall("f", {}, {}, "0123456789");
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    Frame frame;
    std::string why;
    EXPECT_EQ(Parse(std::string_view(bytes).substr(0, n), &frame, &why), ParseOutcome::kNeedMore);
    EXPECT_GT(frame.bytes, n);
    EXPECT_LE(frame.bytes, bytes.size());
  }
}

TEST(CallFrame, ExtensionWordsAreSkipped) {
  std::string bytes = NamedCall("f", {}, {}, "");
  bytes[6] = 2;
  bytes.insert(kFrameHeadBytes, std::string(16, 'e'));
  Frame frame;
  std::string why;
  ASSERT_EQ(Parse(bytes, &frame, &why), ParseOutcome::kFrame) << why;
  EXPECT_EQ(frame.bytes, bytes.size());
  CallPrefix call;
  ASSERT_TRUE(ParseCall(frame, CallLimits(), &call).ok());
  EXPECT_EQ(call.method, "f");
}

TEST(CallFrame, EachBrokenRuleIsNamed) {
  struct Case {
    std::size_t at;
    int value;
    const char* why;
  };
  const Case cases[] = {{0, 'X', "starts with"}, {2, 9, "version 9"},   {3, 0, "kind 0"},
                        {7, 9, "extension"},     {8, 1, "multiple of"}, {11, 9, "allowed"},
                        {12, 1, "attachment"}};
  for (const Case& c : cases) {
    std::string bytes = NamedCall("f", {}, {}, "");
    bytes[c.at] = static_cast<char>(c.value);
    Frame frame;
    std::string why;
    EXPECT_EQ(Parse(bytes, &frame, &why), ParseOutcome::kBad);
    EXPECT_THAT(why, HasSubstr(c.why));
  }
}

TEST(CallFrame, LimitsOfACall) {
  const CallLimits limits;
  const auto check = [&](const std::string& bytes) {
    Frame frame;
    std::string why;
    EXPECT_EQ(Parse(bytes, &frame, &why), ParseOutcome::kFrame) << why;
    CallPrefix call;
    return ParseCall(frame, limits, &call);
  };
  CallHead head;
  head.arg_count = limits.args_max;
  EXPECT_TRUE(check(NamedCall("f", {}, head, "")).ok());
  CallLimits few = limits;
  few.args_max = 1000;
  const auto check_few = [&](const std::string& bytes) {
    Frame frame;
    std::string why;
    EXPECT_EQ(ParseFrame(bytes, few, &frame, &why), ParseOutcome::kFrame) << why;
    CallPrefix call;
    return ParseCall(frame, few, &call);
  };
  head.arg_count = few.args_max + 1;
  EXPECT_THAT(MessageOf(check_few(NamedCall("f", {}, head, ""))), HasSubstr("1001 arguments"));
  head = {};
  EXPECT_THAT(MessageOf(check(NamedCall("f", {"k"}, head, ""))), HasSubstr("keywords"));
  std::vector<std::string> names(limits.shape_keywords_max + 1, "k");
  head.arg_count = head.keyword_count = limits.shape_keywords_max + 1;
  head.shape = 0;
  EXPECT_THAT(MessageOf(check(NamedCall("f", names, head, ""))),
              HasSubstr("a call shape of 256 keywords"));
  head.shape = actors::kNoShape;
  EXPECT_TRUE(check(NamedCall("f", names, head, "")).ok());
  head = {};
  head.shape = limits.shapes_max;
  EXPECT_THAT(MessageOf(check(NamedCall("f", {}, head, ""))), HasSubstr("shape 256"));
  head = {};
  EXPECT_THAT(MessageOf(check(NamedCall("", {}, head, ""))), HasSubstr("a name of 0 bytes"));
  EXPECT_TRUE(check(NamedCall(std::string(limits.name_bytes_max, 'n'), {}, head, "")).ok());
  EXPECT_FALSE(check(NamedCall(std::string(limits.name_bytes_max + 1, 'n'), {}, head, "")).ok());
}

TEST(CallFrame, DamagedFramesAreReadWithinTheirBytes) {
  Prng random(1);
  CallHead head;
  head.arg_count = 2;
  const std::string good = NamedCall("method", {"a", "b"}, head, "some values, some values");
  for (int i = 0; i < 200000; ++i) {
    std::string text = good;
    for (std::uint64_t n = random.Below(6); n > 0; --n) {
      text[random.Below(text.size())] = static_cast<char>(random.Next());
    }
    if (random.Chance(300)) text.resize(random.Below(text.size()));
    const std::vector<char> bytes(text.begin(), text.end());  // exact size: ASan sees every overrun
    Frame frame;
    std::string why;
    if (Parse({bytes.data(), bytes.size()}, &frame, &why) != ParseOutcome::kFrame) continue;
    CallPrefix call;
    (void)ParseCall(frame, CallLimits(), &call);
    (void)ReadRuntimeError(frame.body);
  }
}

TEST(CallFrame, RuntimeErrorRoundTrip) {
  ByteBuffer body;
  AppendRuntimeError(body, ErrorCode::kActorDied, "signal 9");
  const RuntimeErrorView error = ReadRuntimeError(body.view());
  EXPECT_EQ(error.code, ErrorCode::kActorDied);
  EXPECT_EQ(error.text, "signal 9");
  EXPECT_EQ(ReadRuntimeError("short").code, ErrorCode::kInternal);
  EXPECT_EQ(ReadRuntimeError(body.view().substr(0, body.size() - 1)).code, ErrorCode::kInternal);
}

}  // namespace
}  // namespace troupe::actors
