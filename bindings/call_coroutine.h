// A coroutine of an actor's method, as its task sees it: the same coroutine, that answers its call in the
// step that ends it. Needs the GIL.
//
// To asyncio it is a coroutine like any other (send, throw, close, await; current_task() is its task);
// attributes are the inner one's. It ends without a value or an error: both are in the answer.
#pragma once

#include <Python.h>

#include <memory>

#include "bindings/call_deferred.h"

namespace troupe::bindings {

class LoopCalls;

/// Steals `inner`. A new reference, or nullptr with an error set (and `call` left as it was).
PyObject* NewCallCoroutine(PyObject* inner, DeferredCallPtr& call,
                           const std::shared_ptr<LoopCalls>& calls);
/// Makes the type; once per process.
bool InitCallCoroutine();

}  // namespace troupe::bindings
