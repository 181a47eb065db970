// How a thread or a future learns that a slot is done.
//
// All fields are guarded by the reactor's mutex, except `word`, which its thread also reads
// without. A waiter and its nodes lie on the stack of the thread that waits; they are unhooked
// under the mutex before that frame ends, and are only touched under it, so that no waker meets a
// dead one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "actors/core/policy/leader_gate.h"

namespace troupe::actors {

class FailureWatch;
class Answer;

class Waiter : public GateMember {
 public:
  enum : std::uint32_t { kNotified = 1, kPromoted = 2 };
  std::atomic<std::uint32_t> word{0};
};

/// A task to run, once, on the background thread, when a slot is done (a future to complete) or a
/// connection ended. An exception must not leave Run.
class Completion {
 public:
  virtual ~Completion() = default;
  virtual void Run() = 0;
};

/// Hangs on Answer::waiters: either a waiter, or who watches for errors, or a completion (then
/// owned by the node, and the node by the list).
struct WaitNode {
  WaitNode* next = nullptr;
  Waiter* waiter = nullptr;
  FailureWatch* failures = nullptr;
  std::unique_ptr<Completion> completion;
};

/// Hooks of the waiting thread's language runtime around a wait; bindings implement them with the
/// GIL.
class WaitHost {
 public:
  virtual ~WaitHost() = default;
  /// Before the thread blocks: lets others of the process run.
  virtual void Suspend() = 0;
  /// After it: the reverse.
  virtual void Resume() = 0;
  /// Between Resume and Suspend: true ends the wait (a signal handler raised).
  virtual bool Interrupted() = 0;
  /// Returns true if signals are handled on this thread, so that it must look for them every 50 ms.
  virtual bool HandlesSignals() const = 0;
};

}  // namespace troupe::actors
