// An actor whose methods run on threads: as many at once as its concurrency groups allow. Needs the
// GIL.
//
// The serving thread reads the calls; those that may run go to idle threads, made as they are
// needed and ordinary Python threads to user code (daemons: what still runs when the actor ends
// goes with it). Each group has threads of its own: what a program keeps per thread is the group's.
#pragma once

#include <Python.h>

#include <memory>
#include <vector>

#include "bindings/actor/executor.h"

namespace troupe::bindings {

class PoolExecutor : public PyExecutor {
 public:
  explicit PoolExecutor(PyExecutorOptions options);
  ~PoolExecutor() override;

  bool defers() const override { return true; }
  void Submit(DeferredCallPtr call) override;
  void LetBegin() override;
  void Cancel(const actors::CallerConnection& peer, std::uint64_t sequence,
              bool recursive) override;
  bool RunsElsewhere() const override;
  void Suspend() override;

 private:
  class Pool;
  std::vector<std::shared_ptr<Pool>> pools_;  // by group
};

}  // namespace troupe::bindings
