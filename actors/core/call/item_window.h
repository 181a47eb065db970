// How far who makes the items of a stream may be ahead of who takes them. Pure; not thread-safe.
//
//   IW-1  At most `ahead` items (kItemsMax unless the caller said less) are sent and not taken, and
//         of bytes kBytesMax, plus one item.
//   IW-2  The taker says what it has taken when that is half of what it allowed, 1,024 items or 4
//         MiB: a maker that waits and a taker that has taken all never both wait.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace troupe::actors {

class ItemWindow {
 public:
  static constexpr std::uint64_t kItemsMax = 1u << 18;
  static constexpr std::uint64_t kBytesMax = 32u << 20;

  /// `ahead` 0: as many as the limits allow.
  explicit ItemWindow(std::uint32_t ahead)
      : ahead_(ahead == 0 ? kItemsMax : std::min<std::uint64_t>(ahead, kItemsMax)) {}

  void Sent(std::size_t bytes) {
    sizes_.push_back(bytes);
    bytes_ += bytes;
  }
  /// The taker has taken `items` in all; what was said before, or of items never sent, changes
  /// nothing.
  void Taken(std::uint64_t items) {
    for (; taken_ < items && !sizes_.empty(); ++taken_) {
      bytes_ -= sizes_.front();
      sizes_.pop_front();
    }
  }
  bool MaySend() const { return sizes_.size() < ahead_ && bytes_ < kBytesMax; }

 private:
  const std::uint64_t ahead_;
  std::deque<std::size_t> sizes_;  // sizes of the items sent and not taken
  std::uint64_t bytes_ = 0;
  std::uint64_t taken_ = 0;
};

/// The taker's half: when to say what was taken.
class TakenReport {
 public:
  explicit TakenReport(std::uint32_t ahead)
      : every_(ahead == 0 ? 1024 : std::clamp<std::uint64_t>(ahead / 2, 1, 1024)) {}

  bool Due(std::uint64_t items, std::uint64_t bytes) {
    if (items - items_ < every_ && bytes - bytes_ < (4u << 20)) return false;
    items_ = items;
    bytes_ = bytes;
    return true;
  }

 private:
  const std::uint64_t every_;
  std::uint64_t items_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace troupe::actors
