#include "bindings/support/gil.h"

#include <cxxabi.h>
#include <unistd.h>

namespace troupe::bindings {
namespace {

// Leaving the handler would go on with the unwinding.
[[noreturn]] void AwaitTheEnd() {
  for (;;) ::pause();
}

}  // namespace

void RetakeGil(PyThreadState* state) {
  try {
    PyEval_RestoreThread(state);
  } catch (abi::__forced_unwind&) {
    AwaitTheEnd();
  }
}

void AwaitTheEndWhereUnwound(const std::exception_ptr& caught, void* /*payload*/) {
  if (caught == nullptr) AwaitTheEnd();
  std::rethrow_exception(caught);
}

PyGILState_STATE EnsureGil() {
  try {
    return PyGILState_Ensure();
  } catch (abi::__forced_unwind&) {
    AwaitTheEnd();
  }
}

}  // namespace troupe::bindings
