// The channel of a Ref's answer: the Python object's fields alone. The object itself, with what
// calls and ends, is bindings/caller/channel.h. Needs the GIL.
#pragma once

#include <Python.h>

#include <cstdint>
#include <memory>

#include "actors/caller/channel.h"
#include "bindings/support/callable_cell.h"
#include "bindings/values/shapes.h"

namespace troupe::bindings {

struct CallChannelObject {
  PyObject head;
  std::shared_ptr<actors::Channel>* channel;
  std::shared_ptr<CallableCell>* on_disconnect;  // callback for the end of the connection
  ShapeTable* shapes;
  PyObject* description;     // str
  std::uint32_t generation;  // ForkGuard's when it was made: inert in a child
};

}  // namespace troupe::bindings
