// Pickling of what the tagged codec does not write itself. Needs the GIL.
//
// Trees of plain containers go to C pickle directly. Everything else goes through a C pickler whose
// reducer_override looks at functions and classes: those that a receiver cannot import (of
// __main__, lambdas, local ones) make the whole value go to cloudpickle. pickle.dumps alone would
// pickle an instance of a __main__ class by name and fail only at the receiver.
#pragma once

#include <Python.h>

#include <string_view>

#include "actors/objects/object_handles.h"

namespace troupe::bindings {

class Buffers;

/// A new bytes object, protocol 5; nullptr with a Python error set. With `buffers`, the memory of
/// arrays of kAlignedFromBytes (value_memory.h) and more is left out of it and put there; without
/// `refs`, where Refs inside the value are put, there may be none.
PyObject* Dumps(PyObject* value, Buffers* buffers = nullptr, actors::Handles* refs = nullptr);
/// Loads what Dumps wrote; `buffers`: a list of what was left out, or nullptr. Runs what the pickle
/// says: only for bytes of an authenticated peer.
PyObject* Loads(std::string_view pickle, PyObject* buffers = nullptr);

/// The class that pickles (a new reference), nullptr with a Python error set:
/// troupe.util.register_serializer gives it a dispatch_table.
PyObject* PicklerType();

/// From now on small arrays in values are read-only where these are loaded, as large ones are and
/// as Ray's are.
void MakeSmallArraysReadOnly();

/// For troupe/_code/tensors.py: the buffer it gives next is one whose reader may write, to a copy
/// of its own.
void TakeWritable(PyObject* buffer);

/// Calls `callable`; Refs that it pickles are put into `refs`. A new reference, nullptr with a
/// Python error set.
PyObject* CallTakingRefs(PyObject* callable, actors::Handles* refs);
/// Calls `callable`; what it pickles is the runtime's to carry, and has no Refs but where
/// CallTakingRefs is under way.
PyObject* CallPickling(PyObject* callable);
/// Returns true if the runtime pickles in this thread, rather than the program by itself.
bool RuntimePickles();

/// For Ref.__reduce__: where the pickling under way puts Refs. nullptr: it may have none, which
/// TakeNestedRef then tells, once, as why the last Dumps failed.
actors::Handles* TakingRefs();
/// For what can do without Refs: where the pickling under way puts them. nullptr: it may have none,
/// and does not fail for that.
actors::Handles* TakingRefsIfAny();
/// Returns true if TakingRefs returned nullptr since the last call.
bool TakeNestedRef();

}  // namespace troupe::bindings
