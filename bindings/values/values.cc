#include "bindings/values/values.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "actors/core/call/value_form.h"
#include "actors/core/remote/value_refs.h"
#include "actors/objects/object_store.h"
#include "bindings/values/object_values.h"
#include "bindings/values/pickle.h"
#include "bindings/values/ref_pickle.h"
#include "runtime/store/core/control_frame.h"

namespace troupe::bindings {
namespace {

using actors::ByteBuffer;

using namespace actors::form;  // the tags

static_assert(kRefs == actors::kRefsTag);

constexpr std::size_t kRefsMax = store::ControlLimits().contained_max;

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

/// References inside a value, before it: u32 how many, their names.
bool SplitRefs(std::string_view content, std::vector<store::ObjectId>* ids,
               std::string_view* value) {
  std::uint32_t count = 0;
  if (content.size() < sizeof count) return false;
  std::memcpy(&count, content.data(), sizeof count);
  content.remove_prefix(sizeof count);
  if (content.size() / actors::kObjectIdBytes < count) return false;
  for (std::uint32_t i = 0; ids != nullptr && i < count; ++i) {
    const auto id =
        actors::ReadObjectId(content.substr(i * actors::kObjectIdBytes, actors::kObjectIdBytes));
    if (!id) return false;
    ids->push_back(*id);
  }
  *value = content.substr(count * actors::kObjectIdBytes);
  return !value->empty() && (value->front() == kPickle || value->front() == kLarge ||
                             value->front() == kBytes || value->front() == kObject);
}

/// Appends that, and lets `append` append the value. False: an error is set.
template <class Append>
bool AppendWithRefs(ByteBuffer& out, const std::vector<store::ObjectId>& refs, bool names_remote,
                    Append append) {
  const std::size_t start = out.size();
  const auto count = static_cast<std::uint32_t>(refs.size());
  std::string names(reinterpret_cast<const char*>(&count), sizeof count);
  for (const store::ObjectId& id : refs) {
    names.append(
        actors::NameBytes(names_remote ? actors::ObjectStore::Current()->RemoteNameOf(id) : id));
  }
  if (!AppendBytes(out, kRefs, names.data(), names.size()) || !append()) return false;
  const std::size_t total = out.size() - start - 1 - kLengthBytes;
  const auto length = static_cast<std::uint32_t>(total);
  std::memcpy(out.data() + start + 1, &length, kLengthBytes);
  return true;
}

/// Reserves a head in front of bytes that are written elsewhere than behind it.
class SizedHead {
 public:
  SizedHead(Tag tag, std::size_t size) {
    const auto length = static_cast<std::uint32_t>(size);
    bytes_[0] = static_cast<char>(tag);
    std::memcpy(bytes_ + 1, &length, kLengthBytes);
  }
  std::string_view view() const { return {bytes_, sizeof bytes_}; }

 private:
  char bytes_[1 + kLengthBytes];
};

/// A value whose bytes are long: where it belongs.
bool AppendLong(ByteBuffer& out, Tag tag, const char* bytes, std::size_t size, Outgoing* outgoing,
                actors::Handles refs = {}) {
  if (outgoing == nullptr || size < outgoing->large_from) return AppendBytes(out, tag, bytes, size);
  if (size > 0xFFFFFFFFu) return AppendBytes(out, tag, bytes, size);  // says so
  return StoreLarge(outgoing, out, SizedHead(tag, size).view(), {bytes, size}, Buffers(),
                    std::move(refs));
}

/// A pickle, and the arrays that were taken out of it, as bytes of the frame.
bool AppendInFrame(ByteBuffer& out, std::string_view pickle, std::size_t large,
                   const Buffers& buffers) {
  if (buffers.all().empty()) return AppendBytes(out, kPickle, pickle.data(), pickle.size());
  if (large > 0xFFFFFFFFu) return AppendBytes(out, kLarge, nullptr, large);  // says so
  const SizedHead head(kLarge, large);
  out.Append(head.view().data(), head.view().size());
  WriteLarge(out.Extend(large), SizedHead(kPickle, pickle.size()).view(), pickle, buffers);
  return true;
}

bool AppendPickle(ByteBuffer& out, std::string_view pickle, const Buffers& buffers,
                  actors::Handles refs, Outgoing* outgoing) {
  constexpr std::size_t kHeadBytes = 1 + kLengthBytes;
  const bool taken = !buffers.all().empty();
  const std::size_t size = taken ? LargeSize(kHeadBytes + pickle.size(), buffers) : pickle.size();
  if (outgoing != nullptr && size >= outgoing->large_from) {
    if (!taken)
      return AppendLong(out, kPickle, pickle.data(), pickle.size(), outgoing, std::move(refs));
    if (pickle.size() > 0xFFFFFFFFu)
      return AppendBytes(out, kPickle, pickle.data(), pickle.size());  // says so
    const SizedHead head(kPickle, pickle.size());
    return StoreLarge(outgoing, out, head.view(), pickle, buffers, std::move(refs));
  }
  if (refs.empty()) return AppendInFrame(out, pickle, size, buffers);
  const auto append = [&] { return AppendInFrame(out, pickle, size, buffers); };
  if (!AppendWithRefs(out, refs.ids(), outgoing->names_remote, append)) return false;
  outgoing->held.Add(std::move(refs));
  return true;
}

bool AppendPickled(ByteBuffer& out, PyObject* value, Outgoing* outgoing) {
  Buffers buffers;
  actors::Handles refs;
  PyObject* pickle = Dumps(value, outgoing != nullptr ? &buffers : nullptr,
                           outgoing != nullptr && outgoing->refs ? &refs : nullptr);
  if (pickle == nullptr) return false;
  bool good = refs.ids().size() <= kRefsMax;
  if (good) {
    const auto size = static_cast<std::size_t>(PyBytes_GET_SIZE(pickle));
    good = AppendPickle(out, {PyBytes_AS_STRING(pickle), size}, buffers, std::move(refs), outgoing);
  } else {
    PyErr_Format(PyExc_ValueError, "a value holds %zu refs, it may hold %zu", refs.ids().size(),
                 kRefsMax);
  }
  Py_DECREF(pickle);
  return good;
}

}  // namespace

void AppendObjectName(ByteBuffer& out, const store::ObjectId& id) {
  const std::string name = actors::NameBytes(id);
  static_cast<void>(AppendBytes(out, kObject, name.data(), name.size()));
}

bool AppendObjectWithRefs(ByteBuffer& out, const store::ObjectId& id,
                          const std::vector<store::ObjectId>& refs, bool names_remote) {
  return AppendWithRefs(out, refs, names_remote, [&] {
    AppendObjectName(out, id);
    return true;
  });
}

bool EncodeWithRefs(ByteBuffer& out, PyObject* value, const actors::Handles& refs) {
  if (refs.empty()) return EncodeValue(out, value);
  if (refs.ids().size() <= kRefsMax) {
    return AppendWithRefs(out, refs.ids(), /*names_remote=*/false,
                          [&] { return EncodeValue(out, value); });
  }
  PyErr_Format(PyExc_ValueError, "a value holds %zu refs, it may hold %zu", refs.ids().size(),
               kRefsMax);
  return false;
}

bool AppendLargeBytes(ByteBuffer& out, std::string_view bytes) {
  return AppendBytes(out, kLarge, bytes.data(), bytes.size());
}

bool ObjectsNamed(std::string_view encoded, int count, std::vector<store::ObjectId>* values,
                  std::vector<store::ObjectId>* refs) {
  for (int i = 0; i < count; ++i) {
    Tag tag;
    std::string_view content;
    std::size_t total = 0;
    if (!Split(encoded, &tag, &content, &total)) return false;
    encoded.remove_prefix(total);
    std::string_view value;
    if (tag == kRefs) {
      if (!SplitRefs(content, refs, &value)) return false;
      if (value.front() != kObject) continue;
      if (!Split(value, &tag, &content, &total)) return false;
    }
    if (tag != kObject) continue;
    const std::optional<store::ObjectId> id = actors::ReadObjectId(content);
    if (!id) return false;
    values->push_back(*id);
  }
  return true;
}

std::optional<store::ObjectId> TakeObjectName(std::string_view* bytes,
                                              std::vector<store::ObjectId>* refs) {
  Tag tag;
  std::string_view content;
  std::size_t total = 0;
  if (!Split(*bytes, &tag, &content, &total)) return std::nullopt;
  if (tag == kRefs) {
    std::string_view value;
    std::size_t ignored = 0;
    if (!SplitRefs(content, refs, &value) || !Split(value, &tag, &content, &ignored))
      return std::nullopt;
  }
  if (tag != kObject) return std::nullopt;
  bytes->remove_prefix(total);
  return actors::ReadObjectId(content);
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
    case kRefs: {
      std::string_view inner;
      std::vector<store::ObjectId> refs;
      if (buffers != nullptr || !SplitRefs(content, &refs, &inner)) return Decoded::kMalformed;
      const NamedRefs named(refs);
      return DecodeValueWith(&inner, nullptr, value);
    }
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
