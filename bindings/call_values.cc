#include "bindings/call_values.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "actors/object_store.h"
#include "bindings/call_pickle.h"
#include "bindings/object_values.h"

namespace troupe::bindings {
namespace {

using actors::ByteBuffer;

enum Tag : unsigned char { kNone, kTrue, kFalse, kInt, kFloat, kBytes, kStr, kPickle, kObject, kLarge };

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
  if (bytes.empty() || static_cast<unsigned char>(bytes[0]) > kLarge) return false;
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

/// A value whose bytes are long: where it belongs.
bool AppendLong(ByteBuffer& out, Tag tag, const char* bytes, std::size_t size, Outgoing* outgoing) {
  if (outgoing == nullptr || size < outgoing->large_from) return AppendBytes(out, tag, bytes, size);
  char space[1 + kLengthBytes];
  ByteBuffer head(space, sizeof space);
  if (!AppendBytes(head, tag, nullptr, 0)) return false;
  if (size > 0xFFFFFFFFu) return AppendBytes(out, tag, bytes, size);  // says so
  const std::uint32_t length = static_cast<std::uint32_t>(size);
  std::memcpy(head.data() + 1, &length, kLengthBytes);
  return StoreLarge(outgoing, out, head.view(), {bytes, size}, Buffers());
}

bool AppendPickled(ByteBuffer& out, PyObject* value, Outgoing* outgoing) {
  Buffers buffers;
  PyObject* pickle = Dumps(value, outgoing != nullptr ? &buffers : nullptr);
  if (pickle == nullptr) return false;
  const char* bytes = PyBytes_AS_STRING(pickle);
  const auto size = static_cast<std::size_t>(PyBytes_GET_SIZE(pickle));
  bool good = true;
  if (buffers.all().empty()) {
    good = AppendLong(out, kPickle, bytes, size, outgoing);
  } else {
    ByteBuffer head;
    good = AppendBytes(head, kPickle, bytes, size);
    const std::size_t large = good ? LargeSize(head.size(), buffers) : 0;
    if (good && large >= outgoing->large_from) {
      good = StoreLarge(outgoing, out, head.view(), {}, buffers);
    } else if (good && large > 0xFFFFFFFFu) {
      good = AppendBytes(out, kLarge, nullptr, large);  // says so
    } else if (good) {
      const std::uint32_t length = static_cast<std::uint32_t>(large);
      char* at = out.Extend(1 + kLengthBytes + large);
      at[0] = static_cast<char>(kLarge);
      std::memcpy(at + 1, &length, kLengthBytes);
      WriteLarge(at + 1 + kLengthBytes, head.view(), {}, buffers);
    }
  }
  Py_DECREF(pickle);
  return good;
}

}  // namespace

void AppendObjectName(ByteBuffer& out, const store::ObjectId& id) {
  std::string name;
  actors::AppendObjectId(name, id);
  static_cast<void>(AppendBytes(out, kObject, name.data(), name.size()));
}

bool AppendLargeBytes(ByteBuffer& out, std::string_view bytes) {
  return AppendBytes(out, kLarge, bytes.data(), bytes.size());
}

bool ObjectsNamed(std::string_view values, int count, std::vector<store::ObjectId>* ids) {
  for (int i = 0; i < count; ++i) {
    Tag tag;
    std::string_view content;
    std::size_t total = 0;
    if (!Split(values, &tag, &content, &total)) return false;
    values.remove_prefix(total);
    if (tag != kObject) continue;
    const std::optional<store::ObjectId> id = actors::ReadObjectId(content);
    if (!id) return false;
    ids->push_back(*id);
  }
  return true;
}

bool EncodeValue(ByteBuffer& out, PyObject* value, Outgoing* outgoing) {
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
    return AppendLong(out, kBytes, PyBytes_AS_STRING(value),
                      static_cast<std::size_t>(PyBytes_GET_SIZE(value)), outgoing);
  } else if (type == &PyUnicode_Type) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(value, &size);
    if (text != nullptr) {
      return AppendLong(out, kStr, text, static_cast<std::size_t>(size), outgoing);
    }
    PyErr_Clear();  // lone surrogates: pickle can carry them
  }
  return AppendPickled(out, value, outgoing);
}

Decoded DecodeValue(std::string_view* bytes, PyObject** value) {
  return DecodeValueWith(bytes, nullptr, value);
}

Decoded DecodeValueWith(std::string_view* bytes, PyObject* buffers, PyObject** value) {
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
      *value = Loads(content, buffers);
      break;
    case kObject: {
      const std::optional<store::ObjectId> id = actors::ReadObjectId(content);
      if (!id || buffers != nullptr) return Decoded::kMalformed;
      *value = ValueOfObject(*id);
      break;
    }
    case kLarge:
      if (buffers != nullptr) return Decoded::kMalformed;
      *value = ValueOfLargeBytes(content);
      if (*value == nullptr && !PyErr_Occurred()) return Decoded::kMalformed;
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
