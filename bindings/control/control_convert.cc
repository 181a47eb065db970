#include "bindings/control/control_convert.h"

#include <string_view>

#include "bindings/support/nanobind.h"
#include "bindings/values/errors.h"
#include "runtime/wire/frame.h"
#include "runtime/wire/python_convert.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

std::string CopyBuffer(nb::handle object) {
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
  std::string bytes(static_cast<const char*>(view.buf), static_cast<std::size_t>(view.len));
  PyBuffer_Release(&view);
  return bytes;
}

nb::bytes EncodeMessage(const std::string& kind, nb::object fields, nb::object attachment) {
  const StatusOr<std::string> frame =
      wire::EncodeFrame(MessageFromPython(kind, std::move(fields), std::move(attachment)));
  if (!frame.ok()) ThrowStatus(frame.status());
  return nb::bytes(frame->data(), frame->size());
}

nb::tuple DecodeMessage(nb::object data) {
  const StatusOr<wire::Message> message = wire::DecodeFrame(CopyBuffer(data));
  if (!message.ok()) ThrowStatus(message.status());
  return MessageToPython(*message);
}

}  // namespace

void ThrowStatus(const Status& status) {
  RaiseStatus(status);
  throw nb::python_error();
}

wire::Message MessageFromPython(const std::string& kind, nb::object fields, nb::object attachment) {
  wire::Message message;
  if (!wire::BodyFromPython(kind, fields.ptr(), message.body)) throw nb::python_error();
  if (!attachment.is_none()) message.attachment = CopyBuffer(attachment);
  return message;
}

nb::tuple MessageToPython(const wire::Message& message) {
  nb::object fields = nb::steal(wire::BodyToPython(message.body));
  if (!fields.is_valid()) throw nb::python_error();
  const std::string_view kind = wire::NameOf(message.body);
  return nb::make_tuple(nb::str(kind.data(), kind.size()), std::move(fields),
                        nb::bytes(message.attachment.data(), message.attachment.size()));
}

void BindControlCodec(nb::module_& m) {
  m.def("encode_message", &EncodeMessage, nb::arg("kind"), nb::arg("fields"),
        nb::arg("attachment") = nb::bytes("", 0),
        "One control message as the bytes of a frame, e.g. for a datagram socket.");
  m.def("decode_message", &DecodeMessage, nb::arg("data"),
        "The inverse of encode_message: (kind, fields, attachment).");
  m.def(
      "message_kinds",
      [] {
        nb::list kinds;
        for (const std::string_view kind : wire::kBodyNames)
          kinds.append(nb::str(kind.data(), kind.size()));
        return kinds;
      },
      "The names of all control messages.");
}

}  // namespace troupe::bindings
