#include "bindings/taken_refs.h"

#include <cstring>
#include <string>
#include <string_view>

#include "bindings/call_pickle.h"
#include "bindings/object_arguments.h"
#include "bindings/object_values.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

std::string_view View(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

/// Registered with their owners: until this goes the pickle can be loaded.
class ReceivedRefs {
 public:
  ReceivedRefs(const nb::bytes& names, const ProcessId& lender) {
    std::string_view left = View(names);
    for (; left.size() >= actors::kObjectIdBytes; left.remove_prefix(actors::kObjectIdBytes)) {
      const auto id = actors::ReadObjectId(left.substr(0, actors::kObjectIdBytes));
      if (!id) throw nb::value_error("received_refs(names, holder): a name of no object");
      incoming_.refs.push_back(*id);
    }
    if (!left.empty()) throw nb::value_error("received_refs(names, holder): names of 24 bytes each");
    if (!incoming_.Fetch(lender)) throw nb::python_error();
  }

 private:
  Incoming incoming_;
};

actors::ObjectStore& Store() {
  actors::ObjectStore* const store = Objects();
  if (store == nullptr) throw nb::python_error();
  return *store;
}

/// The process that holds what it pickled, as its receiver must know it.
nb::bytes Holder() {
  const ProcessId& self = Store().self();
  const std::uint64_t words[2] = {self.hi, self.lo};
  return nb::bytes(reinterpret_cast<const char*>(words), sizeof words);
}

nb::object Received(const nb::bytes& names, const nb::bytes& holder) {
  std::uint64_t words[2] = {0, 0};
  if (holder.size() != sizeof words) throw nb::value_error("received_refs(names, holder): a holder of 16 bytes");
  std::memcpy(words, holder.c_str(), sizeof words);
  const ProcessId lender(words[0], words[1]);
  if (lender.IsNil()) throw nb::value_error("received_refs(names, holder): a holder that is none");
  return nb::cast(new ReceivedRefs(names, lender), nb::rv_policy::take_ownership);
}

}  // namespace

nb::object TakenRefs::Take(nb::handle pickles) {
  PyObject* const result = CallTakingRefs(pickles.ptr(), &refs_);
  if (result == nullptr) throw nb::python_error();
  return nb::steal(result);
}

nb::bytes TakenRefs::Names() const {
  std::string names;
  for (const store::ObjectId& id : refs_.ids()) names += actors::NameBytes(id);
  return nb::bytes(names.data(), names.size());
}

void BindTakenRefs(nb::module_& m) {
  nb::class_<TakenRefs>(m, "TakenRefs", "The refs inside a pickle, held while this lives.")
      .def(nb::init<>())
      .def("take", &TakenRefs::Take, nb::arg("pickles"), "What `pickles()` returns; takes the refs that it pickles.")
      .def("names", &TakenRefs::Names)
      .def("__len__", [](const TakenRefs& self) { return self.handles().ids().size(); });
  nb::class_<ReceivedRefs>(m, "_ReceivedRefs", "Refs inside a pickle that came; it can be loaded while this lives.");
  m.def("refs_holder", &Holder, "This process, for received_refs().");
  m.def("received_refs", &Received, nb::arg("names"), nb::arg("holder"),
        "Registers with their owners what TakenRefs.names() of the process refs_holder() says.");
}

}  // namespace troupe::bindings
