// Answers to come. A Ref is what a call returns; Get waits for its value, or throws what the call
// ended with.
//
//   troupe::Ref<int> ref = counter.Call<&Counter::Add>(2);
//   int total = ref.Get();                                   // or troupe::Get(ref, 10s)
//   auto [ready, rest] = troupe::Wait(refs, 1, 5s);
//
// Refs may be copied, and used on any thread; copies are of one answer.
#pragma once

#include <troupe/value.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

/// How long something is waited for; none: for ever.
using Timeout = std::optional<std::chrono::nanoseconds>;

class RefState;

/// An answer whose type is not known, as of a call of an actor in Python.
class TROUPE_API AnyRef {
 public:
  AnyRef() = default;
  explicit AnyRef(std::shared_ptr<RefState> state) : state_(std::move(state)) {}

  /// Blocks until the answer is there. Throws TaskError (the method threw), ActorDiedError,
  /// ActorUnavailableError, NotSentError, MaybeExecutedError, TooLargeError, InvalidError (a value
  /// that C++ does not take); TimeoutError after `timeout`, and the answer may still come.
  Value GetValue(Timeout timeout = std::nullopt) const;
  template <class T>
  T Get(Timeout timeout = std::nullopt) const {
    if constexpr (std::is_void_v<T>) {
      GetValue(timeout);
    } else {
      return FromValue<T>(GetValue(timeout));
    }
  }
  /// Returns true if the answer is there; does not wait.
  bool done() const;
  const std::shared_ptr<RefState>& state() const { return state_; }

 private:
  std::shared_ptr<RefState> state_;
};

template <class T>
class Ref : public AnyRef {
 public:
  using AnyRef::AnyRef;
  explicit Ref(AnyRef ref) : AnyRef(std::move(ref)) {}
  /// See AnyRef::GetValue. Throws InvalidError too where the answer is of another type.
  T Get(Timeout timeout = std::nullopt) const { return AnyRef::Get<T>(timeout); }
};

/// The rest of a timeout that began when this object was made.
class TROUPE_API TimeLeft {
 public:
  explicit TimeLeft(Timeout timeout);
  Timeout left() const;

 private:
  std::chrono::nanoseconds until_;
  bool ends_;
};

template <class T>
T Get(const Ref<T>& ref, Timeout timeout = std::nullopt) {
  return ref.Get(timeout);
}
/// All values, in order; throws the first error in that order. `timeout` is for all together.
template <class T>
std::vector<T> Get(const std::vector<Ref<T>>& refs, Timeout timeout = std::nullopt) {
  const TimeLeft time(timeout);
  std::vector<T> values;
  values.reserve(refs.size());
  for (const Ref<T>& ref : refs) values.push_back(ref.Get(time.left()));
  return values;
}

/// Waits until `count` of them are done, or the timeout; which are, by index.
TROUPE_API std::vector<bool> WaitFor(const std::vector<std::shared_ptr<RefState>>& states,
                                     std::size_t count, Timeout timeout);

/// (ready, not ready), both in the order given: `count` are ready unless the timeout came first.
/// Blocks. Throws InvalidError where `count` is none of 1 to the number of refs.
template <class T>
std::pair<std::vector<Ref<T>>, std::vector<Ref<T>>> Wait(const std::vector<Ref<T>>& refs,
                                                         std::size_t count = 1,
                                                         Timeout timeout = std::nullopt) {
  std::vector<std::shared_ptr<RefState>> states;
  for (const Ref<T>& ref : refs) states.push_back(ref.state());
  const std::vector<bool> done = WaitFor(states, count, timeout);
  std::pair<std::vector<Ref<T>>, std::vector<Ref<T>>> both;
  for (std::size_t i = 0; i < refs.size(); ++i) {
    const bool ready = done[i] && both.first.size() < count;
    (ready ? both.first : both.second).push_back(refs[i]);
  }
  return both;
}

}  // namespace troupe
