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
#include "bindings/values/value_memory.h"
#include "bindings/values/values.h"
#include "runtime/store/copy.h"

namespace troupe::bindings {
namespace {

using Head = actors::form::LargeHead;
using Entry = actors::form::LargeEntry;
using actors::form::kLargeMagic;

constexpr std::uint64_t kReadOnly = 0;
constexpr std::uint64_t kWritableCopy = 1;
constexpr std::size_t kCopyWithoutGil = 1u << 20;

std::uint64_t Aligned(std::uint64_t at) {
  return (at + kArrayAlignment - 1) & ~(kArrayAlignment - 1);
}

/// The memory of one array: large ones of an object are read where they lie.
PyObject* MemoryOf(std::string_view bytes, const std::shared_ptr<actors::ObjectView>& view,
                   const Entry& entry) {
  const bool writable = entry.kind == kWritableCopy;
  if (view != nullptr && entry.bytes >= actors::kLargeBytes)
    return NewObjectMemory(view, entry.offset, entry.bytes, writable);
  return NewCopiedMemory(bytes.substr(entry.offset, entry.bytes), writable);
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
  std::uint64_t left = bytes.size();  // buffers do not overlap: copies take no more than came
  for (std::uint32_t i = 0; buffers != nullptr && i < head.buffers; ++i) {
    Entry entry;
    std::memcpy(&entry, bytes.data() + sizeof head + i * sizeof entry, sizeof entry);
    if (entry.offset > bytes.size() || entry.bytes > bytes.size() - entry.offset ||
        entry.bytes > left || entry.kind > kWritableCopy) {
      Py_DECREF(buffers);
      return nullptr;
    }
    left -= entry.bytes;
    PyObject* one = MemoryOf(bytes, view, entry);
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

}  // namespace troupe::bindings
