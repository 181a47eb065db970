// Calls that answer later: on a thread pool, or as coroutines on an event loop. Needs the GIL.
#pragma once

#include <Python.h>

namespace troupe::bindings {

/// Whether `method` is an `async def`.
bool IsCoroutineFunction(PyObject* method);

}  // namespace troupe::bindings
