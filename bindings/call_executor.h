// Runs calls on a Python object: the bindings' half of actors/call_server.h. Used with the GIL.
//
// Plain methods run on the serving thread, one after the other. With `concurrency` above one they
// run on a concurrent.futures.ThreadPoolExecutor of that size; coroutine methods run on an event
// loop in a thread of its own. Both then answer when they end, in any order.
#pragma once

#include <Python.h>

#include <memory>

#include "actors/call_server.h"
#include "bindings/call_host.h"

namespace troupe::bindings {

class PyExecutor : public GilHostOf<actors::CallExecutor> {
 public:
  /// `find(name)` gives what a call of that name runs, and raises AttributeError for none. A reference
  /// is held.
  PyExecutor(PyObject* find, int concurrency, const actors::CallLimits& limits);
  ~PyExecutor() override;

  std::unique_ptr<actors::CallSession> Open() override;
  bool HandlesSignals() const override { return on_main_thread_; }

  /// What a call of `name` runs: a new reference, or nullptr with an error set.
  PyObject* Find(PyObject* name) const { return PyObject_CallOneArg(find_, name); }
  const actors::CallLimits& limits() const { return limits_; }
  int concurrency() const { return concurrency_; }
  /// A method raised SystemExit or KeyboardInterrupt: kept to be raised by serve(). Steals.
  void KeepExit(PyObject* exception);
  PyObject* TakeExit();

  /// Starts `method` elsewhere and answers `sequence` of `peer` when it ends. False: an error is
  /// set.
  bool SubmitToPool(PyObject* method, PyObject* const* args, Py_ssize_t positional,
                    PyObject* keywords, actors::Peer& peer, std::uint64_t sequence);
  bool SubmitCoroutine(PyObject* coroutine, actors::Peer& peer, std::uint64_t sequence);

 private:
  PyObject* Pool();
  PyObject* Loop();

  PyObject* find_;
  const int concurrency_;
  const actors::CallLimits limits_;
  const bool on_main_thread_ = OnMainThread();
  PyObject* exit_ = nullptr;
  PyObject* pool_ = nullptr;
  PyObject* loop_ = nullptr;
  PyObject* loop_thread_ = nullptr;
};

/// Registers the type of the callbacks that answer later; once per process.
bool InitDeferred();

}  // namespace troupe::bindings
