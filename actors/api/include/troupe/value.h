// Values that travel between actors of either language: None, bool, int (64 bits), float, str,
// bytes, and lists, tuples and dicts of them. Arguments and results are turned into a Value and
// back by their types; copies, never shared.
//
//   | C++                                              | Python          |
//   | bool, integers, float and double                 | bool, int, float |
//   | std::string, std::string_view, const char*       | str, UTF-8       |
//   | troupe::Bytes, std::vector<std::byte>            | bytes            |
//   | std::vector, std::array, std::pair, std::tuple   | list; tuple      |
//   | std::map, std::unordered_map                     | dict             |
//   | std::optional, std::nullopt                      | the value, None  |
//   | a struct with TROUPE_FIELDS(x, y)                | {"x": .., "y": ..} |
//   | troupe::Value                                    | any of these     |
//
// A struct of somebody else's gets two functions in its own namespace:
//   troupe::Value ToTroupe(const Point& point);
//   void FromTroupe(const troupe::Value& value, Point& point);   // throws troupe::InvalidError
#pragma once

#include <troupe/error.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// Python's bytes.
struct Bytes {
  std::string data;
  friend bool operator==(const Bytes& a, const Bytes& b) { return a.data == b.data; }
};

class TROUPE_API Value {
 public:
  using List = std::vector<Value>;
  using Dict = std::vector<std::pair<Value, Value>>;  // in the order of the keys' insertion
  enum class Kind { kNone, kBool, kInt, kFloat, kString, kBytes, kList, kTuple, kDict };

  Value() = default;
  static Value Bool(bool value);
  static Value Int(std::int64_t value);
  static Value Float(double value);
  static Value String(std::string value);
  static Value OfBytes(std::string data);
  static Value OfList(List items);
  static Value OfTuple(List items);
  static Value OfDict(Dict items);

  Kind kind() const { return kind_; }
  bool is_none() const { return kind_ == Kind::kNone; }
  /// The type's name in Python: "int", "str".
  const char* type_name() const;

  // Each throws InvalidError where the value is something else.
  bool AsBool() const;
  std::int64_t AsInt() const;
  double AsFloat() const;  // takes an int too
  const std::string& AsString() const;
  const std::string& AsBytes() const;
  const List& AsList() const;  // takes a tuple too
  const Dict& AsDict() const;
  /// The value of a dict's key; InvalidError names the keys that there are.
  const Value& At(std::string_view key) const;

  friend TROUPE_API bool operator==(const Value& a, const Value& b);

 private:
  Kind kind_ = Kind::kNone;
  std::variant<std::int64_t, double, std::string, List, Dict> held_;
};

/// How a type travels. Specialised for those of the table above; of others, the functions that they
/// have.
template <class T, class Enable = void>
struct Convert;

template <class T>
Value ToValue(const T& value) {
  return Convert<T>::To(value);
}
/// Throws InvalidError: what is there, and what was asked for.
template <class T>
T FromValue(const Value& value) {
  return Convert<T>::From(value);
}

/// Throws InvalidError for an integer that the other type cannot hold.
[[noreturn]] TROUPE_API void ThrowOutOfRange(std::int64_t value, const char* wanted);
[[noreturn]] TROUPE_API void ThrowCount(std::size_t count, std::size_t wanted);
/// The names of "x, y" one after the other, without the blanks around them.
TROUPE_API std::string_view NextName(std::string_view* names);

template <>
struct Convert<Value> {
  static Value To(const Value& value) { return value; }
  static Value From(const Value& value) { return value; }
};
template <>
struct Convert<std::nullopt_t> {
  static Value To(std::nullopt_t) { return {}; }
};
template <>
struct Convert<bool> {
  static Value To(bool value) { return Value::Bool(value); }
  static bool From(const Value& value) { return value.AsBool(); }
};
template <class T>
struct Convert<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  static Value To(T value) {
    if constexpr (sizeof(T) == 8 && std::is_unsigned_v<T>) {
      if (value > static_cast<T>(std::numeric_limits<std::int64_t>::max()))
        throw InvalidError("the integer " + std::to_string(value) +
                           " has more than 63 bits: send it as a string");
    }
    return Value::Int(static_cast<std::int64_t>(value));
  }
  static T From(const Value& value) {
    const std::int64_t given = value.AsInt();
    const T result = static_cast<T>(given);
    if (static_cast<std::int64_t>(result) != given || (result < T{}) != (given < 0))
      ThrowOutOfRange(given, std::is_signed_v<T> ? "signed" : "unsigned");
    return result;
  }
};
template <class T>
struct Convert<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static Value To(T value) { return Value::Float(static_cast<double>(value)); }
  static T From(const Value& value) { return static_cast<T>(value.AsFloat()); }
};
template <class T>
struct Convert<T, std::enable_if_t<std::is_enum_v<T>>> {
  using Number = std::underlying_type_t<T>;
  static Value To(T value) { return ToValue(static_cast<Number>(value)); }
  static T From(const Value& value) { return static_cast<T>(FromValue<Number>(value)); }
};
template <>
struct Convert<std::string> {
  static Value To(const std::string& value) { return Value::String(value); }
  static std::string From(const Value& value) { return value.AsString(); }
};
template <>
struct Convert<std::string_view> {
  static Value To(std::string_view value) { return Value::String(std::string(value)); }
};
template <>
struct Convert<const char*> {
  static Value To(const char* value) { return Value::String(value); }
};
template <std::size_t N>
struct Convert<char[N]> {
  static Value To(const char (&value)[N]) { return Value::String(value); }
};
template <>
struct Convert<Bytes> {
  static Value To(const Bytes& value) { return Value::OfBytes(value.data); }
  static Bytes From(const Value& value) { return {value.AsBytes()}; }
};
template <>
struct Convert<std::vector<std::byte>> {
  static Value To(const std::vector<std::byte>& value) {
    return Value::OfBytes(std::string(reinterpret_cast<const char*>(value.data()), value.size()));
  }
  static std::vector<std::byte> From(const Value& value) {
    const std::string& bytes = value.AsBytes();
    const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
    return {data, data + bytes.size()};
  }
};
template <class T>
struct Convert<std::optional<T>> {
  static Value To(const std::optional<T>& value) { return value ? ToValue(*value) : Value(); }
  static std::optional<T> From(const Value& value) {
    if (value.is_none()) return std::nullopt;
    return FromValue<T>(value);
  }
};
template <class T>
struct Convert<std::vector<T>> {
  static Value To(const std::vector<T>& items) {
    Value::List list;
    list.reserve(items.size());
    for (const auto& each : items) list.push_back(ToValue<T>(each));
    return Value::OfList(std::move(list));
  }
  static std::vector<T> From(const Value& value) {
    std::vector<T> items;
    items.reserve(value.AsList().size());
    for (const Value& each : value.AsList()) items.push_back(FromValue<T>(each));
    return items;
  }
};
template <class T, std::size_t N>
struct Convert<std::array<T, N>> {
  static Value To(const std::array<T, N>& items) {
    Value::List list;
    for (const T& each : items) list.push_back(ToValue(each));
    return Value::OfList(std::move(list));
  }
  static std::array<T, N> From(const Value& value) {
    const Value::List& list = value.AsList();
    if (list.size() != N) ThrowCount(list.size(), N);
    std::array<T, N> items;
    for (std::size_t i = 0; i < N; ++i) items[i] = FromValue<T>(list[i]);
    return items;
  }
};
template <class... T>
struct Convert<std::tuple<T...>> {
  static Value To(const std::tuple<T...>& items) {
    return std::apply([](const T&... each) { return Value::OfTuple({ToValue(each)...}); }, items);
  }
  static std::tuple<T...> From(const Value& value) {
    if (value.AsList().size() != sizeof...(T)) ThrowCount(value.AsList().size(), sizeof...(T));
    return Made(value.AsList(), std::index_sequence_for<T...>());
  }

 private:
  template <std::size_t... I>
  static std::tuple<T...> Made(const Value::List& list, std::index_sequence<I...>) {
    return {FromValue<T>(list[I])...};
  }
};
template <class A, class B>
struct Convert<std::pair<A, B>> {
  static Value To(const std::pair<A, B>& both) {
    return Value::OfTuple({ToValue(both.first), ToValue(both.second)});
  }
  static std::pair<A, B> From(const Value& value) {
    if (value.AsList().size() != 2) ThrowCount(value.AsList().size(), 2);
    return {FromValue<A>(value.AsList()[0]), FromValue<B>(value.AsList()[1])};
  }
};
template <class Map>
struct ConvertMap {
  static Value To(const Map& items) {
    Value::Dict dict;
    dict.reserve(items.size());
    for (const auto& [key, value] : items) dict.emplace_back(ToValue(key), ToValue(value));
    return Value::OfDict(std::move(dict));
  }
  static Map From(const Value& value) {
    Map items;
    for (const auto& [key, each] : value.AsDict()) {
      items.insert_or_assign(FromValue<typename Map::key_type>(key),
                             FromValue<typename Map::mapped_type>(each));
    }
    return items;
  }
};
template <class K, class V>
struct Convert<std::map<K, V>> : ConvertMap<std::map<K, V>> {};
template <class K, class V>
struct Convert<std::unordered_map<K, V>> : ConvertMap<std::unordered_map<K, V>> {};

/// A struct that says TROUPE_FIELDS: a dict, by the names of its members.
template <class T>
struct Convert<T, std::void_t<typename T::TroupeFieldsOf>> {
  static Value To(const T& value) {
    Value::Dict dict;
    T::TroupeVisit(value, [&](std::string_view names, const auto&... members) {
      (dict.emplace_back(Value::String(std::string(NextName(&names))), ToValue(members)), ...);
    });
    return Value::OfDict(std::move(dict));
  }
  static T From(const Value& value) {
    T made{};
    T::TroupeVisit(made, [&](std::string_view names, auto&... members) {
      ((members = FromValue<std::decay_t<decltype(members)>>(value.At(NextName(&names)))), ...);
    });
    return made;
  }
};
/// A type with ToTroupe and FromTroupe beside it.
template <class T>
struct Convert<
    T, std::enable_if_t<std::is_class_v<T> &&
                        std::is_same_v<decltype(ToTroupe(std::declval<const T&>())), Value>>> {
  static Value To(const T& value) { return ToTroupe(value); }
  static T From(const Value& value) {
    T made{};
    FromTroupe(value, made);
    return made;
  }
};

}  // namespace troupe

/// Inside a struct: these members are what travels of it.
///   struct Point { double x, y; TROUPE_FIELDS(x, y) };
#define TROUPE_FIELDS(...)                                             \
  using TroupeFieldsOf = void;                                         \
  template <class TroupeSelf, class TroupeVisitor>                     \
  static void TroupeVisit(TroupeSelf& self, TroupeVisitor&& visitor) { \
    self.TroupeGive(visitor);                                          \
  }                                                                    \
  template <class TroupeVisitor>                                       \
  void TroupeGive(TroupeVisitor& visitor) const {                      \
    visitor(#__VA_ARGS__, __VA_ARGS__);                                \
  }                                                                    \
  template <class TroupeVisitor>                                       \
  void TroupeGive(TroupeVisitor& visitor) {                            \
    visitor(#__VA_ARGS__, __VA_ARGS__);                                \
  }
