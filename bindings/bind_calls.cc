#include "bindings/bind_calls.h"

#include <nanobind/stl/optional.h>

#include <optional>

#include "actors/cpu_budget.h"
#include "actors/object_mover.h"
#include "actors/reactor.h"
#include "actors/tls_loop.h"
#include "bindings/call_channel.h"
#include "bindings/call_errors.h"
#include "bindings/call_life.h"
#include "bindings/call_local.h"
#include "bindings/call_pickle.h"
#include "bindings/call_ref.h"
#include "bindings/call_running.h"
#include "bindings/call_server.h"
#include "bindings/call_stream_object.h"
#include "bindings/call_tasks.h"
#include "bindings/call_wait.h"
#include "bindings/gil.h"
#include "bindings/item_sink.h"
#include "bindings/object_arguments.h"
#include "bindings/taken_refs.h"

namespace nb = nanobind;

namespace troupe::bindings {

void bind_calls(nb::module_& m) {
  BindCallErrors(m);
  BindCallRef(m);
  BindRefStream(m);
  BindCallChannel(m);
  BindCallWait(m);
  BindCallLocal(m);
  BindLives(m);
  BindCallRunning(m);
  BindCallServer(m);
  BindTakenRefs(m);
  BindTasks(m);
  BindItemSink(m);
  BindObjects(m);
  // The background thread completes futures with the GIL: it must be gone before the interpreter
  // is.
  m.def(
      "pickler_type",
      [] {
        PyObject* type = PicklerType();
        if (type == nullptr) throw nb::python_error();
        return nb::steal<nb::object>(type);
      },
      "The class that pickles what is sent.");
  m.def(
      "_stop_calls",
      [] {
        actors::TlsLoop::StopCurrent();
        actors::ObjectMover::StopCurrent();
        actors::CallReactor::StopCurrent();
      },
      nb::call_guard<GilReleased>());
  m.def(
      "_set_spinning",
      [](std::optional<bool> on) {
        actors::OverrideSpinning(!on   ? actors::SpinOverride::kAuto
                                 : *on ? actors::SpinOverride::kOn
                                       : actors::SpinOverride::kOff);
      },
      nb::arg("on").none(),
      "For benchmarks: whether waits poll before they block, for what is created after; None: as "
      "the machine allows.");
  nb::module_::import_("atexit").attr("register")(m.attr("_stop_calls"));
}

}  // namespace troupe::bindings
