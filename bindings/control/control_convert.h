// Control messages between Python and C++: (kind, fields, attachment) <-> wire::Message.
//
// Needs the GIL. A failed conversion throws nanobind::python_error with the Python exception set: a
// TypeError or ValueError that names the kind and the key.
#pragma once

#include <string>

#include "bindings/support/nanobind.h"
#include "runtime/base/status.h"
#include "runtime/wire/messages.h"

namespace troupe::bindings {

/// `attachment` is any object with the buffer protocol; its bytes are copied.
wire::Message MessageFromPython(const std::string& kind, nanobind::object fields,
                                nanobind::object attachment);
/// (kind, fields, attachment as bytes).
nanobind::tuple MessageToPython(const wire::Message& message);
/// Throws the Python exception that the package's error factory makes of `status`.
[[noreturn]] void ThrowStatus(const Status& status);

/// encode_message, decode_message (datagrams of the zygote's socket), body_kinds.
void BindControlCodec(nanobind::module_& m);

}  // namespace troupe::bindings
