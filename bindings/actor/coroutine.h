// A coroutine of an actor's method, as its task sees it: the same coroutine, that answers its call
// in the step that ends it. Needs the GIL.
//
// To asyncio it is a coroutine like any other (send, throw, close, await; current_task() is its
// task); attributes are the inner one's. It ends without a value or an error: both are in the
// answer.
#pragma once

#include <Python.h>

#include <cstdint>
#include <memory>

#include "bindings/actor/deferred.h"

namespace troupe::bindings {

class LoopCalls;
struct CallCoroutine;

/// The coroutines of one loop that are not over; not owned.
struct CoroutineList {
  CallCoroutine* first = nullptr;
};

/// Steals `inner`. A new reference, or nullptr with an error set (and `call` left as it was).
PyObject* NewCallCoroutine(PyObject* inner, DeferredCallPtr& call,
                           const std::shared_ptr<LoopCalls>& calls);
/// Keeps `task`, which runs the result of NewCallCoroutine, until the call is answered: a loop
/// keeps no waiting task, and one that waits for something only it knows (a future of its own)
/// would be garbage, its call without an answer.
void SetTask(PyObject* coroutine, PyObject* task);
/// Keeps no task of these any more: nobody is to be answered.
void LetTasksGo(CoroutineList& coroutines);
/// Cancels the task of that call, if it is among these, and (`recursive`) what the call started.
bool CancelTask(CoroutineList& coroutines, const actors::CallerConnection& peer,
                std::uint64_t sequence, bool recursive);
/// Makes the type; once per process.
bool InitCallCoroutine();

}  // namespace troupe::bindings
