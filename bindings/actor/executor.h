// Runs calls on a Python object: the bindings' half of actors/server/call_server.h. Used with the
// GIL.
//
// By itself an executor runs plain methods on the serving thread, one after the other. Those
// derived from it take calls as DeferredCall: on threads (pool.h), on an event loop (loop.h).
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/server/call_server.h"
#include "bindings/actor/actor_exit.h"
#include "bindings/actor/deferred.h"
#include "bindings/support/host.h"

namespace troupe::bindings {

struct PyExecutorOptions {
  /// find(name) is what a call of that name runs, or (that, its concurrency group); AttributeError:
  /// nothing is. find(name, returns) of a call that asks for so many values, whose tensors are to
  /// stay here. A reference is held.
  PyObject* find = nullptr;
  /// Names of concurrency groups and how many calls of each run at a time; the first is that of
  /// methods in no other, and has no name.
  std::vector<std::pair<std::string, int>> groups;
  actors::CallLimits limits;
  /// Ends serving, from any thread.
  std::function<void()> stop;
};

class PyExecutor : public GilHostOf<actors::CallExecutor> {
 public:
  explicit PyExecutor(PyExecutorOptions options);
  PyExecutor(const PyExecutor&) = delete;
  PyExecutor& operator=(const PyExecutor&) = delete;
  ~PyExecutor() override;

  std::unique_ptr<actors::CallRunner> Open() override;
  bool HandlesSignals() const override { return on_main_thread_; }

  /// Returns true if calls are for Submit, and not for the serving thread.
  virtual bool defers() const { return false; }
  virtual void Submit(DeferredCallPtr) {}
  /// This thread may go into the user's code: what was submitted is not to wait for its end.
  virtual void LetBegin() {}
  /// A call that was submitted is not wanted any more, nor (`recursive`) what it started.
  virtual void Cancel(const actors::CallerConnection&, std::uint64_t /*sequence*/,
                      bool /*recursive*/) {}

  /// Returns the callable for `name` (a new reference, or nullptr with an error set), and where it
  /// runs. `keeping`: the form of the answer, for a call that leaves its tensors here; else
  /// nullptr.
  PyObject* Find(PyObject* name, const AnswerForm* keeping, std::size_t* group) const;
  /// The group of that name; false: an error is set.
  bool FindGroup(std::string_view name, std::size_t* group) const;
  const actors::CallLimits& call_limits() const { return options_.limits; }
  std::vector<int> limits() const;
  const std::shared_ptr<ActorExit>& exit() const { return exit_; }

 private:
  PyExecutorOptions options_;
  const std::shared_ptr<ActorExit> exit_;
  const bool on_main_thread_ = OnMainThread();
};

}  // namespace troupe::bindings
