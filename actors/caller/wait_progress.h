// How far one thread's wait for slots has come, and which of them have to wake it.
//
//   WP-1  A thread that has to sleep hangs on a slot that was not done when it hung there; so
//         whatever ends its wait wakes it.
//   WP-2  Who waits for all of many hangs on one of them at a time, the last that is not done:
//         their answers mostly come in order, and the other ones cost nobody a wake-up.
//   WP-3  What was seen done is not looked at again.
//   WP-4  With a FailureWatch it is over as soon as that has met an error.
//
// Lies on the stack of the thread that waits. `Hang` and `Unhang` are for under the reactor's
// mutex, as all of Answer::waiters.
#pragma once

#include <cstddef>
#include <vector>

#include "actors/caller/failure_watch.h"
#include "actors/slots/answer.h"
#include "actors/slots/waiter.h"

namespace troupe::actors {

class WaitProgress {
 public:
  /// Begins a wait until `needed` of the slots are done; borrows them, and `failures`.
  WaitProgress(Answer* const* slots, std::size_t count, std::size_t needed,
               FailureWatch* failures = nullptr)
      : slots_(slots), last_(count), count_(count), needed_(needed), failures_(failures) {}
  WaitProgress(const WaitProgress&) = delete;
  WaitProgress& operator=(const WaitProgress&) = delete;

  bool Satisfied();
  void Hang(Waiter& waiter);
  void Unhang();
  /// Returns true if the awaited slot is done, or there is none: the thread must choose another
  /// before it sleeps.
  bool Loose() const { return all() && (hung_ == nullptr || hung_->done()); }
  /// Calls `each` with the slots that were not done when Satisfied was last asked.
  template <typename Each>
  void ForPending(Each each) const {
    for (std::size_t i = first_; i < last_; ++i) each(slots_[i]);
  }

 private:
  bool all() const { return needed_ == count_; }
  static void Link(Answer* slot, Waiter& waiter, WaitNode& node);

  Answer* const* const slots_;
  std::size_t first_ = 0;  // all before it are done
  std::size_t last_;       // and all from this one on
  const std::size_t count_;
  const std::size_t needed_;
  FailureWatch* const failures_;
  Answer* hung_ = nullptr;  // slot that a wait for all currently waits for
  WaitNode node_;
  std::vector<WaitNode> nodes_;  // a node for each slot, in a wait for some
};

}  // namespace troupe::actors
