// Refs inside values: a Ref as its object's name, and a Ref of a name that came. Needs the GIL.
#pragma once

#include <nanobind/nanobind.h>

namespace troupe::bindings {

/// Ref.__reduce__. Who gets the value that is being pickled registers the name with its owner before it makes a Ref
/// of it; until then whoever pickles holds it (TakingRefs). Elsewhere: a TypeError.
PyObject* ReduceRef(PyObject* ref, PyObject*);

void BindRefPickle(nanobind::module_& m);

}  // namespace troupe::bindings
