// Ends a wait for many answers early: it hangs on all of them, and wakes its thread when one of
// them is an error.
//
//   FW-1  An error that comes is met, whether its slot was hung on before or was done by then.
//   FW-2  An answer that is no error wakes nobody for its sake, and costs who reads it nothing.
//   FW-3  It hangs there over any number of waits that follow each other (WaitProgress attaches it
//         to its thread), and keeps what it hangs on.
//
// Lies on the stack of the thread that waits. All but `met` is under the reactor's mutex, as all of
// Answer::waiters.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "actors/slots/answer.h"
#include "actors/slots/waiter.h"

namespace troupe::actors {

class FailureWatch {
 public:
  FailureWatch() = default;
  FailureWatch(const FailureWatch&) = delete;
  FailureWatch& operator=(const FailureWatch&) = delete;

  /// Makes room for so many slots: before the first Hang.
  void Reserve(std::size_t count) { hung_.reserve(count); }
  void Hang(Answer* slot);
  /// Takes back up to `most` slots into `loose`, which is to end without the mutex. False: nothing
  /// is left.
  bool UnhangSome(std::size_t most, AnswerList* loose);
  /// The thread that waits just now; nullptr: none does.
  void Attach(Waiter* waiter) { waiter_ = waiter; }
  /// Notes that one of the slots is an error. Returns whom to wake; nullptr: nobody.
  Waiter* Meet() {
    met_.store(true, std::memory_order_release);
    return waiter_;
  }
  bool met() const { return met_.load(std::memory_order_acquire); }

 private:
  struct Hung {
    AnswerRef slot;
    WaitNode node;
  };
  std::vector<Hung> hung_;  // never grows beyond what was reserved: nodes stay where they are
  Waiter* waiter_ = nullptr;
  std::atomic<bool> met_{false};
};

}  // namespace troupe::actors
