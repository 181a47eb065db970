#include "bindings/values/taken_refs.h"

#include <cstring>
#include <string>
#include <string_view>

#include "actors/caller/reactor.h"
#include "actors/core/call/call_frame.h"
#include "bindings/values/object_arguments.h"
#include "bindings/values/object_values.h"
#include "bindings/values/pickle.h"
#include "bindings/values/ref.h"
#include "bindings/values/values.h"

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
    if (!left.empty())
      throw nb::value_error("received_refs(names, holder): names of 24 bytes each");
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
  if (holder.size() != sizeof words)
    throw nb::value_error("received_refs(names, holder): a holder of 16 bytes");
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

nb::object TakenRefs::AsRef() const {
  const nb::bytes none("", 0);
  actors::ByteBuffer bytes;
  if (!EncodeWithRefs(bytes, none.ptr(), refs_)) throw nb::python_error();
  actors::AnswerRef slot(actors::Answer::New(actors::CallReactor::Current().NextLocalId()));
  static_cast<void>(Store().Provide(slot.get(), nullptr, bytes.view(), refs_.ids()));
  slot.get()->Claim();
  slot.get()->Fill(actors::kFlagReply, bytes.view());
  slot.get()->Finish();
  PyObject* const ref = NewRef(slot.Take(), nullptr, nullptr);
  if (ref == nullptr) throw nb::python_error();
  return nb::steal(ref);
}

namespace {

bool LiesInMemory(nb::handle ref) {
  if (!IsRef(ref.ptr())) throw nb::type_error("lies_in_memory(ref): a Ref");
  const actors::Answer* const slot = AsRef(ref.ptr())->slot;
  return slot->done() && (slot->flags() & actors::kFlagObjects) != 0;
}

}  // namespace

void BindTakenRefs(nb::module_& m) {
  nb::class_<TakenRefs>(m, "TakenRefs", "The refs inside a pickle, held while this lives.")
      .def(nb::init<>())
      .def("take", &TakenRefs::Take, nb::arg("pickles"),
           "What `pickles()` returns; takes the refs that it pickles.")
      .def("names", &TakenRefs::Names)
      .def("as_ref", &TakenRefs::AsRef,
           "An argument for a call that is to bring them; its value is b''.")
      .def("__len__", [](const TakenRefs& self) { return self.handles().ids().size(); });
  nb::class_<ReceivedRefs>(m, "_ReceivedRefs",
                           "Refs inside a pickle that came; it can be loaded while this lives.");
  m.def(
      "pickling",
      [](nb::handle pickles) {
        PyObject* const result = CallPickling(pickles.ptr());
        if (result == nullptr) throw nb::python_error();
        return nb::steal(result);
      },
      nb::arg("pickles"),
      "What `pickles()` returns. TypeError where that meets a ref, but within TakenRefs.take().");
  m.def("lies_in_memory", &LiesInMemory, nb::arg("ref"),
        "Whether it has a value, which lies in shared memory of this host.");
  m.def("refs_holder", &Holder, "This process, for received_refs().");
  m.def("received_refs", &Received, nb::arg("names"), nb::arg("holder"),
        "Registers with their owners what TakenRefs.names() of the process refs_holder() says.");
}

}  // namespace troupe::bindings
