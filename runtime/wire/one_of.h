// A value of one of many kinds. std::variant instantiates its copying, moving, destroying and
// comparing in every source that touches one: with a hundred kinds that was a third of the build.
// Here a table of functions per family stands in one source (messages.cc). C++17, because the codec
// is compiled as C++17.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <new>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace troupe::wire {

/// Operations on the bytes of one kind.
struct KindOperations {
  void (*make)(void* at);
  void (*copy)(void* at, const void* from);
  void (*move)(void* at, void* from);  // `from` stays to be destroyed
  void (*destroy)(void* at);
  bool (*equal)(const void* a, const void* b);
};

template <class T>
constexpr KindOperations OperationsOf() {
  static_assert(std::is_nothrow_move_constructible_v<T>, "a body's moves must not fail");
  return {[](void* at) { ::new (at) T(); },
          [](void* at, const void* from) { ::new (at) T(*static_cast<const T*>(from)); },
          [](void* at, void* from) { ::new (at) T(std::move(*static_cast<T*>(from))); },
          [](void* at) { static_cast<T*>(at)->~T(); },
          [](const void* a, const void* b) {
            return *static_cast<const T*>(a) == *static_cast<const T*>(b);
          }};
}

/// The number of kind T in Family, as `value`; not defined where T is none of its kinds.
template <class Family, class T>
struct KindOf;

/// A value of one of Family's kinds; never empty. Family has kBytes and kAlign (room for its
/// largest kind) and kOperations (by the kind's number). Get, GetIf, Holds and Visit look into it.
/// A moved-from one keeps its kind. Example: `Body body = Heartbeat(); if (auto* beat =
/// GetIf<Heartbeat>(&body)) ...`
template <class Family>
class OneOf {
 public:
  /// The first kind, with its defaults.
  OneOf() : kind_(0) { Operations().make(bytes_); }
  OneOf(const OneOf& other) : kind_(other.kind_) { Operations().copy(bytes_, other.bytes_); }
  OneOf(OneOf&& other) noexcept : kind_(other.kind_) { Operations().move(bytes_, other.bytes_); }
  template <class T, std::size_t kKind = KindOf<Family, std::decay_t<T>>::value>
  OneOf(T&& value) : kind_(kKind) {  // NOLINT: a body is any of its kinds
    ::new (static_cast<void*>(bytes_)) std::decay_t<T>(std::forward<T>(value));
  }
  ~OneOf() { Operations().destroy(bytes_); }

  OneOf& operator=(OneOf&& other) noexcept {
    if (this == &other) return *this;
    Operations().destroy(bytes_);
    kind_ = other.kind_;
    Operations().move(bytes_, other.bytes_);
    return *this;
  }
  OneOf& operator=(const OneOf& other) { return *this = OneOf(other); }
  template <class T, std::size_t kKind = KindOf<Family, std::decay_t<T>>::value>
  OneOf& operator=(T&& value) {
    return *this = OneOf(std::forward<T>(value));
  }
  /// The kind of this number, with its defaults; there must be one.
  static OneOf OfKind(std::size_t kind) {
    if (kind >= std::size(Family::kOperations)) std::abort();
    OneOf made;
    made.Operations().destroy(made.bytes_);
    made.kind_ = kind;
    made.Operations().make(made.bytes_);
    return made;
  }
  /// Becomes a T with its defaults.
  template <class T>
  T& Emplace() {
    *this = OneOf(T());
    return *static_cast<T*>(Bytes());
  }

  /// The kind's number: on the wire for messages, in the journal for events.
  std::size_t index() const { return kind_; }
  void* Bytes() { return std::launder(bytes_); }
  const void* Bytes() const { return std::launder(bytes_); }

  friend bool operator==(const OneOf& a, const OneOf& b) {
    return a.kind_ == b.kind_ && a.Operations().equal(a.bytes_, b.bytes_);
  }
  friend bool operator!=(const OneOf& a, const OneOf& b) { return !(a == b); }

 private:
  const KindOperations& Operations() const { return Family::kOperations[kind_]; }

  std::size_t kind_;
  alignas(Family::kAlign) std::byte bytes_[Family::kBytes];
};

/// Returns true if it is a T.
template <class T, class Family>
bool Holds(const OneOf<Family>& one) {
  return one.index() == KindOf<Family, T>::value;
}
/// The T in it, null where it is another kind. Lives as long as `one` keeps its kind.
template <class T, class Family>
T* GetIf(OneOf<Family>* one) {
  return Holds<T>(*one) ? static_cast<T*>(one->Bytes()) : nullptr;
}
template <class T, class Family>
const T* GetIf(const OneOf<Family>* one) {
  return Holds<T>(*one) ? static_cast<const T*>(one->Bytes()) : nullptr;
}
/// The T in it; throws std::bad_cast where it is another kind.
template <class T, class Family>
T& Get(OneOf<Family>& one) {
  if (!Holds<T>(one)) throw std::bad_cast();
  return *static_cast<T*>(one.Bytes());
}
template <class T, class Family>
const T& Get(const OneOf<Family>& one) {
  if (!Holds<T>(one)) throw std::bad_cast();
  return *static_cast<const T*>(one.Bytes());
}

}  // namespace troupe::wire
