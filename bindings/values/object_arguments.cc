#include "bindings/values/object_arguments.h"

#include "actors/net/now.h"
#include "bindings/support/gil.h"
#include "bindings/values/errors.h"
#include "bindings/values/object_values.h"
#include "bindings/values/pickle.h"
#include "bindings/values/ref_pickle.h"
#include "bindings/values/value_memory.h"
#include "bindings/values/values.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

/// From when the call is come to. A living owner on this host answers within microseconds: one that
/// does not is stopped, and its calls must not keep others' from running.
constexpr Duration kFetchMax = std::chrono::seconds(30);
constexpr Duration kSignalSlice = std::chrono::milliseconds(50);

nb::dict Figures() {
  nb::dict result;
  actors::ObjectStore* const store = actors::ObjectStore::Existing();
  const actors::ObjectStore::Figures figures =
      store != nullptr ? store->figures() : actors::ObjectStore::Figures();
  result["owned"] = figures.owned;
  result["lent"] = figures.lent;
  result["borrowed"] = figures.borrowed;
  result["lives"] = figures.lives;
  result["mapped"] = figures.mapped;
  result["links"] = figures.links;
  result["pool_bytes"] = figures.pool.bytes;
  result["disk_bytes"] = figures.pool.disk_bytes;
  result["pool_segments"] = figures.pool.segments;
  result["pool_in_use"] = figures.pool.in_use;
  result["pool_made"] = figures.pool.made;
  return result;
}

const char* NameOf(store::ValueKind kind) {
  switch (kind) {
    case store::ValueKind::kPending:
      return "pending";
    case store::ValueKind::kInline:
      return "inline";
    case store::ValueKind::kSegments:
      return "memory";
    case store::ValueKind::kError:
      return "error";
    case store::ValueKind::kLost:
      return "lost";
  }
  return "";
}

nb::list ListObjects(std::size_t most) {
  nb::list result;
  actors::ObjectStore* const store = actors::ObjectStore::Existing();
  if (store == nullptr) return result;
  std::vector<actors::ListedObject> objects;
  {
    // the store's own thread may want the interpreter while it holds the lock
    const GilReleased released;
    objects = store->List(most);
  }
  for (const actors::ListedObject& each : objects) {
    nb::dict row;
    row["object_id"] = HexOf(each.name);
    row["owned"] = each.owned;
    row["state"] = each.gone ? "lost" : NameOf(each.kind);
    row["bytes"] = each.bytes;
    row["handles"] = each.holds.handles;
    row["views"] = each.holds.views;
    row["containers"] = each.holds.containers;
    row["lent"] = each.lent;
    row["contained"] = each.contained;
    result.append(row);
  }
  return result;
}

}  // namespace

bool Incoming::Fetch(const ProcessId& lender) {
  if (lender.IsNil()) LeaveLives();
  if (lender.IsNil() && values.empty() && refs.empty()) return true;
  if (lender.IsNil()) {
    RaiseRuntimeError(actors::kObjectLost,
                      "an argument lies in its caller's memory, and that process has no name for "
                      "it: no descriptor was left "
                      "there (raise `ulimit -n`)");
    return false;
  }
  actors::ObjectStore* const store = Objects();
  if (store == nullptr) return false;
  for (const std::vector<store::ObjectId>* ids : {&values, &refs}) {
    store->Receive(lender, *ids);
    for (const store::ObjectId& id : *ids) received_.Add(id);
  }
  const Instant until = actors::Now() + kFetchMax;
  while (true) {
    bool all = false;
    {
      const GilReleased released;
      all = store->Await(values, refs, kSignalSlice);
    }
    if (all) return true;
    if (PyErr_CheckSignals() != 0) return false;
    if (actors::Now() < until) continue;
    RaiseRuntimeError(
        actors::kObjectLost,
        "an argument's owner did not answer within 30 s of the call: its process is stopped");
    return false;
  }
}

void Incoming::LeaveLives() { std::erase_if(refs, store::IsLife); }

bool Incoming::FetchRemote(std::shared_ptr<actors::RemoteArguments> came) {
  if (came == nullptr) LeaveLives();
  if (came == nullptr && !(values.empty() && refs.empty())) {
    RaiseRuntimeError(ErrorCode::kTooLarge,
                      "large arguments from another host, and those with Refs inside them, need a "
                      "connection of their "
                      "own, and this process has no descriptor left (raise `ulimit -n`)");
    return false;
  }
  away_ = std::move(came);
  return true;
}

bool Incoming::TakeRemote(std::string_view* bytes, PyObject** value) const {
  if (away_ == nullptr) return false;
  std::vector<store::ObjectId> inside;
  const std::optional<store::ObjectId> id = TakeObjectName(bytes, &inside);
  if (!id) return false;
  const StatusOr<store::ObjectId> copy = away_->CopyOf(*id);
  *value = nullptr;
  if (copy.ok()) {
    const NamedRefs named(inside);
    *value = ValueOfObject(*copy);
  } else {
    const ErrorCode code = ErrorCodeOf(copy.status());
    RaiseRuntimeError(code == ErrorCode::kTooLarge ? code : actors::kObjectLost,
                      "a large argument could not be fetched from its caller's host: " +
                          MessageOf(copy.status()));
  }
  return true;
}

void BindObjects(nb::module_& m) {
  BindValueMemory(m);
  m.def("_object_figures", &Figures,
        "Counts of this process's object store, for tests and benchmarks.");
  m.def("list_objects", &ListObjects, nb::arg("most"),
        "What this process's object store knows, a dict each.");
  m.def("_make_small_arrays_read_only", &MakeSmallArraysReadOnly,
        "Of what this process pickles from now on.");
  m.def("_take_writable", [](nb::handle buffer) { TakeWritable(buffer.ptr()); }, nb::arg("buffer"));
}

}  // namespace troupe::bindings
