// Errors of calls as Python exceptions, made by factories that the Python package sets. Needs the
// GIL.
#pragma once

#include <string_view>

#include "actors/core/call/byte_buffer.h"
#include "bindings/support/nanobind.h"
#include "runtime/base/status.h"

namespace troupe::bindings {

/// A code of this process alone, beyond those of the wire: max_pending_calls calls are under way.
inline constexpr ErrorCode kTooManyPending{100};

/// A new exception for `code`: what the error factory makes, or a builtin one without a factory
/// (TimeoutError, ConnectionError, ValueError, RuntimeError). nullptr with an error set if that
/// fails.
PyObject* NewRuntimeError(ErrorCode code, std::string_view text);
/// Sets the exception that NewRuntimeError makes as the Python error.
void RaiseRuntimeError(ErrorCode code, std::string_view text);
void RaiseStatus(const Status& status);

/// The error that is set, with its traceback, which then is set no more; a new reference.
PyObject* TakeRaised();
/// Takes the Python error that is set and appends it as the body of a kFlagTaskError reply: the
/// pickled exception (or None), type name, text, traceback. Never fails; an exception or traceback
/// too large to send is cut. Returns the exception (a new reference).
PyObject* AppendRaised(actors::ByteBuffer& out, std::size_t bytes_max);
/// Appends `exception` as the body of a kFlagTaskError reply, cut if it is too large to send. Never
/// fails.
void AppendException(actors::ByteBuffer& out, PyObject* exception, std::size_t bytes_max);
/// Makes the exception to raise for the body of a kFlagTaskError reply; nullptr: an error is set.
/// `of_argument`: the call was not made, since what makes one of its arguments raised that.
PyObject* NewTaskError(std::string_view body, PyObject* method, PyObject* description,
                       bool of_argument);

void BindCallErrors(nanobind::module_& m);

}  // namespace troupe::bindings
