// Plain values as pickles: what is written is read again; what Python writes is given here as bytes
// (pickle.dumps of the value in the comment), so that the test needs no Python. What is no plain
// value is refused by name, and damaged bytes never do more than that.
#include "actors/api/core/pickle.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/base/random.h"

namespace troupe::api {
namespace {

using std::string_literals::operator""s;

Value Sample() {
  return Value::OfDict(
      {{Value::String("none"), Value()},
       {Value::String("bools"), Value::OfTuple({Value::Bool(true), Value::Bool(false)})},
       {Value::String("ints"),
        Value::OfList({Value::Int(0), Value::Int(255), Value::Int(256), Value::Int(-1),
                       Value::Int(INT32_MIN), Value::Int(INT64_MAX), Value::Int(INT64_MIN)})},
       {Value::Int(7), Value::Float(-0.5)},
       {Value::String("text"), Value::String(std::string(300, 'x') + "\xc3\xa9")},
       {Value::String("bytes"), Value::OfBytes("\0\xff"s)},
       {Value::String("empty"),
        Value::OfList({Value::OfList({}), Value::OfTuple({}), Value::OfDict({})})}});
}

std::string Refusal(std::string_view pickle) {
  const StatusOr<Value> value = ReadPickle(pickle);
  EXPECT_FALSE(value.ok());
  return value.ok() ? "" : MessageOf(value.status());
}

TEST(Pickle, WhatIsWrittenIsReadAgain) {
  std::string pickle;
  ASSERT_TRUE(WritePickle(Sample(), &pickle).ok());
  const StatusOr<Value> value = ReadPickle(pickle);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_TRUE(*value == Sample());
}

TEST(Pickle, WhatPythonWritesIsRead) {
  // pickle.dumps([1, -2, 3.5, "a", b"b", None, True, (1, 2), {"k": [70000]}], protocol=5)
  const std::string pickle =
      "\x80\x05\x95\x34\0\0\0\0\0\0\0]\x94(K\x01J\xfe\xff\xff\xffG@\x0c\0\0\0\0\0\0\x8c\x01"
      "a\x94"
      "C\x01"
      "b\x94N\x88K\x01K\x02\x86\x94}\x94\x8c\x01k\x94]\x94Jp\x11\x01\0"
      "ase."s;
  const StatusOr<Value> value = ReadPickle(pickle);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_TRUE(
      *value ==
      Value::OfList({Value::Int(1), Value::Int(-2), Value::Float(3.5), Value::String("a"),
                     Value::OfBytes("b"), Value(), Value::Bool(true),
                     Value::OfTuple({Value::Int(1), Value::Int(2)}),
                     Value::OfDict({{Value::String("k"), Value::OfList({Value::Int(70000)})}})}));
}

TEST(Pickle, PK1_WhatNamesAClassIsRefusedByThatName) {
  EXPECT_NE(Refusal("\x80\x04\x8c\x05numpy\x94\x8c\x05"
                    "array\x94\x93\x94)R."s)
                .find("numpy.array"),
            std::string::npos);
  EXPECT_NE(Refusal("cos\nsystem\n(S'true'\ntR."s).find("os.system"), std::string::npos);
  EXPECT_NE(Refusal("\x80\x04\x8f\x94."s).find("a set"), std::string::npos);
  EXPECT_NE(Refusal("\x80\x05\x97."s).find("an array"), std::string::npos);
  EXPECT_NE(Refusal("\x80\x04\x8a\x09\0\0\0\0\0\0\0\0\x01."s).find("more than 64 bits"),
            std::string::npos);
}

TEST(Pickle, PK2_CopiesOfCopiesAreBounded) {
  // l = []; for _ in range(40): l = [l, l], by the memo: 2 to the 40 lists.
  std::string lists = "\x80\x04]\x94";
  for (int i = 0; i < 40; ++i) {
    lists += "0]\x94(h";
    lists += static_cast<char>(i);
    lists += "h";
    lists += static_cast<char>(i);
    lists += "e";
  }
  EXPECT_NE(MessageOf(ReadPickle(lists + ".", 4u << 20).status()).find("more than 4 MiB"),
            std::string::npos);
  // l = []; l.append(l)
  EXPECT_NE(Refusal("\x80\x04]\x94h\0a."s).find("inside itself"), std::string::npos);
}

TEST(Pickle, DeepValuesAreRefusedOnBothSides) {
  Value deep;
  for (std::size_t i = 0; i <= kDepthMax; ++i) deep = Value::OfList({deep});
  std::string pickle;
  EXPECT_EQ(ErrorCodeOf(WritePickle(deep, &pickle)), ErrorCode::kInvalid);
}

TEST(Pickle, PK3_DamagedBytesAreRefusedOrAnotherValue) {
  std::string pickle;
  ASSERT_TRUE(WritePickle(Sample(), &pickle).ok());
  for (std::size_t size = 0; size < pickle.size(); ++size)
    EXPECT_FALSE(ReadPickle(pickle.substr(0, size)).ok());
  Prng random(7);
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = pickle;
    for (int each = 0; each < 3; ++each)
      damaged[random.Next() % damaged.size()] = static_cast<char>(random.Next());
    static_cast<void>(ReadPickle(damaged, 1u << 20).ok());
  }
}

}  // namespace
}  // namespace troupe::api
