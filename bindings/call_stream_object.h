// RefStream: the answers of a streaming call as a Python object; the package's ObjectRefGenerator is made of
// it. Needs the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "actors/item_stream.h"
#include "actors/slot.h"

namespace troupe::bindings {

struct CallChannelObject;
struct CallKind;

/// Takes over the reference to `answer`, the call's last frame. A new object, or nullptr with an error set.
PyObject* NewRefStream(actors::Slot* answer, std::shared_ptr<actors::ItemStream> items,
                       CallChannelObject* channel, const CallKind& kind);

void BindRefStream(nanobind::module_& m);

}  // namespace troupe::bindings
