#include "actors/train/core/reduce.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "actors/train/core/half.h"

namespace troupe::train {
namespace {

constexpr std::size_t kBlock = 1024;  // elements that stay in the first cache while ranks are added

struct Bool {
  std::uint8_t value;
};

/// The type in which numbers are computed, and the conversions.
template <class T>
struct Computed {
  // Unsigned and not below int: signed overflow, also of promoted small types, is undefined.
  using type = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;
  static type From(T value) { return static_cast<type>(value); }
  static T To(type value) { return static_cast<T>(value); }
};
template <>
struct Computed<float> {
  using type = float;
  static float From(float value) { return value; }
  static float To(float value) { return value; }
};
template <>
struct Computed<double> {
  using type = double;
  static double From(double value) { return value; }
  static double To(double value) { return value; }
};
template <>
struct Computed<Float16> {
  using type = float;
  static float From(Float16 value) { return ToFloat(value); }
  static Float16 To(float value) { return ToFloat16(value); }
};
template <>
struct Computed<Bfloat16> {
  using type = float;
  static float From(Bfloat16 value) { return ToFloat(value); }
  static Bfloat16 To(float value) { return ToBfloat16(value); }
};
template <>
struct Computed<Bool> {
  using type = std::uint8_t;
  static std::uint8_t From(Bool value) { return value.value != 0; }
  static Bool To(std::uint8_t value) { return {value}; }
};

/// Integers are compared as what they are, everything else as what it is computed in.
template <class T>
struct Compared {
  using type = typename Computed<T>::type;
  static type From(T value) { return Computed<T>::From(value); }
  static T To(type value) { return Computed<T>::To(value); }
};
template <class T>
  requires std::is_integral_v<T>
struct Compared<T> {
  using type = T;
  static T From(T value) { return value; }
  static T To(T value) { return value; }
};

struct Sum {
  template <class A>
  static A Of(A a, A b) {
    return static_cast<A>(a + b);
  }
};
struct Prod {
  template <class A>
  static A Of(A a, A b) {
    return static_cast<A>(a * b);
  }
};
struct Max {
  template <class A>
  static A Of(A a, A b) {
    return a < b ? b : a;
  }
};
struct Min {
  template <class A>
  static A Of(A a, A b) {
    return b < a ? b : a;
  }
};
struct BitAnd {
  template <class A>
  static A Of(A a, A b) {
    return static_cast<A>(a & b);
  }
};
struct BitOr {
  template <class A>
  static A Of(A a, A b) {
    return static_cast<A>(a | b);
  }
};
struct BitXor {
  template <class A>
  static A Of(A a, A b) {
    return static_cast<A>(a ^ b);
  }
};

/// Two ranks, the usual case on a small node: straight through.
template <class T, class Via, class Op, bool kDivide>
void ReduceTwo(T* into, const T* a, const T* b, std::size_t count, std::size_t ranks) {
  for (std::size_t i = 0; i < count; ++i) {
    auto value = Op::Of(Via::From(a[i]), Via::From(b[i]));
    if constexpr (kDivide) value = value / static_cast<decltype(value)>(ranks);
    into[i] = Via::To(value);
  }
}

template <class T, class Via, class Op, bool kDivide>
void ReduceAs(void* into, const void* const* sources, std::size_t sources_count, std::size_t count,
              std::size_t ranks) {
  using A = typename Via::type;
  T* const out = static_cast<T*>(into);
  const auto source = [sources](std::size_t k) { return static_cast<const T*>(sources[k]); };
  if (sources_count == 2)
    return ReduceTwo<T, Via, Op, kDivide>(out, source(0), source(1), count, ranks);
  std::array<A, kBlock> sum;
  for (std::size_t at = 0; at < count; at += kBlock) {
    const std::size_t some = std::min(kBlock, count - at);
    const T* first = source(0) + at;
    for (std::size_t i = 0; i < some; ++i) sum[i] = Via::From(first[i]);
    for (std::size_t k = 1; k < sources_count; ++k) {
      const T* next = source(k) + at;
      for (std::size_t i = 0; i < some; ++i) sum[i] = Op::Of(sum[i], Via::From(next[i]));
    }
    if constexpr (kDivide)
      for (std::size_t i = 0; i < some; ++i) sum[i] = sum[i] / static_cast<A>(ranks);
    for (std::size_t i = 0; i < some; ++i) out[at + i] = Via::To(sum[i]);
  }
}

template <class T>
constexpr bool kFloating = std::is_floating_point_v<typename Computed<T>::type>;

template <class T>
Reducer ReducerFor(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return ReduceAs<T, Computed<T>, Sum, false>;
    case ReduceOp::kProd:
      return ReduceAs<T, Computed<T>, Prod, false>;
    case ReduceOp::kMax:
      return ReduceAs<T, Compared<T>, Max, false>;
    case ReduceOp::kMin:
      return ReduceAs<T, Compared<T>, Min, false>;
    case ReduceOp::kAvg:
      if constexpr (kFloating<T>) return ReduceAs<T, Computed<T>, Sum, true>;
      return nullptr;
    case ReduceOp::kBitAnd:
      if constexpr (!kFloating<T>) return ReduceAs<T, Computed<T>, BitAnd, false>;
      return nullptr;
    case ReduceOp::kBitOr:
      if constexpr (!kFloating<T>) return ReduceAs<T, Computed<T>, BitOr, false>;
      return nullptr;
    case ReduceOp::kBitXor:
      if constexpr (!kFloating<T>) return ReduceAs<T, Computed<T>, BitXor, false>;
      return nullptr;
  }
  return nullptr;
}

/// A sum of truths is one.
ReduceOp OfBool(ReduceOp op) {
  if (op == ReduceOp::kSum) return ReduceOp::kBitOr;
  if (op == ReduceOp::kProd) return ReduceOp::kBitAnd;
  return op;
}

}  // namespace

const char* NameOf(DataType type) {
  constexpr const char* names[] = {"int8",    "uint8",    "int32",      "uint32",
                                   "int64",   "uint64",   "float16",    "float32",
                                   "float64", "bfloat16", "float8e4m3", "float8e5m2"};
  const int index = static_cast<int>(type);
  if (index >= 0 && index < kNcclTypes) return names[index];
  if (type == DataType::kInt16) return "int16";
  if (type == DataType::kUint16) return "uint16";
  return type == DataType::kBool ? "bool" : "an unknown type";
}

const char* NameOf(ReduceOp op) {
  constexpr const char* names[] = {"sum", "product", "max", "min", "avg"};
  const int index = static_cast<int>(op);
  if (index >= 0 && index < kNcclOps) return names[index];
  if (op == ReduceOp::kBitAnd) return "bitwise and";
  if (op == ReduceOp::kBitOr) return "bitwise or";
  return op == ReduceOp::kBitXor ? "bitwise xor" : "an unknown operation";
}

Reducer ReducerOf(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::kInt8:
      return ReducerFor<std::int8_t>(op);
    case DataType::kUint8:
      return ReducerFor<std::uint8_t>(op);
    case DataType::kInt16:
      return ReducerFor<std::int16_t>(op);
    case DataType::kUint16:
      return ReducerFor<std::uint16_t>(op);
    case DataType::kInt32:
      return ReducerFor<std::int32_t>(op);
    case DataType::kUint32:
      return ReducerFor<std::uint32_t>(op);
    case DataType::kInt64:
      return ReducerFor<std::int64_t>(op);
    case DataType::kUint64:
      return ReducerFor<std::uint64_t>(op);
    case DataType::kFloat16:
      return ReducerFor<Float16>(op);
    case DataType::kBfloat16:
      return ReducerFor<Bfloat16>(op);
    case DataType::kFloat32:
      return ReducerFor<float>(op);
    case DataType::kFloat64:
      return ReducerFor<double>(op);
    case DataType::kBool:
      return ReducerFor<Bool>(OfBool(op));
    case DataType::kFloat8e4m3:
    case DataType::kFloat8e5m2:
      break;
  }
  return nullptr;
}

}  // namespace troupe::train
