// nanobind, with every conversion of types that the extension uses.
//
// All of its files include this and none of nanobind's headers: of a conversion that two files make
// the linker keeps one, and where only one of them has seen how (nanobind/stl), the other's may be
// it, which raises std::bad_cast. Lint holds it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
