// The holds of a result in memory at either end of its call: its maker keeps it until its caller
// has it, and the caller finishes the answer once it is here. Values; no locks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "actors/slots/answer.h"
#include "actors/slots/completions.h"
#include "actors/slots/waiter.h"

namespace troupe::actors {

/// Keeps a large result in its maker until the reply with it is known to be received. Destroyed
/// without that: the reply will not be sent again, and its memory is given up.
class ResultHold {
 public:
  explicit ResultHold(std::function<void()> lost) : lost_(std::move(lost)) {}
  ~ResultHold() {
    if (lost_) lost_();
  }
  ResultHold(const ResultHold&) = delete;
  ResultHold& operator=(const ResultHold&) = delete;
  void Delivered() { lost_ = nullptr; }

 private:
  std::function<void()> lost_;
};

/// The completion posted once a result is here, or never will be.
struct ResultThen {
  std::unique_ptr<Completion> run;  // nullptr: nothing is
  bool fills_only = false;          // `run` finishes the slot
};

/// Gives a result to its slot, as `then` says. Without a lock: a slot may end with that.
void Conclude(Completions& completions, Answer* slot, std::uint16_t flags, std::string_view body,
              ResultThen& then);

}  // namespace troupe::actors
