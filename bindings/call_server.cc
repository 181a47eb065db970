#include "bindings/call_server.h"

#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>

#include "actors/call_server.h"
#include "actors/fork_guard.h"
#include "bindings/call_errors.h"
#include "bindings/call_executor.h"
#include "bindings/control_object.h"
#include "bindings/gil.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

class PyCallServer {
 public:
  PyCallServer(const std::string& path, const ControlObject* control) {
    actors::IdentitySource identity;
    if (control != nullptr) identity = control->identity();
    StatusOr<std::unique_ptr<actors::CallServer>> server =
        actors::CallServer::Listen(path, std::move(identity));
    if (!server.ok()) {
      RaiseStatus(server.status());
      throw nb::python_error();
    }
    server_ = *std::move(server);
  }
  ~PyCallServer() {
    const GilReleased released;  // joins a thread
    server_.reset();
  }

  void Serve(nb::handle instance, int max_concurrency, nb::object find) {
    if (max_concurrency < 1) throw nb::value_error("max_concurrency is 1 or more");
    if (std::exchange(serving_, true)) {
      PyErr_SetString(PyExc_RuntimeError, "this CallServer is being served by another thread");
      throw nb::python_error();
    }
    if (find.is_none()) find = nb::getattr(nb::module_::import_("functools"), "partial")(
        nb::module_::import_("builtins").attr("getattr"), instance);
    PyExecutor executor(find.ptr(), max_concurrency, server_->limits());
    const actors::CallServer::Ended ended = server_->Serve(executor);
    serving_ = false;
    if (ended == actors::CallServer::Ended::kInterrupted) throw nb::python_error();
    PyObject* exit = executor.TakeExit();
    if (exit != nullptr) {
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exit)), exit);
      Py_DECREF(exit);
      throw nb::python_error();
    }
    if (ended == actors::CallServer::Ended::kForked) {
      PyErr_SetString(PyExc_RuntimeError,
                      "a method forked and returned in the child: only the parent is the actor");
      throw nb::python_error();
    }
  }
  void Stop() { server_->Stop(); }
  const std::string& path() const { return server_->path(); }

 private:
  std::unique_ptr<actors::CallServer> server_;
  bool serving_ = false;
};

}  // namespace

void BindCallServer(nb::module_& m) {
  if (!InitDeferred()) throw nb::python_error();
  nb::class_<PyCallServer>(m, "CallServer", "Listens at a Unix socket and runs the calls it gets.")
      .def(nb::init<const std::string&, const ControlObject*>(), nb::arg("unix_path"),
           nb::arg("control").none() = nb::none(),
           "With `control`, this process's control channel, also callers of other hosts.")
      .def("serve", &PyCallServer::Serve, nb::arg("instance"), nb::arg("max_concurrency") = 1,
           nb::arg("find").none() = nb::none(),
           "Runs calls on `instance` until stop(); raises what a method raised as SystemExit or "
           "KeyboardInterrupt. A call of a name runs find(name), by default that attribute.")
      .def("stop", &PyCallServer::Stop, "Ends serve(), from any thread.")
      .def_prop_ro("path", &PyCallServer::path);
}

}  // namespace troupe::bindings
