// The calls of a concurrency group of an actor on an event loop: they run on a loop of the group's
// own, on a thread of its own, made at the first of them. Needs the GIL.
//
// The serving thread hands calls over; all else that is done with LoopCalls is done on the group's
// thread.
#pragma once

#include <Python.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "bindings/actor/loop_calls.h"

namespace troupe::bindings {

class LoopApart : public std::enable_shared_from_this<LoopApart> {
 public:
  LoopApart(int limit, std::shared_ptr<ActorExit> exit) : limit_(limit), exit_(std::move(exit)) {}
  ~LoopApart();
  LoopApart(const LoopApart&) = delete;
  LoopApart& operator=(const LoopApart&) = delete;

  void Submit(DeferredCallPtr call);
  /// Cancels a call: one that has not begun is answered so, any other is asked on its thread. True:
  /// it had not begun.
  bool Cancel(const actors::CallerConnection& peer, std::uint64_t sequence, bool recursive);
  /// No more calls are begun; the loop ends, unless a coroutine blocks it.
  void End();
  bool runs() const { return !coming_.empty() || (calls_ != nullptr && calls_->runs()); }

 private:
  /// False: an error is set, there is no loop.
  bool Begin();
  /// Has the group's thread do something, soon. False: an error is set.
  bool Later(std::function<void()> action);
  /// Begins what has come.
  void Take();

  const int limit_;
  const std::shared_ptr<ActorExit> exit_;
  PyObject* loop_ = nullptr;
  std::shared_ptr<LoopCalls> calls_;
  std::deque<DeferredCallPtr> coming_;
  bool due_ = false;  // Take
};

}  // namespace troupe::bindings
