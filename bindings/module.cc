// troupe._native: the extension module. One bind_ function per part, each in files of its own.
#include "bindings/bind_calls.h"
#include "bindings/control/bind_control.h"
#include "bindings/control/child_fork.h"
#include "bindings/support/gil.h"
#include "bindings/support/nanobind.h"
#include "bindings/support/trace.h"
#include "bindings/train/bind_digest.h"
#include "bindings/train/bind_groups.h"
#include "bindings/train/bind_noted_calls.h"
#include "bindings/train/gloo_calls.h"

namespace nb = nanobind;

namespace {

/// Decision 39: one interpreter, with the GIL.
void RefuseUnsupportedInterpreters() {
#ifdef Py_GIL_DISABLED
  throw nb::import_error(
      "troupe needs a CPython with the GIL; this one is a free-threaded build\n"
      "  use the ordinary python3.11, 3.12 or 3.13");
#endif
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    throw nb::import_error(
        "troupe cannot be imported in a subinterpreter\n"
        "  import it in the main interpreter, or use processes");
  }
}

}  // namespace

NB_MODULE(_native, m) {
  RefuseUnsupportedInterpreters();
  nb::set_leak_warnings(false);  // objects that a program still holds at its end are no leaks of
                                 // ours
  nb::register_exception_translator(troupe::bindings::AwaitTheEndWhereUnwound);
  m.doc() = "Native parts of troupe; use the troupe package.";
  troupe::bindings::bind_calls(m);
  troupe::bindings::bind_control(m);
  troupe::bindings::bind_fork(m);
  troupe::bindings::bind_digest(m);
  troupe::bindings::bind_groups(m);
  troupe::bindings::bind_gloo_calls(m);
  troupe::bindings::bind_noted_calls(m);
  troupe::bindings::bind_trace(m);
}
