// Ref: a Python object for one answer. A C type with a free list, because one is made per call.
// Needs the GIL throughout.
#pragma once

#include <cstdint>

#include "actors/caller/channel.h"
#include "actors/slots/answer.h"
#include "bindings/support/nanobind.h"
#include "runtime/base/time.h"

namespace troupe::bindings {

struct CallChannelObject;

struct RefObject {
  PyObject head;
  actors::Answer* slot;  // a reference
  CallChannelObject* channel;  // channel of the answer (a reference); nullptr: a local one
  PyObject* method;            // str, or nullptr for a local one
  std::uint32_t generation;    // ForkGuard's when it was made: an inherited pending Ref is inert
  bool listed;                 // wait() has met it in the list it looks through
};

/// Takes over the reference to `slot`. A new Ref, or nullptr with an error set.
PyObject* NewRef(actors::Answer* slot, CallChannelObject* channel, PyObject* method);
bool IsRef(PyObject* object);
inline RefObject* AsRef(PyObject* object) { return reinterpret_cast<RefObject*>(object); }

/// The value (a new reference), or nullptr with the answer's error set. Only when the slot is done.
PyObject* ValueOf(RefObject* ref);
/// The exception such a done Ref holds (a new reference), nullptr if it holds a value.
PyObject* ExceptionOf(RefObject* ref);
/// False with an error set for a pending Ref that a forked child inherited.
bool Usable(RefObject* ref);

/// Waits for one Ref with the GIL. True: done, or `failures` has met an error. False: an error is
/// set, a time-out's only if `*timed_out` is nullptr; else that is set and no error.
bool AwaitRef(RefObject* ref, Instant deadline, bool* timed_out,
              actors::FailureWatch* failures = nullptr);

void BindCallRef(nanobind::module_& m);

}  // namespace troupe::bindings
