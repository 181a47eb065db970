// The outstanding calls of one channel, by sequence number. Pure.
//
//   SR-1  Put gives sequences 1, 2, 3, ... without a gap.
//   SR-2  Take returns what was put under a sequence exactly once, in any order; a null one for a
//         sequence never given, already taken, or not yet given.
//   SR-3  Memory is proportional to the span between the oldest untaken and the newest sequence.
//
// An actor that answers in order makes Take a pop of the front; a concurrent one does not, and the
// cost stays one array access. T is a pointer type, null as T{}; an owning one is moved in and out,
// and what is here at the end is given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace troupe::actors {

template <class T>
class SlotRing {
 public:
  /// Stores `item` and returns its sequence.
  std::uint64_t Put(T item) {
    if (next_ - base_ == items_.size()) Grow();
    items_[next_ & mask_] = std::move(item);
    ++count_;
    return next_++;
  }
  T Take(std::uint64_t sequence) {
    if (!Holds(sequence)) return T{};
    T item = std::exchange(items_[sequence & mask_], T{});
    --count_;
    while (base_ < next_ && items_[base_ & mask_] == nullptr) ++base_;
    return item;
  }
  /// Returns true if Take would return something.
  bool Holds(std::uint64_t sequence) const {
    return sequence >= base_ && sequence < next_ && items_[sequence & mask_] != nullptr;
  }
  /// The oldest that is not taken, or a null one.
  T TakeFront() { return Take(base_); }
  /// Calls `look` with each that is not taken, the oldest first.
  template <class Look>
  void ForEach(Look look) const {
    for (std::uint64_t s = base_; s < next_; ++s) {
      if (items_[s & mask_] != nullptr) look(items_[s & mask_]);
    }
  }
  /// Returns true if `sequence` was ever given out.
  bool Given(std::uint64_t sequence) const { return sequence >= 1 && sequence < next_; }

  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  std::uint64_t next_sequence() const { return next_; }
  /// The width of the window, what SR-3 bounds.
  std::size_t span() const { return next_ - base_; }

 private:
  void Grow() {
    const std::size_t size = items_.empty() ? 64 : items_.size() * 2;
    std::vector<T> items(size);
    for (std::uint64_t s = base_; s < next_; ++s)
      items[s & (size - 1)] = std::move(items_[s & mask_]);
    items_.swap(items);
    mask_ = size - 1;
  }

  std::vector<T> items_;
  std::uint64_t mask_ = 0;
  std::uint64_t base_ = 1;
  std::uint64_t next_ = 1;
  std::size_t count_ = 0;
};

}  // namespace troupe::actors
