// NumPy arrays as they are pickled in values. Needs the GIL.
#pragma once

#include <Python.h>

namespace troupe::bindings {

/// Returns true for an instance of numpy.ndarray or of a class derived from it.
bool IsArray(PyObject* object);
/// The reduction of an array: numpy's own where that gives the memory as a buffer, else that of
/// troupe/_code/arrays.py. NotImplemented where the user's copyreg or `pickler`'s dispatch_table
/// has a reduction for its class. `apart`: buffers leave the pickle. `small_read_only`: an array of
/// fewer than kLargeBytes is read-only where it is loaded. A new reference; nullptr: an error is
/// set.
PyObject* ReduceArray(PyObject* array, PyTypeObject* pickler, bool apart, bool small_read_only);

}  // namespace troupe::bindings
