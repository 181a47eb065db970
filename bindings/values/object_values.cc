#include "bindings/values/object_values.h"

#include <absl/strings/str_format.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "actors/caller/reactor.h"
#include "actors/core/call/value_form.h"
#include "bindings/support/gil.h"
#include "bindings/values/errors.h"
#include "bindings/values/ref_pickle.h"
#include "bindings/values/values.h"
#include "runtime/store/copy.h"

namespace troupe::bindings {
namespace {

using Head = actors::form::LargeHead;
using Entry = actors::form::LargeEntry;
using actors::form::kLargeMagic;

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kReadOnly = 0;
constexpr std::uint64_t kWritableCopy = 1;
constexpr std::uint32_t kBuffersMax = 1u << 20;
constexpr std::size_t kCopyWithoutGil = 1u << 20;

std::uint64_t Aligned(std::uint64_t at) { return (at + kAlignment - 1) & ~(kAlignment - 1); }

// ---- a buffer over an object's memory ---------------------------------------------------------

struct MemoryObject {
  PyObject head;
  std::shared_ptr<actors::ObjectView> view;
  std::optional<store::Reading> copy;  // a private mapping
  char* data;
  Py_ssize_t bytes;
};
PyTypeObject* memory_type = nullptr;

MemoryObject* AsMemory(PyObject* object) { return reinterpret_cast<MemoryObject*>(object); }

void DeallocMemory(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  MemoryObject* memory = AsMemory(object);
  memory->copy.~optional();
  memory->view.~shared_ptr();
  PyObject_Free(object);
  Py_DECREF(type);
}

int GetBuffer(PyObject* object, Py_buffer* view, int flags) {
  MemoryObject* memory = AsMemory(object);
  return PyBuffer_FillInfo(view, object, memory->data, memory->bytes, !memory->copy.has_value(),
                           flags);
}

PyObject* NewMemory(std::shared_ptr<actors::ObjectView> view, const Entry& entry) {
  std::optional<store::Reading> copy;
  char* data = const_cast<char*>(view->bytes().data());
  if (entry.kind == kWritableCopy) {
    StatusOr<store::Reading> reading = view->Private(&data);
    if (!reading.ok()) {
      RaiseStatus(reading.status());
      return nullptr;
    }
    copy = *std::move(reading);
  }
  auto* memory = PyObject_New(MemoryObject, memory_type);
  if (memory == nullptr) return nullptr;
  new (&memory->view) std::shared_ptr<actors::ObjectView>(std::move(view));
  new (&memory->copy) std::optional<store::Reading>(std::move(copy));
  memory->data = data + entry.offset;
  memory->bytes = static_cast<Py_ssize_t>(entry.bytes);
  return reinterpret_cast<PyObject*>(memory);
}

PyObject* NewCopy(std::string_view bytes, const Entry& entry) {
  const char* from = bytes.data() + entry.offset;
  const auto size = static_cast<Py_ssize_t>(entry.bytes);
  return entry.kind == kWritableCopy ? PyByteArray_FromStringAndSize(from, size)
                                     : PyBytes_FromStringAndSize(from, size);
}

/// The value in `bytes`, whose buffers are over `view`, or copies without one. nullptr without an
/// error: malformed.
PyObject* Decode(std::string_view bytes, const std::shared_ptr<actors::ObjectView>& view) {
  Head head;
  if (bytes.size() < sizeof head) return nullptr;
  std::memcpy(&head, bytes.data(), sizeof head);
  const std::uint64_t table = std::uint64_t{head.buffers} * sizeof(Entry);
  if (head.magic != kLargeMagic || head.buffers > kBuffersMax ||
      bytes.size() - sizeof head < table || bytes.size() - sizeof head - table < head.head_bytes) {
    return nullptr;
  }
  PyObject* buffers = PyList_New(static_cast<Py_ssize_t>(head.buffers));
  for (std::uint32_t i = 0; buffers != nullptr && i < head.buffers; ++i) {
    Entry entry;
    std::memcpy(&entry, bytes.data() + sizeof head + i * sizeof entry, sizeof entry);
    if (entry.offset > bytes.size() || entry.bytes > bytes.size() - entry.offset ||
        entry.kind > kWritableCopy) {
      Py_DECREF(buffers);
      return nullptr;
    }
    PyObject* one = view != nullptr ? NewMemory(view, entry) : NewCopy(bytes, entry);
    if (one == nullptr) {
      Py_CLEAR(buffers);
    } else {
      PyList_SET_ITEM(buffers, i, one);
    }
  }
  if (buffers == nullptr) return nullptr;
  std::string_view value_bytes = bytes.substr(sizeof head + table, head.head_bytes);
  PyObject* value = nullptr;
  if (DecodeValueWith(&value_bytes, buffers, &value) == Decoded::kMalformed) value = nullptr;
  Py_DECREF(buffers);
  return value;
}

}  // namespace

Outgoing::~Outgoing() {
  actors::ObjectStore* const store = writing ? actors::ObjectStore::Existing() : nullptr;
  if (store != nullptr) store->pool().GiveUp(*writing);
}

Buffers::~Buffers() { Clear(); }

void Buffers::Clear() {
  for (One& one : all_) PyBuffer_Release(&one.view);
  all_.clear();
  bytes_ = 0;
}

bool Buffers::Add(PyObject* buffer, bool writable_copy) {
  One one{{}, writable_copy};
  if (PyObject_GetBuffer(buffer, &one.view, PyBUF_SIMPLE) != 0) return false;
  all_.push_back(one);
  bytes_ += static_cast<std::size_t>(one.view.len);
  return true;
}

std::size_t LargeSize(std::size_t head_bytes, const Buffers& buffers) {
  std::uint64_t size = sizeof(Head) + buffers.all().size() * sizeof(Entry) + head_bytes;
  for (const Buffers::One& one : buffers.all()) {
    size = Aligned(size) + static_cast<std::uint64_t>(one.view.len);
  }
  return size;
}

void WriteLarge(char* at, std::string_view head, std::string_view more, const Buffers& buffers) {
  std::optional<GilReleased> released;
  if (buffers.bytes() + more.size() >= kCopyWithoutGil) released.emplace();
  Head first;
  first.buffers = static_cast<std::uint32_t>(buffers.all().size());
  first.head_bytes = head.size() + more.size();
  std::memcpy(at, &first, sizeof first);
  char* entries = at + sizeof first;
  char* to = entries + buffers.all().size() * sizeof(Entry);
  std::memcpy(to, head.data(), head.size());
  store::CopyBytes(to + head.size(), more.data(), more.size());
  std::uint64_t offset = static_cast<std::uint64_t>(to - at) + first.head_bytes;
  for (const Buffers::One& one : buffers.all()) {
    const std::uint64_t end = offset;
    offset = Aligned(offset);
    std::memset(at + end, 0, offset - end);
    const Entry entry{offset, static_cast<std::uint64_t>(one.view.len),
                      one.writable_copy ? kWritableCopy : kReadOnly};
    std::memcpy(entries, &entry, sizeof entry);
    entries += sizeof entry;
    store::CopyBytes(at + offset, static_cast<const char*>(one.view.buf), entry.bytes);
    offset += entry.bytes;
  }
}

std::string HexOf(const store::ObjectId& name) {
  return absl::StrFormat("%016x%016x", name.owner.hi, name.sequence);
}

actors::ObjectStore* Objects() {
  actors::ObjectStore* store = actors::ObjectStore::Current();
  if (store == nullptr) {
    RaiseRuntimeError(ErrorCode::kTooLarge,
                      "no descriptor is left for large objects (raise `ulimit -n`)");
  }
  return store;
}

bool StoreLarge(Outgoing* outgoing, actors::ByteBuffer& out, std::string_view head,
                std::string_view more, const Buffers& buffers, actors::Handles refs) {
  actors::ObjectStore* store = Objects();
  if (store == nullptr) return false;
  const std::size_t size = LargeSize(head.size() + more.size(), buffers);
  StatusOr<store::Writing> writing = [&] {
    const GilReleased released;  // new memory takes its time
    return store->pool().Begin(size);
  }();
  if (!writing.ok()) {
    RaiseStatus(writing.status());
    return false;
  }
  WriteLarge(writing->data, head, more, buffers);
  if (outgoing->way == Outgoing::Way::kWriting) {
    outgoing->writing = *writing;
    outgoing->held.Add(std::move(refs));
    return true;
  }
  const store::ObjectId id =
      store->Put(*writing, actors::CallReactor::Current().NextLocalId(), refs.ids());
  outgoing->held.Add(id);
  return AppendNamed(out, id, *outgoing);
}

bool AppendNamed(actors::ByteBuffer& out, const store::ObjectId& id, const Outgoing& outgoing) {
  std::vector<store::ObjectId> inside;
  if (outgoing.names_inside) inside = actors::ObjectStore::Current()->Inside(id);
  if (inside.empty()) {
    AppendObjectName(out, id);
    return true;
  }
  return AppendObjectWithRefs(out, id, inside, outgoing.names_remote);
}

PyObject* ValueOfObject(const store::ObjectId& id) {
  actors::ObjectStore* store = Objects();
  if (store == nullptr) return nullptr;
  StatusOr<actors::ObjectView> view = store->View(id);
  if (!view.ok()) {
    RaiseStatus(view.status());
    return nullptr;
  }
  const auto shared = std::make_shared<actors::ObjectView>(*std::move(view));
  const std::vector<store::ObjectId> inside = store->Inside(id);
  std::optional<NamedRefs> named;
  if (!inside.empty()) named.emplace(inside);
  PyObject* value = Decode(shared->bytes(), shared);
  if (value == nullptr && !PyErr_Occurred()) {
    RaiseRuntimeError(ErrorCode::kInternal, "an object's memory holds bytes that are no value");
  }
  return value;
}

PyObject* ValueOfLargeBytes(std::string_view bytes) { return Decode(bytes, nullptr); }

bool AppendObjectBytes(actors::ByteBuffer& out, const store::ObjectId& id, std::size_t below,
                       bool* appended) {
  actors::ObjectStore* store = Objects();
  if (store == nullptr) return false;
  StatusOr<actors::ObjectView> view = store->View(id);
  if (!view.ok()) {
    RaiseStatus(view.status());
    return false;
  }
  *appended = view->bytes().size() < below;
  return !*appended || AppendLargeBytes(out, view->bytes());
}

bool InitObjectMemory() {
  static PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(DeallocMemory)},
      {Py_bf_getbuffer, reinterpret_cast<void*>(GetBuffer)},
      {Py_tp_doc, const_cast<char*>("The memory of an object, kept as it is while this lives.")},
      {0, nullptr}};
  static PyType_Spec spec = {"troupe._native._Memory", sizeof(MemoryObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  memory_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return memory_type != nullptr;
}

}  // namespace troupe::bindings
