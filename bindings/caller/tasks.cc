#include "bindings/caller/tasks.h"

#include <absl/strings/str_format.h>

#include <string>
#include <utility>

#include "actors/caller/reactor.h"
#include "actors/net/now.h"
#include "bindings/caller/channel.h"
#include "bindings/support/callable_cell.h"
#include "bindings/support/gil.h"
#include "bindings/support/nanobind.h"
#include "bindings/values/errors.h"
#include "bindings/values/ref.h"
#include "bindings/values/task_arguments.h"

namespace nb = nanobind;

namespace troupe::bindings {

using actors::CallReactor;
using actors::LaneId;
using actors::TaskPool;

PyTaskPool::PyTaskPool(nb::object wake) : cell_(std::make_shared<CallableCell>()) {
  cell_->callable = wake.release().ptr();
  pool_ = std::make_shared<TaskPool>(
      [cell = cell_] { CallReactor::Current().Post(std::make_unique<CallCallable>(cell)); },
      TaskArguments());
}

PyTaskPool::~PyTaskPool() { Py_CLEAR(cell_->callable); }

CallChannelObject* PyTaskPool::ChannelOf(LaneId lane) const {
  const auto found = channels_.find(lane);
  return found == channels_.end() ? nullptr
                                  : reinterpret_cast<CallChannelObject*>(found->second.ptr());
}

LaneId PyTaskPool::Open(nb::handle channel) {
  auto* object = reinterpret_cast<CallChannelObject*>(channel.ptr());
  if (!nb::isinstance(channel, nb::module_::import_("troupe._native").attr("CallChannel"))) {
    throw nb::type_error("open(channel): a CallChannel made with tasks=");
  }
  const LaneId lane = pool_->Open(*object->channel);
  channels_[lane] = nb::borrow(channel);
  return lane;
}

bool PyTaskPool::Close(LaneId lane) {
  if (!pool_->Close(lane)) return false;
  channels_.erase(lane);
  return true;
}

nb::tuple PyTaskPool::Look() {
  for (const auto& [lane, channel] : channels_) {
    CallReactor::Current().Drain(**reinterpret_cast<CallChannelObject*>(channel.ptr())->channel);
  }
  const TaskPool::View view = pool_->Look();
  nb::list lanes;
  for (const actors::TaskDispatch::LaneView& lane : view.lanes) {
    lanes.append(nb::make_tuple(lane.lane, lane.tasks, lane.open, Seconds(view.now - lane.since)));
  }
  return nb::make_tuple(view.waiting, Seconds(view.work), lanes);
}

nb::list PyTaskPool::Tasks(std::size_t most) const {
  nb::list tasks;
  for (TaskPool::Listed& each : pool_->List(most)) {
    PyObject* const ref = NewRef(each.slot.Take(), nullptr, nullptr);
    if (ref == nullptr) throw nb::python_error();
    tasks.append(
        nb::make_tuple(nb::steal(ref), each.name, static_cast<int>(each.stage), each.lane));
  }
  return tasks;
}

void PyTaskPool::FailWaiting(nb::handle exception) {
  if (!PyExceptionInstance_Check(exception.ptr())) {
    throw nb::type_error("fail_waiting(exception): an exception instance");
  }
  actors::ByteBuffer body;
  AppendException(body, exception.ptr(), actors::CallLimits().frame_bytes_max);
  pool_->FailWaiting(actors::kFlagReply | actors::kFlagTaskError, body.view());
}

nb::list PyTaskPool::TakeDoubtful() {
  nb::list doubtful;
  for (TaskPool::Doubtful& each : pool_->TakeDoubtful()) {
    PyObject* ref = NewRef(each.slot.Take(), nullptr, nullptr);
    PyObject* exception = ref != nullptr ? ExceptionOf(AsRef(ref)) : nullptr;
    if (exception == nullptr) {
      PyErr_Clear();
      exception = Py_NewRef(Py_None);
    }
    if (ref != nullptr) {
      doubtful.append(nb::make_tuple(nb::steal(ref), nb::steal(exception), each.function));
    }
  }
  return doubtful;
}

void PyTaskPool::Judge(nb::handle ref, bool again) {
  if (!IsRef(ref.ptr())) throw nb::type_error("judge(ref, again): one of take_doubtful()");
  pool_->Judge(AsRef(ref.ptr())->slot, again);
}

std::shared_ptr<TaskPool> TaskPoolOf(PyObject* object) {
  PyTaskPool* pool = nullptr;
  if (nb::try_cast(nb::handle(object), pool) && pool != nullptr) return pool->pool();
  PyErr_SetString(PyExc_TypeError, "tasks is a TaskPool");
  return nullptr;
}

namespace {

/// (how, lane); how: 0 it is over, or no task's; 1 it will not run; 2 a process has it.
nb::tuple CancelTask(nb::handle ref, bool force, bool recursive) {
  if (!IsRef(ref.ptr())) throw nb::type_error("cancel_task(ref): a Ref");
  LaneId lane = 0;
  const TaskPool::Cancelled how = TaskPool::Cancel(AsRef(ref.ptr())->slot, force, recursive, &lane);
  return nb::make_tuple(static_cast<int>(how), lane);
}

nb::list TasksOf(std::uint64_t number) {
  nb::list refs;
  for (actors::AnswerRef& slot : TaskPool::Children(number)) {
    PyObject* ref = NewRef(slot.Take(), nullptr, nullptr);
    if (ref == nullptr) throw nb::python_error();
    refs.append(nb::steal(ref));
  }
  return refs;
}

/// See its binding.
nb::list EndedTasks(std::size_t most) {
  const Instant now = actors::Now();
  const std::string& process = CallReactor::Current().incarnation();
  nb::list tasks;
  for (const actors::TaskHistory::Ended& each : TaskPool::LatestEnded(most)) {
    tasks.append(nb::make_tuple(process + absl::StrFormat("%016x", each.id), *each.name, each.lane,
                                Seconds(now - each.ended), Seconds(each.took), each.failed));
  }
  return tasks;
}

}  // namespace

void BindTasks(nb::module_& m) {
  BindTaskFunction(m);
  nb::class_<PyTaskPool>(m, "TaskPool", "The tasks of this process on processes of one kind.")
      .def(nb::init<nb::object>(), nb::arg("wake"), "`wake()` is run on a background thread.")
      .def("open", &PyTaskPool::Open, nb::arg("channel"), "A process that is there; its lane.")
      .def("close", &PyTaskPool::Close, nb::arg("lane"),
           "It gets no more tasks. True: it has none, and is forgotten.")
      .def(
          "stop", [](PyTaskPool& self, LaneId lane) { self.pool()->Stop(lane); }, nb::arg("lane"),
          "It gets no more tasks, and is there until it is closed.")
      .def(
          "ask",
          [](PyTaskPool& self, LaneId lane, const std::string& method) -> nb::object {
            actors::AnswerRef slot = self.pool()->Ask(lane, method);
            if (!slot) return nb::none();
            PyObject* const ref = NewRef(slot.Take(), nullptr, nullptr);
            if (ref == nullptr) throw nb::python_error();
            return nb::steal(ref);
          },
          nb::arg("lane"), nb::arg("method"),
          "A Ref of what that method of the process's own gives; None: it is gone.")
      .def(
          "pause", [](PyTaskPool& self, LaneId lane, bool on) { self.pool()->Pause(lane, on); },
          nb::arg("lane"), nb::arg("on"), "For a while it gets no more tasks.")
      .def_prop_ro("waiting", [](const PyTaskPool& self) { return self.pool()->waiting(); })
      .def_prop_ro("held_back", [](const PyTaskPool& self) { return self.pool()->held_back(); })
      .def("look", &PyTaskPool::Look,
           "(waiting, seconds they would take one process, [(lane, tasks, open, seconds so)])")
      .def("tasks", &PyTaskPool::Tasks, nb::arg("most"),
           "[(ref, name, stage, lane)] of those that are not over, the oldest first; stage: 0 "
           "arguments are to come, 1 it waits "
           "for a process, 2 it is with one, 3 and runs there; lane: 0 none.")
      .def(
          "wake_above", [](PyTaskPool& self, std::int64_t n) { self.pool()->WakeAbove(n); },
          nb::arg("waiting"), "wake() once more than this many wait, once; -1: not for that.")
      .def(
          "wake_above_idle",
          [](PyTaskPool& self, std::int64_t n) { self.pool()->WakeAboveIdle(n); }, nb::arg("idle"),
          "wake() once more than this many processes that take tasks have none, once; -1: not for "
          "that.")
      .def("fail_waiting", &PyTaskPool::FailWaiting, nb::arg("exception"))
      .def("take_doubtful", &PyTaskPool::TakeDoubtful,
           "[(ref, exception, number of the function)] of tasks that raised, for judge().")
      .def("judge", &PyTaskPool::Judge, nb::arg("ref"), nb::arg("again"));
  m.def("tasks_of", &TasksOf, nb::arg("number"),
        "Refs of tasks that are not over, of those that the call of this number started.");
  m.def("ended_tasks", &EndedTasks, nb::arg("most"),
        "[(hex of its ref, name, lane, seconds since its end, seconds it took, whether it failed)] "
        "of the latest tasks of this process "
        "that are over, the oldest of them first; lane: 0 it ran nowhere.");
  m.def("cancel_task", &CancelTask, nb::arg("ref"), nb::arg("force"), nb::arg("recursive"),
        "(how, lane): 0 it is over, or no task's; 1 it will not run; 2 a process has it.");
}

}  // namespace troupe::bindings
