// The calls that run on one event loop; outlives the executor with the last coroutine. Needs the
// GIL.
#pragma once

#include <Python.h>

#include <cstdint>
#include <memory>

#include "actors/core/policy/concurrency_groups.h"
#include "actors/server/caller_connection.h"
#include "actors/server/reply_flusher.h"
#include "bindings/actor/coroutine.h"
#include "bindings/actor/deferred.h"
#include "bindings/actor/executor.h"
#include "runtime/base/time.h"

namespace troupe::bindings {

class LoopCalls : public std::enable_shared_from_this<LoopCalls> {
 public:
  /// `limit`: how many calls run at a time.
  LoopCalls(int limit, PyObject* loop, std::shared_ptr<ActorExit> exit);
  ~LoopCalls();
  LoopCalls(const LoopCalls&) = delete;
  LoopCalls& operator=(const LoopCalls&) = delete;

  void Submit(DeferredCallPtr call);
  /// Cancels a call: one that waits is answered so, one that runs gets asyncio's cancellation.
  /// False: it is not here.
  bool Cancel(const actors::CallerConnection& peer, std::uint64_t sequence, bool recursive);
  void BeginTurn() { in_turn_ = true; }
  void EndTurn();
  /// No more calls are begun, and the loop is let go.
  void Over();

  /// A coroutine's first step is about to run.
  void Stepping() { --fresh_; }
  /// The step is over, the coroutine waits.
  void Waits(bool first_step);
  /// A coroutine is over: its result (stolen), or the error that is set, is the answer.
  void Ended(DeferredCallPtr call, PyObject* result, bool first_step);
  CoroutineList& coroutines() { return coroutines_; }
  bool runs() const { return group_.running(0) != 0; }
  /// Writes the answers that were held back.
  void Flush();

 private:
  void Start(DeferredCallPtr call);
  bool StartTask(DeferredCallPtr& call, PyObject* coroutine);
  void Conclude(DeferredCall& call, PyObject* result, bool first_step);
  void Hold(actors::CallerConnection& peer, bool first_step);
  bool CallFlushSoon();

  actors::ConcurrencyGroups<DeferredCallPtr> group_;  // used without other groups
  const std::shared_ptr<ActorExit> exit_;
  PyObject* create_task_ = nullptr;
  PyObject* call_soon_ = nullptr;
  PyObject* flush_ = nullptr;  // a callable
  PyObject* cancelled_error_ = nullptr;
  CoroutineList coroutines_;
  bool in_turn_ = false;
  bool over_ = false;
  int fresh_ = 0;  // tasks that have not made a step
  bool flush_due_ = false;
  std::shared_ptr<actors::CallerConnection> held_;  // has answers that are not written
  Instant held_since_{};
  const std::uint32_t generation_;
  std::unique_ptr<actors::ReplyFlusher> flusher_;
};

}  // namespace troupe::bindings
