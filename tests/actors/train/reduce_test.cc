// Reductions of every type and operation against plain loops over one element, and both 16-bit
// floating types against their definition: all of their values there and back, and the halfway
// points between neighbours.
#include "actors/train/core/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "actors/train/core/half.h"

namespace troupe::train {
namespace {

template <class T>
std::vector<T> Reduced(DataType type, ReduceOp op, const std::vector<std::vector<T>>& ranks) {
  std::vector<const void*> sources;
  for (const auto& rank : ranks) sources.push_back(rank.data());
  std::vector<T> into(ranks[0].size());
  ReducerOf(type, op)(into.data(), sources.data(), sources.size(), into.size(), ranks.size());
  return into;
}

template <class T, class Of>
void ExpectLike(DataType type, ReduceOp op, const std::vector<std::vector<T>>& ranks, Of of) {
  const auto found = Reduced(type, op, ranks);
  for (std::size_t i = 0; i < found.size(); ++i) {
    T value = ranks[0][i];
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) value = of(value, ranks[rank][i]);
    ASSERT_EQ(found[i], value) << NameOf(op) << " of " << NameOf(type) << " at " << i;
  }
}

template <class T>
void CheckType(DataType type, bool floating) {
  for (const std::size_t ranks : {2, 3, 5}) {
    std::vector<std::vector<T>> values(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank)
      for (int i = 0; i < 2500; ++i)
        values[rank].push_back(static_cast<T>((static_cast<int>(rank) * 7 + i * 3) % 11 - 3));
    ExpectLike(type, ReduceOp::kSum, values, [](T a, T b) { return static_cast<T>(a + b); });
    ExpectLike(type, ReduceOp::kProd, values, [](T a, T b) { return static_cast<T>(a * b); });
    ExpectLike(type, ReduceOp::kMax, values, [](T a, T b) { return a < b ? b : a; });
    ExpectLike(type, ReduceOp::kMin, values, [](T a, T b) { return b < a ? b : a; });
    EXPECT_EQ(ReducerOf(type, ReduceOp::kAvg) != nullptr, floating);
    EXPECT_EQ(ReducerOf(type, ReduceOp::kBitXor) != nullptr, !floating);
    if constexpr (std::is_integral_v<T>) {
      ExpectLike(type, ReduceOp::kBitAnd, values, [](T a, T b) { return static_cast<T>(a & b); });
      ExpectLike(type, ReduceOp::kBitOr, values, [](T a, T b) { return static_cast<T>(a | b); });
      ExpectLike(type, ReduceOp::kBitXor, values, [](T a, T b) { return static_cast<T>(a ^ b); });
    }
  }
}

TEST(Reduce, EveryTypeWithEveryOperation) {
  CheckType<std::int8_t>(DataType::kInt8, false);
  CheckType<std::uint8_t>(DataType::kUint8, false);
  CheckType<std::int16_t>(DataType::kInt16, false);
  CheckType<std::uint16_t>(DataType::kUint16, false);
  CheckType<std::int32_t>(DataType::kInt32, false);
  CheckType<std::uint32_t>(DataType::kUint32, false);
  CheckType<std::int64_t>(DataType::kInt64, false);
  CheckType<std::uint64_t>(DataType::kUint64, false);
  CheckType<float>(DataType::kFloat32, true);
  CheckType<double>(DataType::kFloat64, true);
}

TEST(Reduce, SumsOfIntegersWrapAround) {
  const auto most = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(Reduced<std::int32_t>(DataType::kInt32, ReduceOp::kSum, {{most}, {1}})[0],
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(Reduced<std::uint16_t>(DataType::kUint16, ReduceOp::kProd, {{65535}, {65535}})[0], 1);
}

TEST(Reduce, AnAverageDividesByTheRanks) {
  EXPECT_EQ(Reduced<float>(DataType::kFloat32, ReduceOp::kAvg, {{1}, {2}})[0], 1.5f);
  EXPECT_EQ(Reduced<double>(DataType::kFloat64, ReduceOp::kAvg, {{1}, {2}, {6}})[0], 3.0);
}

TEST(Reduce, BoolIsOrAndAnd) {
  const std::vector<std::vector<std::uint8_t>> ranks = {{0, 0, 1, 1}, {0, 1, 0, 1}};
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(Reduced(DataType::kBool, ReduceOp::kSum, ranks), (Bytes{0, 1, 1, 1}));
  EXPECT_EQ(Reduced(DataType::kBool, ReduceOp::kMax, ranks), (Bytes{0, 1, 1, 1}));
  EXPECT_EQ(Reduced(DataType::kBool, ReduceOp::kProd, ranks), (Bytes{0, 0, 0, 1}));
  EXPECT_EQ(Reduced(DataType::kBool, ReduceOp::kBitXor, ranks), (Bytes{0, 1, 1, 0}));
}

TEST(Reduce, HalvesAreSummedInFloatAndRoundedOnce) {
  // 2048 + 1 is no float16; added one after the other, two ones would both be lost.
  const std::uint16_t big = ToFloat16(2048).bits, one = ToFloat16(1).bits;
  const auto sum =
      Reduced<std::uint16_t>(DataType::kFloat16, ReduceOp::kSum, {{big}, {one}, {one}});
  EXPECT_EQ(ToFloat(Float16{sum[0]}), 2050.0f);
  const auto average = Reduced<std::uint16_t>(DataType::kBfloat16, ReduceOp::kAvg,
                                              {{ToBfloat16(1).bits}, {ToBfloat16(2).bits}});
  EXPECT_EQ(ToFloat(Bfloat16{average[0]}), 1.5f);
}

/// The value of a 16-bit floating type, from its definition.
double Defined(std::uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1), bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias)
                               : std::ldexp(1 + fraction, exponent - bias));
}

template <class Half, class Narrow>
void CheckHalf(int exponent_bits, int mantissa_bits, Narrow narrow) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const double defined = Defined(half.bits, exponent_bits, mantissa_bits);
    const float wide = ToFloat(half);
    if (std::isnan(defined)) {
      ASSERT_TRUE(std::isnan(wide) && std::isnan(ToFloat(narrow(wide)))) << bits;
      continue;
    }
    ASSERT_EQ(wide, defined) << bits;
    ASSERT_EQ(narrow(wide).bits, half.bits) << bits;
    // Halfway to the next one, and beside: ties go to the even one.
    const Half next{static_cast<std::uint16_t>(bits + 1)};
    const double other = Defined(next.bits, exponent_bits, mantissa_bits);
    if ((bits & 0x7fff) == 0x7fff || !std::isfinite(other)) continue;
    const auto middle = static_cast<float>((defined + other) / 2);
    if (middle != (defined + other) / 2) continue;  // not in a float
    ASSERT_EQ(narrow(middle).bits, (bits & 1) != 0 ? next.bits : half.bits) << bits;
    ASSERT_EQ(narrow(std::nextafter(middle, static_cast<float>(other))).bits, next.bits) << bits;
    ASSERT_EQ(narrow(std::nextafter(middle, static_cast<float>(defined))).bits, half.bits) << bits;
  }
}

TEST(Half, Float16IsWhatItsBitsSay) {
  CheckHalf<Float16>(5, 10, ToFloat16);
  EXPECT_EQ(ToFloat16(65519.0f).bits, 0x7bff);
  EXPECT_EQ(ToFloat16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(ToFloat16(-1e30f).bits, 0xfc00);
}

TEST(Half, Bfloat16IsWhatItsBitsSay) { CheckHalf<Bfloat16>(8, 7, ToBfloat16); }

}  // namespace
}  // namespace troupe::train
