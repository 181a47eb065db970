#include "runtime/store/core/control_stream.h"

#include <utility>

#include "runtime/store/core/mutant.h"

namespace troupe::store {

const ControlFrame& ControlStream::Push(ControlBody body) {
  ControlFrame frame;
  frame.n = ++sent_;
  frame.body = std::move(body);
  kept_.push_back(std::move(frame));
  return kept_.back();
}

ControlStream::Taken ControlStream::Take(std::uint64_t n) {
  if (Is(Mutant::kDupDrop) && n <= applied_) return Taken::kApply;
  if (n <= applied_) return Taken::kRepeat;
  if (n != applied_ + 1) return Taken::kGap;
  applied_ = n;
  return Taken::kApply;
}

bool ControlStream::Acknowledge(std::uint64_t n) {
  if (n > sent_) return false;
  while (!kept_.empty() && kept_.front().n <= n) kept_.pop_front();
  return true;
}

}  // namespace troupe::store
