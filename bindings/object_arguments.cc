#include "bindings/object_arguments.h"

#include "actors/now.h"
#include "bindings/call_errors.h"
#include "bindings/call_pickle.h"
#include "bindings/gil.h"
#include "bindings/object_values.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

/// From when the call is come to. A living owner on this host answers within microseconds: one that does not is
/// stopped, and its calls must not keep others' from running.
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
  result["mapped"] = figures.mapped;
  result["links"] = figures.links;
  result["pool_bytes"] = figures.pool.bytes;
  result["pool_segments"] = figures.pool.segments;
  result["pool_in_use"] = figures.pool.in_use;
  result["pool_made"] = figures.pool.made;
  return result;
}

}  // namespace

bool Incoming::Fetch(const ProcessId& lender) {
  if (lender.IsNil()) {
    RaiseRuntimeError(actors::kObjectLost,
                      "an argument lies in the memory of another host\n  pass large arguments and lists of refs once "
                      "the actor is there (await any call of it first), in parts of at most 16 MiB; a task that runs on "
                      "another host than its caller takes values alone");
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
    RaiseRuntimeError(actors::kObjectLost,
                      "an argument's owner did not answer within 30 s of the call: its process is stopped");
    return false;
  }
}

void BindObjects(nb::module_& m) {
  if (!InitObjectMemory()) throw nb::python_error();
  m.def("_object_figures", &Figures, "Counts of this process's object store, for tests and benchmarks.");
  m.def(
      "_take_writable", [](nb::handle buffer) { TakeWritable(buffer.ptr()); }, nb::arg("buffer"));
}

}  // namespace troupe::bindings
