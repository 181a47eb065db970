#include "bindings/train/bind_noted_calls.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

// Sends, receives and waits of torch take as little as 15 us, so what is noted of each is noted
// here.
//
// A noted method is an instance method of a builtin function, as pybind11 makes its own. So
// pybind11 does not take it for a method of the program's that overrides torch's: a class of the
// program's that has none would call it again and again.
//
// All runs with the GIL, so that a count is one step. What noting raises is dropped: the call
// itself was made.

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

constexpr const char* kWait = "troupe.noted_wait";
constexpr const char* kMessage = "troupe.counted_message";

// Objects that live as long as the process: torch's classes hold them.
struct NotedWait {
  PyObject* original;
  PyObject* waiting;  // dict: thread -> the Work that it waits for, or None
  unsigned long thread_id = 0;  // thread that waited last
  PyObject* thread = nullptr;  // thread_id as an int
};

struct CountedMessage {
  PyObject* original;
  PyObject* find;    // group -> (weak reference to it, its GroupMessages, counts by peer,
                     // whether it matters which device a tensor is on)
  PyObject* other;   // called with the GroupMessages and the tensors, where the count is not all
  PyObject* batch;   // set: not empty while a batch of messages begins
  Py_ssize_t peer_at;  // place of the peer among the arguments; 0: receives from any
  PyObject* group = nullptr;  // group of the latest message, borrowed: `known` says whether it is
                              // there
  PyObject* known = nullptr;  // result of `find` for it
};

// The latest messages, in a ring. All are null before the first round is over.
struct RecentMessage {
  PyObject* work = nullptr;   // a weak reference
  PyObject* known = nullptr;  // result of `find` for its group
  PyObject* peer = nullptr;
  std::uint64_t number = 0;
};
constexpr std::size_t kRecentMax = 256;
std::array<RecentMessage, kRecentMax> recent_messages;
std::size_t next_message = 0;

// Messages that threads are about to begin: their calls have not come back. NCCL connects two
// members by their first message, for which the call waits until both have come. Not on the
// threads' stacks, which a forked child may lose. A call that finds no place is not noted.
struct CallInProgress {
  unsigned long thread_id = 0;
  PyObject* known = nullptr;  // result of `find` for its group; null: the place is free
  PyObject* peer = nullptr;  // argument of the call
};
std::array<CallInProgress, 64> calls_in_progress;
PyObject* is_cpu_name = nullptr;  // "is_cpu", made by bind_noted_calls

PyObject* Wait(PyObject* capsule, PyObject* const* args, Py_ssize_t given, PyObject* names) {
  auto* const noted = static_cast<NotedWait*>(PyCapsule_GetPointer(capsule, kWait));
  const unsigned long id = PyThread_get_thread_ident();
  PyObject* thread = nullptr;
  if (noted->thread != nullptr && noted->thread_id == id) {
    thread = Py_NewRef(noted->thread);
  } else {
    thread = PyLong_FromUnsignedLong(id);
    if (thread == nullptr) return nullptr;
    noted->thread_id = id;
    Py_XSETREF(noted->thread, Py_NewRef(thread));
  }
  if (given == 0 || PyDict_SetItem(noted->waiting, thread, args[0]) != 0) PyErr_Clear();
  PyObject* const result =
      PyObject_Vectorcall(noted->original, args, static_cast<std::size_t>(given), names);
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  if (result == nullptr) PyErr_Fetch(&type, &value, &trace);
  if (PyDict_SetItem(noted->waiting, thread, Py_None) != 0) PyErr_Clear();  // never grows by it
  if (result == nullptr) PyErr_Restore(type, value, trace);
  Py_DECREF(thread);
  return result;
}

// The counts of that group; false with an error set.
bool Find(CountedMessage& noted, PyObject* group) {
  if (noted.known != nullptr && noted.group == group &&
      PyWeakref_GetObject(PyTuple_GET_ITEM(noted.known, 0)) == group)
    return true;
  PyObject* const found = PyObject_CallOneArg(noted.find, group);
  if (found == nullptr) return false;
  if (!PyTuple_CheckExact(found) || PyTuple_GET_SIZE(found) != 4 ||
      !PyDict_CheckExact(PyTuple_GET_ITEM(found, 2))) {
    Py_DECREF(found);
    PyErr_SetString(PyExc_TypeError, "find() returns (weak reference, messages, dict, bool)");
    return false;
  }
  Py_XSETREF(noted.known, found);
  noted.group = group;
  return true;
}

// How many messages were begun, with whichever member.
std::uint64_t Sum(PyObject* counts) {
  std::uint64_t sum = 0;
  Py_ssize_t at = 0;
  PyObject* count = nullptr;
  while (PyDict_Next(counts, &at, nullptr, &count)) sum += PyLong_AsUnsignedLongLong(count);
  return sum;
}

// Counts a message and returns its number, 0 with an error set. `peer` None: any message may be it.
std::uint64_t Increment(PyObject* counts, PyObject* peer) {
  PyObject* const before = PyDict_GetItemWithError(counts, peer);
  if (before == nullptr && PyErr_Occurred()) return 0;
  const std::uint64_t number = 1 + (before == nullptr ? 0 : PyLong_AsUnsignedLongLong(before));
  PyObject* const after = PyLong_FromUnsignedLongLong(number);
  if (after == nullptr) return 0;
  const int failed = PyDict_SetItem(counts, peer, after);
  Py_DECREF(after);
  if (failed != 0) return 0;
  return peer != Py_None ? number : Sum(counts);
}

// Returns true if only the count must be noted: no batch, and a tensor of the CPU where the device
// matters.
bool IsPlain(const CountedMessage& noted, PyObject* tensors) {
  if (PySet_GET_SIZE(noted.batch) != 0) return false;
  if (PyTuple_GET_ITEM(noted.known, 3) == Py_False) return true;
  if (!PyList_CheckExact(tensors) || PyList_GET_SIZE(tensors) == 0) return false;
  PyObject* const on_cpu = PyObject_GetAttr(PyList_GET_ITEM(tensors, 0), is_cpu_name);
  Py_XDECREF(on_cpu);  // a bool, which is never freed
  return on_cpu == Py_True;
}

// False with an error set.
bool NoteMessage(CountedMessage& noted, PyObject* group, PyObject* tensors, PyObject* peer,
                 PyObject* work) {
  if (!Find(noted, group)) return false;
  PyObject* const messages = PyTuple_GET_ITEM(noted.known, 1);
  const std::uint64_t number = Increment(PyTuple_GET_ITEM(noted.known, 2), peer);
  if (number == 0) return false;
  if (!IsPlain(noted, tensors)) {
    PyErr_Clear();
    PyObject* const done = PyObject_CallFunctionObjArgs(noted.other, messages, tensors, nullptr);
    if (done == nullptr) return false;
    Py_DECREF(done);
  }
  if (work == Py_None) return true;
  PyObject* const reference = PyWeakref_NewRef(work, nullptr);
  if (reference == nullptr) return false;
  RecentMessage& recent = recent_messages[next_message++ % kRecentMax];
  recent.number = number;
  Py_XSETREF(recent.work, reference);
  Py_XSETREF(recent.known, Py_NewRef(noted.known));
  Py_XSETREF(recent.peer, Py_NewRef(peer));
  return true;
}

// (GroupMessages, counts by peer, peer, number) of the message that this Work is of, or None.
nb::object MessageOf(nb::handle work) {
  for (const RecentMessage& each : recent_messages) {
    if (each.work == nullptr || PyWeakref_GetObject(each.work) != work.ptr()) continue;
    return nb::make_tuple(nb::borrow(PyTuple_GET_ITEM(each.known, 1)),
                          nb::borrow(PyTuple_GET_ITEM(each.known, 2)), nb::borrow(each.peer),
                          each.number);
  }
  return nb::none();
}

// (GroupMessages, counts by peer, peer, number) of the message that this thread is about to begin,
// or None.
nb::object MessageInCall(unsigned long thread_id) {
  for (const CallInProgress& each : calls_in_progress) {
    if (each.known == nullptr || each.thread_id != thread_id) continue;
    PyObject* const counts = PyTuple_GET_ITEM(each.known, 2);
    PyObject* const before = PyDict_GetItemWithError(counts, each.peer);
    if (before == nullptr) PyErr_Clear();
    std::uint64_t begun = before == nullptr ? 0 : PyLong_AsUnsignedLongLong(before);
    if (each.peer == Py_None) begun = Sum(counts);
    return nb::make_tuple(nb::borrow(PyTuple_GET_ITEM(each.known, 1)), nb::borrow(counts),
                          nb::borrow(each.peer), begun + 1);
  }
  return nb::none();
}

// Calls torch's own method, and meanwhile says so.
PyObject* CallNoted(CountedMessage& noted, PyObject* peer, PyObject* const* args,
                    Py_ssize_t given, PyObject* names) {
  const auto count = static_cast<std::size_t>(given);
  const bool found = Find(noted, args[0]);  // other threads may run: the place is found after it
  if (!found) PyErr_Clear();
  const auto place =
      std::find_if(calls_in_progress.begin(), calls_in_progress.end(),
                   [](const CallInProgress& each) { return each.known == nullptr; });
  if (!found || place == calls_in_progress.end())
    return PyObject_Vectorcall(noted.original, args, count, names);
  *place = {PyThread_get_thread_ident(), Py_NewRef(noted.known), peer};
  PyObject* const work = PyObject_Vectorcall(noted.original, args, count, names);
  Py_CLEAR(place->known);
  return work;
}

PyObject* Message(PyObject* capsule, PyObject* const* args, Py_ssize_t given, PyObject* names) {
  auto* const noted = static_cast<CountedMessage*>(PyCapsule_GetPointer(capsule, kMessage));
  if (given < 2 || given <= noted->peer_at)  // torch names none
    return PyObject_Vectorcall(noted->original, args, static_cast<std::size_t>(given), names);
  PyObject* const peer = noted->peer_at == 0 ? Py_None : args[noted->peer_at];
  PyObject* const work = CallNoted(*noted, peer, args, given, names);
  if (work == nullptr) return nullptr;
  if (!NoteMessage(*noted, args[0], args[1], peer, work)) PyErr_Clear();
  return work;
}

template <class Function>
PyCFunction AsFunction(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef wait_method = {"wait", AsFunction(Wait), METH_FASTCALL | METH_KEYWORDS, nullptr};
PyMethodDef message_method = {"message", AsFunction(Message), METH_FASTCALL | METH_KEYWORDS,
                              nullptr};

nb::object MethodOf(void* noted, const char* name, PyMethodDef* method) {
  const nb::object capsule = nb::steal(PyCapsule_New(noted, name, nullptr));
  const nb::object function = nb::steal(PyCFunction_NewEx(method, capsule.ptr(), nullptr));
  if (!function.is_valid()) nb::raise_python_error();
  return nb::steal(PyInstanceMethod_New(function.ptr()));
}

}  // namespace

void bind_noted_calls(nb::module_& m) {
  is_cpu_name = PyUnicode_InternFromString("is_cpu");
  if (is_cpu_name == nullptr) nb::raise_python_error();
  m.def(
      "noted_wait",
      [](nb::object original, nb::dict waiting) {
        return MethodOf(new NotedWait{original.release().ptr(), waiting.release().ptr()}, kWait,
                        &wait_method);
      },
      "A method that calls `original`, and has the object under its thread's number in `waiting` "
      "meanwhile.");
  m.def(
      "counted_message",
      [](nb::object original, nb::object find, nb::object other, nb::object batch,
         Py_ssize_t peer_at) {
        if (!PySet_Check(batch.ptr())) throw nb::type_error("batch is a set");
        auto* const noted = new CountedMessage{original.release().ptr(), find.release().ptr(),
                                               other.release().ptr(), batch.release().ptr(),
                                               peer_at};
        return MethodOf(noted, kMessage, &message_method);
      },
      "A method that calls `original`, and counts the message (troupe._process.returned."
      "message_counts).");
  m.def("message_of", MessageOf, nb::arg("work"),
        "(messages, counts by peer, peer, number) of the message that this Work is of; None: it "
        "is of none, or of one before the latest 256.");
  m.def("message_in_call", MessageInCall, nb::arg("thread"),
        "The same four of the message that this thread is about to begin, in a call that has not "
        "come back; None: it is in no such call.");
}

}  // namespace troupe::bindings
