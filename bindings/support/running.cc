#include "bindings/support/running.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "actors/caller/reactor.h"
#include "actors/slots/waiter.h"
#include "actors/tasks/task_pool.h"
#include "bindings/support/gil.h"
#include "bindings/support/nanobind.h"

namespace nb = nanobind;

namespace troupe::bindings {

namespace {

/// Reads what its caller has said of it meanwhile.
void LookAhead(const RunningCall& call) {
  if (call.reads != nullptr) call.reads->LookAhead(actors::CallLimits(), nullptr);
}

bool StartedTasks(std::uint64_t number) { return !actors::TaskPool::Children(number).empty(); }

/// On the background thread: Python that ran here could be interrupted by the signal that tells a
/// task of its cancellation.
class CancelTasks : public actors::Completion {
 public:
  explicit CancelTasks(std::uint64_t number) : number_(number) {}
  void Run() override {
    const PyGILState_STATE gil = EnsureGil();
    PyObject* const module = PyImport_ImportModule("troupe._tasks.pool");
    PyObject* const begun = module != nullptr
                                ? PyObject_CallMethod(module, "cancel_started_soon", "K",
                                                      static_cast<unsigned long long>(number_))
                                : nullptr;
    if (begun == nullptr) PyErr_WriteUnraisable(nullptr);
    Py_XDECREF(begun);
    Py_XDECREF(module);
    PyGILState_Release(gil);
  }

 private:
  const std::uint64_t number_;
};

}  // namespace

std::uint64_t NextCallNumber() {
  static std::uint64_t last = 0;  // the GIL's
  return ++last;
}

void CancelStartedBy(std::uint64_t number) {
  if (number == 0) return;
  // now: the process may end with the call, and nobody else would
  actors::CallReactor::Current().CancelStartedBy(number);
  if (StartedTasks(number))
    actors::CallReactor::Current().Post(std::make_unique<CancelTasks>(number));
}

void HearOfRunning() {
  const RunningCall* const call = Running::current();
  if (call != nullptr && !call->cancelled && !call->coroutine) LookAhead(*call);
}

void BindCallRunning(nb::module_& m) {
  m.def(
      "running_call",
      []() -> nb::object {
        const RunningCall* const call = Running::current();
        if (call == nullptr || call->method == nullptr) return nb::none();
        return nb::make_tuple(nb::borrow(call->method), call->sequence);
      },
      "(method, sequence) of the call that the serving thread runs, on that thread; else None.");
  m.def(
      "is_cancelled",
      []() -> std::optional<bool> {
        RunningCall* const call = Running::current();
        if (call == nullptr || call->coroutine) return std::nullopt;
        if (!call->cancelled) LookAhead(*call);
        return call->cancelled;
      },
      "Whether the caller of the method that this thread runs has cancelled it; None: it runs "
      "none, or "
      "a coroutine's.");
  m.def(
      "take_cancelled",
      []() -> bool {
        RunningCall* const call = Running::current();
        if (call == nullptr) return false;
        LookAhead(*call);
        return std::exchange(call->told, false);
      },
      "Whether its caller has cancelled the call that this thread runs since this was asked last: "
      "once for each time.");
}

}  // namespace troupe::bindings
