#include "tests/fakes/nccl/element.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace troupe::fakes {
namespace {

using train::NcclOp;
using train::NcclType;

struct Layout {
  int exponent_bits, mantissa_bits;
  bool has_infinity;  // e4m3 has one NaN and no infinity
};

Layout LayoutOf(NcclType type) {
  switch (type) {
    case NcclType::kFloat16:
      return {5, 10, true};
    case NcclType::kBfloat16:
      return {8, 7, true};
    case NcclType::kFloat8e4m3:
      return {4, 3, false};
    default:
      return {5, 2, true};
  }
}

/// Takes one rank's part of a block in: a loop for each operation, which a compiler vectorises.
template <class Wide, class Value>
void Combine(Wide* sums, std::size_t count, NcclOp op, Value value) {
  switch (op) {
    case NcclOp::kProd:
      for (std::size_t i = 0; i < count; ++i) sums[i] = static_cast<Wide>(sums[i] * value(i));
      break;
    case NcclOp::kMax:
      for (std::size_t i = 0; i < count; ++i) sums[i] = std::max<Wide>(sums[i], value(i));
      break;
    case NcclOp::kMin:
      for (std::size_t i = 0; i < count; ++i) sums[i] = std::min<Wide>(sums[i], value(i));
      break;
    default:
      for (std::size_t i = 0; i < count; ++i) sums[i] = static_cast<Wide>(sums[i] + value(i));
  }
}

/// Load and store between the bytes of a rank and the type that is computed in.
template <class Wide, class Load, class Store>
void ReduceAs(const char* const* in, int ranks, std::size_t count, NcclOp op, Load load,
              Store store) {
  constexpr std::size_t block = 1024;
  Wide sums[block];
  for (std::size_t at = 0; at < count; at += block) {
    const std::size_t here = std::min(block, count - at);
    for (std::size_t i = 0; i < here; ++i) sums[i] = load(in[0], at + i);
    for (int rank = 1; rank < ranks; ++rank)
      Combine(sums, here, op, [&](std::size_t i) -> Wide { return load(in[rank], at + i); });
    if (op == NcclOp::kAvg)
      for (std::size_t i = 0; i < here; ++i)
        sums[i] = static_cast<Wide>(sums[i] / static_cast<Wide>(ranks));
    for (std::size_t i = 0; i < here; ++i) store(at + i, sums[i]);
  }
}

template <class T>
void ReducePlain(void* out, const char* const* in, int ranks, std::size_t count, NcclOp op) {
  // Integers wrap around as the GPU's do: computed unsigned, but compared and divided signed.
  using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                               std::type_identity<T>>::type;
  const bool wraps = op == NcclOp::kSum || op == NcclOp::kProd;
  if (wraps) {
    ReduceAs<Wrapping>(
        in, ranks, count, op,
        [](const char* from, std::size_t i) { return reinterpret_cast<const Wrapping*>(from)[i]; },
        [out](std::size_t i, Wrapping value) { static_cast<Wrapping*>(out)[i] = value; });
    return;
  }
  using Wide = std::conditional_t<std::is_integral_v<T> && (sizeof(T) < 8), std::int64_t, T>;
  ReduceAs<Wide>(
      in, ranks, count, op,
      [](const char* from, std::size_t i) {
        return static_cast<Wide>(reinterpret_cast<const T*>(from)[i]);
      },
      [out](std::size_t i, Wide value) { static_cast<T*>(out)[i] = static_cast<T>(value); });
}

template <class Bits>
void ReduceSmall(void* out, const char* const* in, int ranks, std::size_t count, NcclType type,
                 NcclOp op) {
  ReduceAs<float>(
      in, ranks, count, op,
      [type](const char* from, std::size_t i) {
        return ToFloat(reinterpret_cast<const Bits*>(from)[i], type);
      },
      [out, type](std::size_t i, float value) {
        static_cast<Bits*>(out)[i] = static_cast<Bits>(FromFloat(value, type));
      });
}

}  // namespace

float ToFloat(unsigned bits, NcclType type) {
  const auto [exponent_bits, mantissa_bits, has_infinity] = LayoutOf(type);
  const unsigned exponent_max = (1u << exponent_bits) - 1, mantissa_max = (1u << mantissa_bits) - 1;
  const unsigned mantissa = bits & mantissa_max;
  const unsigned exponent = bits >> mantissa_bits & exponent_max;
  const float sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1.0f : 1.0f;
  const int bias = static_cast<int>(exponent_max >> 1);
  if (exponent == exponent_max && (has_infinity || mantissa == mantissa_max))
    return has_infinity && mantissa == 0 ? sign * INFINITY : NAN;
  const int shift = (exponent ? static_cast<int>(exponent) : 1) - bias - mantissa_bits;
  return sign * std::ldexp(static_cast<float>(mantissa | (exponent ? mantissa_max + 1 : 0)), shift);
}

unsigned FromFloat(float value, NcclType type) {
  const auto [exponent_bits, mantissa_bits, has_infinity] = LayoutOf(type);
  const unsigned exponent_max = (1u << exponent_bits) - 1, mantissa_max = (1u << mantissa_bits) - 1;
  const unsigned sign = std::signbit(value) ? 1u << (exponent_bits + mantissa_bits) : 0;
  const unsigned nan = exponent_max << mantissa_bits | mantissa_max;
  const unsigned beyond = has_infinity ? exponent_max << mantissa_bits : nan;
  if (std::isnan(value)) return sign | nan;
  if (std::isinf(value)) return sign | beyond;
  if (value == 0) return sign;
  const int bias = static_cast<int>(exponent_max >> 1);
  int exponent;
  std::frexp(value, &exponent);
  exponent = std::max(exponent - 1 + bias, 1);  // as stored; 1 also where it is denormal
  const float scaled = std::ldexp(std::fabs(value), mantissa_bits + bias - exponent);
  auto whole = static_cast<unsigned>(std::nearbyint(scaled));  // to the nearest even
  // The implicit bit carries into the exponent by itself, also when rounding went up to it.
  const unsigned bits = whole + (static_cast<unsigned>(exponent - 1) << mantissa_bits);
  return sign | (bits >= beyond ? beyond : bits);
}

void ReduceRanks(void* out, const char* const* in, int ranks, std::size_t count, NcclType type,
                 NcclOp op) {
  switch (type) {
    case NcclType::kInt8:
      return ReducePlain<std::int8_t>(out, in, ranks, count, op);
    case NcclType::kUint8:
      return ReducePlain<std::uint8_t>(out, in, ranks, count, op);
    case NcclType::kInt32:
      return ReducePlain<std::int32_t>(out, in, ranks, count, op);
    case NcclType::kUint32:
      return ReducePlain<std::uint32_t>(out, in, ranks, count, op);
    case NcclType::kInt64:
      return ReducePlain<std::int64_t>(out, in, ranks, count, op);
    case NcclType::kUint64:
      return ReducePlain<std::uint64_t>(out, in, ranks, count, op);
    case NcclType::kFloat32:
      return ReducePlain<float>(out, in, ranks, count, op);
    case NcclType::kFloat64:
      return ReducePlain<double>(out, in, ranks, count, op);
    case NcclType::kFloat16:
    case NcclType::kBfloat16:
      return ReduceSmall<std::uint16_t>(out, in, ranks, count, type, op);
    default:
      return ReduceSmall<std::uint8_t>(out, in, ranks, count, type, op);
  }
}

}  // namespace troupe::fakes
