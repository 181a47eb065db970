#include "bindings/call_values.h"

#include <cstdint>
#include <cstring>

#include "bindings/call_pickle.h"

namespace troupe::bindings {
namespace {

using actors::ByteBuffer;

enum Tag : unsigned char { kNone, kTrue, kFalse, kInt, kFloat, kBytes, kStr, kPickle };

constexpr std::size_t kScalarBytes = 8;
constexpr std::size_t kLengthBytes = 4;

template <class T>
void AppendScalar(ByteBuffer& out, Tag tag, T value) {
  static_assert(sizeof value == kScalarBytes);
  char* at = out.Extend(1 + kScalarBytes);
  at[0] = static_cast<char>(tag);
  std::memcpy(at + 1, &value, kScalarBytes);
}

bool AppendBytes(ByteBuffer& out, Tag tag, const char* bytes, std::size_t size) {
  if (size > 0xFFFFFFFFu) {
    PyErr_Format(PyExc_OverflowError, "a value of %zu bytes cannot be sent", size);
    return false;
  }
  const std::uint32_t length = static_cast<std::uint32_t>(size);
  char* at = out.Extend(1 + kLengthBytes + size);
  at[0] = static_cast<char>(tag);
  std::memcpy(at + 1, &length, kLengthBytes);
  if (size != 0) std::memcpy(at + 1 + kLengthBytes, bytes, size);
  return true;
}

/// The bytes of the value behind its tag and length; false: malformed.
bool Split(std::string_view bytes, Tag* tag, std::string_view* content, std::size_t* total) {
  if (bytes.empty() || static_cast<unsigned char>(bytes[0]) > kPickle) return false;
  *tag = static_cast<Tag>(bytes[0]);
  std::size_t head = 1;
  std::size_t size = 0;
  if (*tag == kInt || *tag == kFloat) {
    size = kScalarBytes;
  } else if (*tag >= kBytes) {
    if (bytes.size() < 1 + kLengthBytes) return false;
    std::uint32_t length;
    std::memcpy(&length, bytes.data() + 1, kLengthBytes);
    head += kLengthBytes;
    size = length;
  }
  if (bytes.size() - head < size) return false;
  *content = bytes.substr(head, size);
  *total = head + size;
  return true;
}

}  // namespace

bool EncodeValue(ByteBuffer& out, PyObject* value) {
  if (value == Py_None || value == Py_True || value == Py_False) {
    *out.Extend(1) = static_cast<char>(value == Py_None   ? kNone
                                       : value == Py_True ? kTrue
                                                          : kFalse);
    return true;
  }
  PyTypeObject* type = Py_TYPE(value);
  if (type == &PyLong_Type) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0) {
      AppendScalar(out, kInt, number);
      return true;
    }
  } else if (type == &PyFloat_Type) {
    AppendScalar(out, kFloat, PyFloat_AS_DOUBLE(value));
    return true;
  } else if (type == &PyBytes_Type) {
    return AppendBytes(out, kBytes, PyBytes_AS_STRING(value),
                       static_cast<std::size_t>(PyBytes_GET_SIZE(value)));
  } else if (type == &PyUnicode_Type) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(value, &size);
    if (text != nullptr) return AppendBytes(out, kStr, text, static_cast<std::size_t>(size));
    PyErr_Clear();  // lone surrogates: pickle can carry them
  }
  PyObject* pickle = Dumps(value);
  if (pickle == nullptr) return false;
  const bool appended = AppendBytes(out, kPickle, PyBytes_AS_STRING(pickle),
                                    static_cast<std::size_t>(PyBytes_GET_SIZE(pickle)));
  Py_DECREF(pickle);
  return appended;
}

Decoded DecodeValue(std::string_view* bytes, PyObject** value) {
  Tag tag;
  std::string_view content;
  std::size_t total = 0;
  if (!Split(*bytes, &tag, &content, &total)) return Decoded::kMalformed;
  bytes->remove_prefix(total);
  const Py_ssize_t size = static_cast<Py_ssize_t>(content.size());
  switch (tag) {
    case kNone:
      *value = Py_NewRef(Py_None);
      break;
    case kTrue:
      *value = Py_NewRef(Py_True);
      break;
    case kFalse:
      *value = Py_NewRef(Py_False);
      break;
    case kInt: {
      long long number;
      std::memcpy(&number, content.data(), kScalarBytes);
      *value = PyLong_FromLongLong(number);
      break;
    }
    case kFloat: {
      double number;
      std::memcpy(&number, content.data(), kScalarBytes);
      *value = PyFloat_FromDouble(number);
      break;
    }
    case kBytes:
      *value = PyBytes_FromStringAndSize(content.data(), size);
      break;
    case kStr:
      *value = PyUnicode_DecodeUTF8(content.data(), size, nullptr);
      break;
    case kPickle:
      *value = Loads(content);
      break;
  }
  return *value != nullptr ? Decoded::kOk : Decoded::kRaised;
}

std::string_view FrontValue(std::string_view bytes) {
  Tag tag;
  std::string_view content;
  std::size_t total = 0;
  return Split(bytes, &tag, &content, &total) ? bytes.substr(0, total) : std::string_view{};
}

}  // namespace troupe::bindings
