#include "bindings/bind_calls.h"

#include <optional>

#include "actors/bulk/bulk_mover.h"
#include "actors/caller/reactor.h"
#include "actors/net/cpu_budget.h"
#include "actors/net/tls_loop.h"
#include "bindings/actor/item_sink.h"
#include "bindings/actor/server.h"
#include "bindings/caller/actor_life.h"
#include "bindings/caller/channel.h"
#include "bindings/caller/local.h"
#include "bindings/caller/stream_object.h"
#include "bindings/caller/tasks.h"
#include "bindings/caller/wait.h"
#include "bindings/support/gil.h"
#include "bindings/support/nanobind.h"
#include "bindings/support/running.h"
#include "bindings/values/errors.h"
#include "bindings/values/object_arguments.h"
#include "bindings/values/pickle.h"
#include "bindings/values/ref.h"
#include "bindings/values/taken_refs.h"

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
        actors::BulkMover::StopCurrent();
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
