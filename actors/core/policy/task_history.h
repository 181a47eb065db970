// The latest tasks of this process that are over: what each was, where it ran, from when to when.
// Pure; not thread-safe.
//
// Bounded: a ring, made at the first task. What it keeps of a task is its name and five numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/core/policy/task_dispatch.h"
#include "runtime/base/time.h"

namespace troupe::actors {

class TaskHistory {
 public:
  static constexpr std::size_t kMost = 4096;

  struct Ended {
    std::uint64_t id = 0;  // id of its answer (Answer::id)
    std::shared_ptr<const std::string> name;
    LaneId lane = 0;  // lane where it ran; 0: none
    Instant ended{};
    Duration took{};
    bool failed = false;
  };

  void Add(Ended task) {
    if (ring_.size() < kMost) {
      if (ring_.empty()) ring_.reserve(kMost);
      ring_.push_back(std::move(task));
      return;
    }
    ring_[next_] = std::move(task);
    next_ = (next_ + 1) % kMost;
  }
  /// The latest so many at most, the oldest of them first.
  std::vector<Ended> Latest(std::size_t most) const {
    const std::size_t count = most < ring_.size() ? most : ring_.size();
    std::vector<Ended> latest;
    latest.reserve(count);
    for (std::size_t i = ring_.size() - count; i < ring_.size(); ++i)
      latest.push_back(ring_[(next_ + i) % ring_.size()]);
    return latest;
  }

 private:
  std::vector<Ended> ring_;
  std::size_t next_ = 0;  // the oldest, once it is full
};

}  // namespace troupe::actors
