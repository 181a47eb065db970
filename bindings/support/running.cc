#include "bindings/support/running.h"

#include <optional>
#include <utility>

#include "bindings/support/nanobind.h"

namespace nb = nanobind;

namespace troupe::bindings {

namespace {

/// Reads what its caller has said of it meanwhile.
void LookAhead(const RunningCall& call) {
  if (call.reads != nullptr) call.reads->LookAhead(actors::CallLimits(), nullptr);
}

}  // namespace

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
      "running_number",
      []() -> std::uint64_t {
        const RunningCall* const call = Running::current();
        return call != nullptr && call->recursive ? call->number : 0;
      },
      "Of a call that was cancelled with the tasks that it started: what tasks_of() takes; else 0.");
  m.def(
      "is_cancelled",
      []() -> std::optional<bool> {
        RunningCall* const call = Running::current();
        if (call == nullptr) return std::nullopt;
        if (!call->cancelled) LookAhead(*call);
        return call->cancelled;
      },
      "Whether the caller of the method that this thread runs has cancelled it; None: it runs none, or "
      "a coroutine's.");
  m.def(
      "take_cancelled",
      []() -> bool {
        RunningCall* const call = Running::current();
        if (call == nullptr) return false;
        LookAhead(*call);
        return std::exchange(call->told, false);
      },
      "Whether its caller has cancelled the call that this thread runs since this was asked last: once for each time.");
}

}  // namespace troupe::bindings
