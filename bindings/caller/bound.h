// BoundCall: a method of one actor as a callable, without Python code between a call site and the
// frame. Needs the GIL.
#pragma once

#include <Python.h>

namespace troupe::bindings {

struct CallChannelObject;

/// channel.method(target, check, keeps): a new object, or nullptr with an error set. `check`: of
/// ArgumentCheck; `keeps`: what lives as long as it.
PyObject* NewBoundCall(CallChannelObject* channel, PyObject* target, PyObject* check,
                       PyObject* keeps);
/// Makes the type; once per process.
bool InitBoundCall();

}  // namespace troupe::bindings
