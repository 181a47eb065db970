// The two 16-bit floating types as their bits, to and from float. Pure.
//
// Both round to the nearest, ties to even, as IEEE 754 and torch do; what is no number stays none.
// Written without branches on single values, so that compilers do several at once.
#pragma once

#include <bit>
#include <cstdint>

namespace troupe::train {

struct Bfloat16 {
  std::uint16_t bits;
};
struct Float16 {
  std::uint16_t bits;
};

inline float ToFloat(Bfloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

inline Bfloat16 ToBfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t none = (bits >> 16) | 0x40u;  // a carry would make an infinity of it
  const bool is_none = (bits & 0x7fffffffu) > 0x7f800000u;
  return {static_cast<std::uint16_t>(is_none ? none : rounded)};
}

inline float ToFloat(Float16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000u) << 16;
  const std::uint32_t rest = value.bits & 0x7fffu;
  // Exponent and mantissa moved to their places and scaled by 2^112, the distance of the two
  // biases: right for subnormal numbers too, whose exponent field is zero.
  const float scaled = std::bit_cast<float>(rest << 13) * std::bit_cast<float>(0x77800000u);
  const std::uint32_t endless = (rest << 13) | 0x7f800000u;
  const std::uint32_t bits = rest >= 0x7c00u ? endless : std::bit_cast<std::uint32_t>(scaled);
  return std::bit_cast<float>(bits | sign);
}

inline Float16 ToFloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u, rest = bits & 0x7fffffffu;
  // Normal: exponent rebiased, mantissa rounded; a carry runs into the exponent, as it should.
  const std::uint32_t normal = (rest - 0x38000000u + 0xfffu + ((rest >> 13) & 1u)) >> 13;
  // Subnormal: adding 0.5 leaves the wanted bits at the end of the mantissa, rounded by the adder.
  const std::uint32_t small =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) + 0.5f) - 0x3f000000u;
  const std::uint32_t finite = rest < 0x38800000u ? small : normal;
  const std::uint32_t bounded = rest >= 0x47800000u ? 0x7c00u : finite;  // 65536 and more
  const std::uint32_t whole = rest > 0x7f800000u ? 0x7e00u : bounded;
  return {static_cast<std::uint16_t>(sign | whole)};
}

}  // namespace troupe::train
