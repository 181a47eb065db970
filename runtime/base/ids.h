// 128-bit identities, strongly typed: a NodeId never lands in an ActorId slot.
//
// Text form: 32 lower-case hex digits; short form (for people): the first 8. Values: copyable,
// ordered, hashable, usable as keys of ordered maps (reducers iterate in id order, never in hash
// order). Example:
//   LaunchId id = LaunchId::Random(random);
//   std::string line = "launch " + id.Short();
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// 16 bytes of identity without a type; use a StrongId in interfaces.
struct Id128 {
  std::uint64_t hi = 0;
  std::uint64_t lo = 0;

  friend bool operator==(const Id128& a, const Id128& b) { return a.hi == b.hi && a.lo == b.lo; }
  friend bool operator!=(const Id128& a, const Id128& b) { return !(a == b); }
  friend bool operator<(const Id128& a, const Id128& b) {
    return a.hi != b.hi ? a.hi < b.hi : a.lo < b.lo;
  }
};

/// 32 lower-case hex digits.
std::string IdToHex(const Id128& id);
/// Reads what IdToHex writes; nullopt for any other length or digit (upper case is refused too).
std::optional<Id128> IdFromHex(std::string_view text);

template <class Tag>
struct StrongId : Id128 {
  StrongId() = default;
  StrongId(std::uint64_t high, std::uint64_t low) : Id128{high, low} {}
  explicit StrongId(const Id128& id) : Id128(id) {}

  /// A new id from a seam's random source (anything with Next() -> uint64); never nil.
  template <class RandomSource>
  static StrongId Random(RandomSource& random) {
    const std::uint64_t high = random.Next();
    return StrongId(high, random.Next() | 1);
  }
  static std::optional<StrongId> FromHex(std::string_view text) {
    const std::optional<Id128> id = IdFromHex(text);
    if (!id) return std::nullopt;
    return StrongId(*id);
  }
  bool IsNil() const { return hi == 0 && lo == 0; }
  std::string Hex() const { return IdToHex(*this); }
  std::string Short() const { return IdToHex(*this).substr(0, 8); }
};

using ClusterId = StrongId<struct ClusterIdTag>;
using NodeId = StrongId<struct NodeIdTag>;
using LaunchId = StrongId<struct LaunchIdTag>;
using ActorId = StrongId<struct ActorIdTag>;
using GroupId = StrongId<struct GroupIdTag>;
using ProcessId = StrongId<struct ProcessIdTag>;
using SessionId = StrongId<struct SessionIdTag>;
using RequestId = StrongId<struct RequestIdTag>;
using TokenId = StrongId<struct TokenIdTag>;

}  // namespace troupe

template <class Tag>
struct std::hash<troupe::StrongId<Tag>> {
  std::size_t operator()(const troupe::StrongId<Tag>& id) const noexcept {
    return static_cast<std::size_t>(id.hi * 0x9E3779B97F4A7C15ull ^ id.lo);
  }
};
