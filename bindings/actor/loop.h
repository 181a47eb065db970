// An actor whose methods run on an asyncio event loop: coroutines as tasks, all else in between.
// Needs the GIL.
//
// The loop's own thread reads the calls (CallServer::Turn), so that nothing is handed from thread
// to thread. A coroutine is wrapped once (coroutine.h): its answer leaves within the step that ends
// it, without a future or a callback. Answers of a batch are written together: with the first step
// of the last call that was read, or with the next turn of the loop, and by another thread should a
// step take long. That is so of the methods in no concurrency group; each group has a loop on a
// thread of its own (loop_apart.h), which no other's code holds up.
#pragma once

#include <Python.h>

#include <memory>
#include <vector>

#include "bindings/actor/executor.h"

namespace troupe::bindings {

class LoopApart;
class LoopCalls;

class LoopExecutor : public PyExecutor {
 public:
  /// `loop` is asyncio's; a reference is held.
  LoopExecutor(PyExecutorOptions options, PyObject* loop);
  ~LoopExecutor() override;

  bool defers() const override { return true; }
  void Submit(DeferredCallPtr call) override;
  void Cancel(const actors::CallerConnection& peer, std::uint64_t sequence,
              bool recursive) override;
  bool RunsElsewhere() const override;
  /// Around CallServer::Turn: what is answered meanwhile is flushed by it.
  void BeginTurn();
  void EndTurn();

 private:
  const std::shared_ptr<LoopCalls> calls_;         // calls of methods in no group
  std::vector<std::shared_ptr<LoopApart>> apart_;  // a loop for each group, in their order
};

}  // namespace troupe::bindings
