#include "bindings/actor/server.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/net/fork_guard.h"
#include "actors/server/call_server.h"
#include "bindings/actor/coroutine.h"
#include "bindings/actor/executor.h"
#include "bindings/actor/loop.h"
#include "bindings/actor/pool.h"
#include "bindings/control/control_object.h"
#include "bindings/support/gil.h"
#include "bindings/support/nanobind.h"
#include "bindings/values/errors.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

using Groups = std::vector<std::pair<std::string, int>>;

/// Ensures that one thread serves at a time.
class Serving {
 public:
  explicit Serving(bool& serving) : serving_(serving) {
    if (std::exchange(serving_, true)) {
      PyErr_SetString(PyExc_RuntimeError, "this CallServer is being served by another thread");
      throw nb::python_error();
    }
  }
  ~Serving() { serving_ = false; }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

 private:
  bool& serving_;
};

/// Raises what a method left the actor with, if it did.
void Finish(actors::CallServer::Ended ended, PyExecutor& executor) {
  if (ended == actors::CallServer::Ended::kInterrupted) throw nb::python_error();
  PyObject* exit = executor.exit()->Take();
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

/// Lets a server take its turns on an asyncio loop.
class LoopTurns {
 public:
  LoopTurns(actors::CallServer& server, LoopExecutor& executor, nb::object loop)
      : server_(server), executor_(executor), loop_(std::move(loop)) {}
  /// Returns the function that the loop calls before it waits.
  nb::object PollFunction() {
    return nb::cpp_function([this] { return Poll(); });
  }
  void Begin() {
    turn_ = nb::cpp_function([this] { Turn(); });
    loop_.attr("add_reader")(server_.fd(), turn_);
    loop_.attr("call_soon")(turn_);  // callers that came before
  }
  void End() {
    loop_.attr("remove_reader")(server_.fd());
    if (!timer_.is_none()) timer_.attr("cancel")();
  }
  std::optional<actors::CallServer::Ended> ended() const { return ended_; }

 private:
  bool Poll() {
    if (ended_ || executor_.RunsElsewhere()) return false;
    executor_.BeginTurn();
    const bool ran = server_.Poll();
    executor_.EndTurn();
    if (ran && server_.IsOver()) Turn();
    return ran;
  }
  void Turn() {
    if (ended_) return;
    executor_.BeginTurn();
    ended_ = server_.Turn(executor_);
    executor_.EndTurn();
    if (ended_ == actors::CallServer::Ended::kInterrupted) throw nb::python_error();
    if (ended_) {
      loop_.attr("stop")();
      return;
    }
    const int next_ms = server_.NextTurnMs();
    if (next_ms < 0 || due_) return;
    due_ = true;
    timer_ = loop_.attr("call_later")(next_ms / 1000.0, nb::cpp_function([this] {
                                        due_ = false;
                                        Turn();
                                      }));
  }

  actors::CallServer& server_;
  LoopExecutor& executor_;
  nb::object loop_;
  nb::object turn_;
  nb::object timer_ = nb::none();
  bool due_ = false;
  std::optional<actors::CallServer::Ended> ended_;
};

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

  void Serve(nb::handle instance, int max_concurrency, nb::object find, const Groups& groups) {
    PyExecutorOptions options = OptionsOf(instance, max_concurrency, find, groups);
    const Serving serving(serving_);
    std::unique_ptr<PyExecutor> executor;
    if (max_concurrency > 1 || !groups.empty()) {
      executor = std::make_unique<PoolExecutor>(std::move(options));
    } else {
      executor = std::make_unique<PyExecutor>(std::move(options));
    }
    Finish(server_->Serve(*executor), *executor);
  }

  void ServeOnLoop(nb::object loop, nb::handle instance, int max_concurrency, nb::object find,
                   const Groups& groups) {
    PyExecutorOptions options = OptionsOf(instance, max_concurrency, find, groups);
    const Serving serving(serving_);
    LoopExecutor executor(std::move(options), loop.ptr());
    LoopTurns turns(*server_, executor, loop);
    turns.Begin();
    const bool polls = nb::hasattr(loop, "poll_first");
    if (polls) loop.attr("poll_first")(turns.PollFunction());
    loop.attr("run_forever")();
    if (polls) loop.attr("poll_first")(nb::none());
    turns.End();
    Finish(turns.ended().value_or(actors::CallServer::Ended::kStopped), executor);
  }
  PyExecutorOptions OptionsOf(nb::handle instance, int max_concurrency, nb::object& find,
                              const Groups& groups) {
    if (find.is_none()) {
      find = nb::module_::import_("functools")
                 .attr("partial")(nb::module_::import_("builtins").attr("getattr"), instance);
    }
    PyExecutorOptions options;
    options.find = find.ptr();
    options.groups.emplace_back("", max_concurrency);
    options.groups.insert(options.groups.end(), groups.begin(), groups.end());
    for (const auto& [name, limit] : options.groups) {
      if (limit < 1) throw nb::value_error("max_concurrency and every group's limit are 1 or more");
    }
    options.limits = server_->limits();
    options.stop = [this] { server_->Stop(); };
    return options;
  }
  void Stop() { server_->Stop(); }
  const std::string& path() const { return server_->path(); }

 private:
  std::unique_ptr<actors::CallServer> server_;
  bool serving_ = false;
};

}  // namespace

void BindCallServer(nb::module_& m) {
  if (!InitCallCoroutine()) throw nb::python_error();
  nb::class_<PyCallServer>(m, "CallServer", "Listens at a Unix socket and runs the calls it gets.")
      .def(nb::init<const std::string&, const ControlObject*>(), nb::arg("unix_path"),
           nb::arg("control").none() = nb::none(),
           "With `control`, this process's control channel, also callers of other hosts.")
      .def("serve", &PyCallServer::Serve, nb::arg("instance"), nb::arg("max_concurrency") = 1,
           nb::arg("find").none() = nb::none(), nb::arg("groups") = Groups(),
           "Runs calls on `instance` until stop(); raises what a method raised as SystemExit or "
           "KeyboardInterrupt. A call of a name runs find(name), by default that attribute; that "
           "may "
           "also be (method, group). With max_concurrency above 1, or groups, [(name, limit)], on "
           "threads.")
      .def("serve_on_loop", &PyCallServer::ServeOnLoop, nb::arg("loop"), nb::arg("instance"),
           nb::arg("max_concurrency") = 1000, nb::arg("find").none() = nb::none(),
           nb::arg("groups") = Groups(),
           "The same on an asyncio loop, which it runs: coroutines as tasks, at most "
           "max_concurrency.")
      .def("stop", &PyCallServer::Stop, "Ends serve(), from any thread.")
      .def_prop_ro("path", &PyCallServer::path);
}

}  // namespace troupe::bindings
