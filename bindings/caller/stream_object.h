// RefStream: the answers of a streaming call as a Python object; the package's ObjectRefGenerator
// is made of it. Needs the GIL.
#pragma once

#include <memory>

#include "actors/slots/answer.h"
#include "actors/slots/item_stream.h"
#include "bindings/support/nanobind.h"

namespace troupe::bindings {

struct CallChannelObject;
struct CallKind;

/// Takes over the reference to `answer`, the call's last frame. A new object, or nullptr with an
/// error set. `of_task`: made by a TaskPool, and `channel` only where its answers may come from
/// first, or nullptr.
PyObject* NewRefStream(actors::Answer* answer, std::shared_ptr<actors::ItemStream> items,
                       CallChannelObject* channel, const CallKind& kind, bool of_task = false);

void BindRefStream(nanobind::module_& m);

}  // namespace troupe::bindings
