// The GIL around a wait (actors/slots/waiter.h): let go of to block, taken back after.
#pragma once

#include <Python.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "actors/caller/reactor.h"
#include "actors/net/fork_guard.h"
#include "actors/slots/answer.h"
#include "actors/slots/waiter.h"
#include "bindings/support/gil.h"
#include "bindings/support/running.h"

namespace troupe::bindings {

/// Python runs signal handlers on the main thread alone, which is the process's first.
inline bool OnMainThread() {
  struct Known {
    std::uint32_t generation = 0;
    bool main = false;
  };
  static thread_local Known known;  // two system calls per wait are too many
  if (known.generation != actors::ForkGuard::generation()) {
    known = {actors::ForkGuard::generation(), ::syscall(SYS_gettid) == ::getpid()};
  }
  return known.main;
}

template <class Base = actors::WaitHost>
class GilHostOf : public Base {
 public:
  void Suspend() override { state_ = PyEval_SaveThread(); }
  void Resume() override { RetakeGil(state_); }
  /// True: a signal handler raised, and its exception is set. The time to hear as well of what the
  /// caller of the method that waits has said.
  bool Interrupted() override {
    HearOfRunning();
    return PyErr_CheckSignals() != 0;
  }
  bool HandlesSignals() const override { return OnMainThread(); }

 private:
  PyThreadState* state_ = nullptr;
};
using GilHost = GilHostOf<>;

/// Waits, reading all channels, for what a WhenRoom() gave; empty: there is room. `polled`: where
/// the room comes from, if that is one channel. False: an error is set.
inline bool AwaitRoom(actors::AnswerRef room, actors::Channel* polled = nullptr) {
  if (!room) return true;
  actors::Answer* const slot = room.get();
  actors::WaitRequest request;
  request.slots = &slot;
  request.slot_count = 1;
  request.channels = &polled;
  request.channel_count = polled != nullptr ? 1 : 0;
  GilHost host;
  return actors::CallReactor::Current().Wait(request, host) == actors::WaitResult::kDone;
}

}  // namespace troupe::bindings
