// CallChannel: the connection of this process to one actor, as a Python object. Needs the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>

#include "actors/channel.h"
#include "bindings/call_shapes.h"

namespace troupe::bindings {

struct CallChannelObject {
  PyObject_HEAD std::shared_ptr<actors::Channel>* channel;
  ShapeTable* shapes;
  PyObject* description;  // str
  std::uint32_t generation;
};

void BindCallChannel(nanobind::module_& m);

}  // namespace troupe::bindings
