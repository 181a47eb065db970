#include "bindings/support/argument_check.h"

#include <iterator>
#include <utility>

namespace troupe::bindings {

ArgumentCheck::~ArgumentCheck() {
  Py_XDECREF(check_);
  for (const Seen& seen : seen_) Py_XDECREF(seen.keywords);
}

bool ArgumentCheck::Ask(Py_ssize_t positional, PyObject* keywords) {
  PyObject* const none = keywords == nullptr ? PyTuple_New(0) : Py_NewRef(keywords);
  PyObject* const answer =
      none == nullptr ? nullptr : PyObject_CallFunction(check_, "nO", positional, none);
  Py_XDECREF(none);
  if (answer == nullptr) return false;
  Py_DECREF(answer);
  Seen& oldest = seen_[next_++ % std::size(seen_)];
  Py_XDECREF(std::exchange(oldest, {positional, Py_XNewRef(keywords)}).keywords);
  return true;
}

}  // namespace troupe::bindings
