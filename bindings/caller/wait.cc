#include "bindings/caller/wait.h"

#include <absl/strings/str_format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "actors/caller/failure_watch.h"
#include "actors/caller/reactor.h"
#include "actors/net/now.h"
#include "bindings/caller/channel.h"
#include "bindings/support/gil.h"
#include "bindings/support/host.h"
#include "bindings/values/errors.h"
#include "bindings/values/ref.h"
#include "runtime/base/status.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

using actors::CallReactor;

constexpr double kTimeoutMaxS = 1e9;
/// A long list is collected with the GIL held while answers keep coming: others get a turn this
/// often.
constexpr Py_ssize_t kRefsPerTurn = 4096;
constexpr std::size_t kChannelsPolled = 8;

/// A time limit that can say when it began and how long it was.
struct Limit {
  double seconds = -1;  // negative: none
  time_t began = 0;
  Instant deadline = Instant::max();

  std::string Text() const {
    char when[32];
    tm utc;
    ::gmtime_r(&began, &utc);
    ::strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return absl::StrFormat("within %g s of %s", seconds, when);
  }
};

bool ReadLimit(PyObject* timeout, Limit* limit) {
  if (timeout == nullptr || timeout == Py_None) return true;
  const double seconds = PyFloat_AsDouble(timeout);
  if (seconds == -1.0 && PyErr_Occurred()) return false;
  if (std::isnan(seconds) || seconds < 0) {
    PyErr_SetString(PyExc_ValueError, "timeout is a number of seconds, 0 or more, or None");
    return false;
  }
  limit->seconds = seconds;
  limit->began = ::time(nullptr);
  if (seconds < kTimeoutMaxS) {
    limit->deadline = actors::Now() +
                      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  }
  return true;
}

std::string NameOf(RefObject* ref) {
  PyObject* text = PyObject_Repr(reinterpret_cast<PyObject*>(ref));
  const char* utf8 = text != nullptr ? PyUnicode_AsUTF8(text) : nullptr;
  const std::string name = utf8 != nullptr ? utf8 : "a Ref";
  Py_XDECREF(text);
  PyErr_Clear();
  return name;
}

PyObject* RaiseTimeout(RefObject* ref, const Limit& limit, const std::string& progress = {}) {
  RaiseRuntimeError(ErrorCode::kTimeout,
                    absl::StrFormat("no answer %s: %s%s", limit.Text(), NameOf(ref), progress));
  return nullptr;
}

/// Waits and decodes; nullptr with an error set.
PyObject* GetOne(RefObject* ref, const Limit& limit) {
  bool timed_out = false;
  if (ref->slot->done() || AwaitRef(ref, limit.deadline, &timed_out)) return ValueOf(ref);
  return timed_out ? RaiseTimeout(ref, limit) : nullptr;
}

bool TakeTurn() {
  {
    const GilReleased released;
  }
  return PyErr_CheckSignals() == 0;
}

// answers that come without a pause cost no watch
constexpr Duration kUnwatched = std::chrono::milliseconds(1);

/// The Refs of a list, one after the other; of those that are known to be errors the first is
/// raised at once, whatever comes before it in the list.
class ListGetter {
 public:
  ListGetter(PyObject* list, const Limit& limit)
      : list_(list), count_(PyList_GET_SIZE(list)), limit_(limit) {}
  ~ListGetter() {
    if (watching_) CallReactor::Current().UnwatchFailures(failures_);
  }
  ListGetter(const ListGetter&) = delete;
  ListGetter& operator=(const ListGetter&) = delete;

  /// nullptr: an error is set.
  PyObject* Get() {
    if (!Check()) return nullptr;
    PyObject* values = PyList_New(count_);
    for (Py_ssize_t i = 0; values != nullptr && i < count_; ++i) {
      PyObject* value = i % kRefsPerTurn != kRefsPerTurn - 1 || TakeTurn() ? GetAt(i) : nullptr;
      if (value != nullptr) {
        PyList_SET_ITEM(values, i, value);
      } else {
        Py_CLEAR(values);
      }
    }
    return values;
  }

 private:
  bool Check() {
    for (Py_ssize_t i = 0; i < count_; ++i) {
      PyObject* const item = PyList_GET_ITEM(list_, i);
      if (!IsRef(item)) {
        PyErr_Format(PyExc_TypeError,
                     "get() takes an ObjectRef or a list of them; item %zd is of type %s", i,
                     Py_TYPE(item)->tp_name);
        return false;
      }
      AsRef(item)->slot->Ask();  // all at once, where they come from another host
    }
    return true;
  }
  /// A borrowed one; nullptr: an error is set.
  RefObject* RefAt(Py_ssize_t i) {
    if (PyList_GET_SIZE(list_) == count_ && IsRef(PyList_GET_ITEM(list_, i)))
      return AsRef(PyList_GET_ITEM(list_, i));
    PyErr_SetString(PyExc_RuntimeError, "the list given to get() changed meanwhile");
    return nullptr;
  }
  PyObject* GetAt(Py_ssize_t i) {
    RefObject* ref = RefAt(i);
    if (ref == nullptr) return nullptr;
    Py_INCREF(ref);
    PyObject* value = ref->slot->done() ? ValueOf(ref) : Await(ref, i);
    Py_DECREF(ref);
    return value;
  }
  PyObject* Await(RefObject* ref, Py_ssize_t i) {
    if (!Usable(ref)) return nullptr;
    bool timed_out = false;
    if (!watching_) {
      if (AwaitRef(ref, std::min(limit_.deadline, actors::Now() + kUnwatched), &timed_out))
        return ValueOf(ref);
      if (!timed_out || !Watch(i)) return nullptr;
      timed_out = false;
    }
    const bool good = AwaitRef(ref, limit_.deadline, &timed_out, &failures_);
    if (!good && !timed_out) return nullptr;
    if (failures_.met()) return RaiseFirst(i);
    if (good) return ValueOf(ref);
    return RaiseTimeout(ref, limit_, absl::StrFormat(" (number %d of %d)", i + 1, count_));
  }
  /// From the first that is waited for on. False: an error is set.
  bool Watch(Py_ssize_t from) {
    watching_ = true;
    std::vector<actors::Answer*> slots;
    slots.reserve(static_cast<std::size_t>(count_ - from));
    for (Py_ssize_t i = from; i < count_; ++i) {
      RefObject* ref = RefAt(i);
      if (ref == nullptr) return false;
      slots.push_back(ref->slot);
    }
    CallReactor::Current().WatchFailures(slots.data(), slots.size(), failures_);
    return true;
  }
  PyObject* RaiseFirst(Py_ssize_t from) {
    for (Py_ssize_t i = from; i < count_; ++i) {
      RefObject* ref = RefAt(i);
      if (ref == nullptr) return nullptr;
      if (ref->slot->done() && ref->slot->failed()) return ValueOf(ref);
    }
    PyErr_SetString(PyExc_RuntimeError, "the list given to get() changed meanwhile");
    return nullptr;
  }

  PyObject* const list_;
  const Py_ssize_t count_;
  const Limit& limit_;
  actors::FailureWatch failures_;
  bool watching_ = false;
};

PyObject* Get(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  PyObject* timeout = count > 1 ? args[1] : nullptr;
  const Py_ssize_t keyword_count = keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0;
  if (keyword_count == 1 && count == 1 &&
      PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, 0), "timeout") == 0) {
    timeout = args[1];
  } else if (keyword_count != 0 || count < 1 || count > 2) {
    PyErr_SetString(PyExc_TypeError, "get(ref_or_list, timeout=None)");
    return nullptr;
  }
  Limit limit;
  if (!ReadLimit(timeout, &limit)) return nullptr;
  if (IsRef(args[0])) return GetOne(AsRef(args[0]), limit);
  if (PyList_Check(args[0])) return ListGetter(args[0], limit).Get();
  // Not a TypeError, as an item of a list: so does Ray.
  return PyErr_Format(
      PyExc_ValueError,
      "Invalid type of object refs, %R, is given: get() takes an ObjectRef or a list of them",
      Py_TYPE(args[0]));
}

// ---- wait ------------------------------------------------------------------------------------

/// Marks the Refs of a list, and takes the marks off again: how one that is in it twice is found,
/// at a cost that a program can pay for every one of thousands. With the GIL held all the while.
class Listed {
 public:
  ~Listed() {
    for (Py_ssize_t i = 0; i < marked_; ++i) AsRef(PyList_GET_ITEM(list_, i))->listed = false;
  }
  explicit Listed(PyObject* list) : list_(list) {}
  /// The next one of the list. False: it was there before.
  bool Add(RefObject* ref) {
    if (ref->listed) return false;
    ref->listed = true;
    ++marked_;
    return true;
  }

 private:
  PyObject* list_;
  Py_ssize_t marked_ = 0;
};

/// How many Refs of wait()'s list are done, counted up to `num_returns`; checks it: only Refs, none
/// twice. -1: an error is set.
Py_ssize_t CountDone(PyObject* list, Py_ssize_t num_returns) {
  const Py_ssize_t count = PyList_GET_SIZE(list);
  if (num_returns < 1 || num_returns > count) {
    PyErr_Format(PyExc_ValueError, "num_returns is %zd; it is from 1 to the number of refs, %zd",
                 num_returns, count);
    return -1;
  }
  Listed listed(list);
  Py_ssize_t done = 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* ref = PyList_GET_ITEM(list, i);
    if (!IsRef(ref)) {
      PyErr_Format(PyExc_TypeError, "wait() takes a list of ObjectRefs; item %zd is of type %s", i,
                   Py_TYPE(ref)->tp_name);
      return -1;
    }
    if (!listed.Add(AsRef(ref))) {
      PyErr_Format(PyExc_ValueError, "wait() was given the same ObjectRef twice (item %zd)", i);
      return -1;
    }
    if (done < num_returns) {
      if (AsRef(ref)->slot->done()) {
        ++done;
      } else if (!Usable(AsRef(ref))) {
        return -1;
      }
    }
  }
  return done;
}

actors::WaitResult WaitFor(const std::vector<PyObject*>& refs, Py_ssize_t needed,
                           const Limit& limit) {
  std::vector<actors::Answer*> slots;
  std::vector<actors::Channel*> channels;
  slots.reserve(refs.size());
  for (PyObject* each : refs) {
    const RefObject* ref = AsRef(each);
    slots.push_back(ref->slot);
    if (ref->channel == nullptr || channels.size() >= kChannelsPolled) continue;
    actors::Channel* channel = ref->channel->channel->get();
    if (std::find(channels.begin(), channels.end(), channel) == channels.end()) {
      channels.push_back(channel);
    }
  }
  actors::WaitRequest request;
  request.slots = slots.data();
  request.slot_count = slots.size();
  request.needed = static_cast<std::size_t>(needed);
  request.channels = channels.data();
  request.channel_count = channels.size();
  request.deadline = limit.deadline;
  GilHost host;
  return CallReactor::Current().Wait(request, host);
}

/// (ready, not ready): the first `num_returns` that are done, and the rest.
PyObject* Split(const std::vector<PyObject*>& refs, Py_ssize_t num_returns) {
  const auto count = static_cast<Py_ssize_t>(refs.size());
  PyObject* ready = PyList_New(0);
  PyObject* rest = PyList_New(count);
  Py_ssize_t left = 0;
  bool good = ready != nullptr && rest != nullptr;
  for (Py_ssize_t i = 0; good && i < count; ++i) {
    PyObject* ref = refs[static_cast<std::size_t>(i)];
    if (i - left < num_returns && AsRef(ref)->slot->done()) {
      good = PyList_Append(ready, ref) == 0;
    } else {
      PyList_SET_ITEM(rest, left++, Py_NewRef(ref));
    }
  }
  good = good && PyList_SetSlice(rest, left, count, nullptr) == 0;
  PyObject* both = good ? PyTuple_Pack(2, ready, rest) : nullptr;
  Py_XDECREF(ready);
  Py_XDECREF(rest);
  return both;
}

PyObject* Wait(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"refs", "num_returns", "timeout", nullptr};
  PyObject* list = nullptr;
  Py_ssize_t num_returns = 1;
  PyObject* timeout = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|nO:wait", const_cast<char**>(names), &list,
                                   &num_returns, &timeout)) {
    return nullptr;
  }
  if (!PyList_Check(list)) {
    return PyErr_Format(PyExc_TypeError, "wait() takes a list of ObjectRefs; this is of type %s",
                        Py_TYPE(list)->tp_name);
  }
  Limit limit;
  if (!ReadLimit(timeout, &limit)) return nullptr;
  const Py_ssize_t done = CountDone(list, num_returns);
  if (done < 0) return nullptr;
  const Py_ssize_t count = PyList_GET_SIZE(list);
  std::vector<PyObject*> refs;  // others may change the list meanwhile
  refs.reserve(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) refs.push_back(Py_NewRef(PyList_GET_ITEM(list, i)));
  const bool interrupted =
      done < num_returns && WaitFor(refs, num_returns, limit) == actors::WaitResult::kInterrupted;
  PyObject* both = interrupted ? nullptr : Split(refs, num_returns);
  for (PyObject* ref : refs) Py_DECREF(ref);
  return both;
}

PyMethodDef functions[] = {
    {"get", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(Get)),
     METH_FASTCALL | METH_KEYWORDS,
     "get(ref_or_list, timeout=None) -> value or list of values, in order."},
    {"wait", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(Wait)),
     METH_VARARGS | METH_KEYWORDS,
     "wait(refs, num_returns=1, timeout=None) -> (ready, not_ready), both in the order given."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void BindCallWait(nb::module_& m) {
  if (PyModule_AddFunctions(m.ptr(), functions) != 0) throw nb::python_error();
}

}  // namespace troupe::bindings
