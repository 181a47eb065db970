// An ItemSender as the coroutine that gives the items sees it (troupe/_actors/streams.py). Needs
// the GIL.
#pragma once

#include <memory>

#include "bindings/actor/item_sender.h"
#include "bindings/support/nanobind.h"

namespace troupe::bindings {

/// A new object, or nullptr with an error set.
PyObject* NewItemSink(std::shared_ptr<ItemSender> items);

void BindItemSink(nanobind::module_& m);

}  // namespace troupe::bindings
