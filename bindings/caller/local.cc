// Refs that no call makes: a value that is here already (put), or one that this process provides
// later (a placement group that becomes ready).
#include "bindings/caller/local.h"

#include <optional>
#include <string>
#include <utility>

#include "actors/caller/reactor.h"
#include "actors/core/call/call_frame.h"
#include "bindings/support/nanobind.h"
#include "bindings/values/errors.h"
#include "bindings/values/object_values.h"
#include "bindings/values/pickle.h"
#include "bindings/values/ref.h"
#include "bindings/values/values.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

using actors::Answer;
using actors::ByteBuffer;
using actors::CallReactor;

/// The bytes and flags of a slot's value. The slot stands for one that is in shared memory or holds
/// refs.
std::uint16_t Encode(Answer* slot, ByteBuffer& bytes, nb::handle value) {
  Outgoing outgoing(Outgoing::Way::kWriting, actors::kLargeBytes, /*with_refs=*/true);
  if (!EncodeValue(bytes, value.ptr(), &outgoing)) throw nb::python_error();
  if (!outgoing.writing && outgoing.held.empty()) return actors::kFlagReply;
  const std::optional<store::Writing> writing = std::exchange(outgoing.writing, {});
  const store::ObjectId id = actors::ObjectStore::Current()->Provide(
      slot, writing ? &*writing : nullptr, bytes.view(), outgoing.held.ids());
  if (!writing) return actors::kFlagReply;
  const std::string name = actors::NameBytes(id);
  bytes.Clear();
  bytes.Append(name.data(), name.size());
  return actors::kFlagReply | actors::kFlagObjects;
}

/// Answers one local Ref, once. Dropped without an answer, it answers with an error: nobody who
/// waits for the Ref hangs.
class Resolver {
 public:
  explicit Resolver(Answer* slot) : slot_(slot) { slot_->AddReference(); }
  Resolver(Resolver&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  ~Resolver() {
    if (slot_ == nullptr) return;
    SetError(static_cast<int>(ErrorCode::kInternal),
             "whoever was to provide this value is gone without doing so");
    slot_->Release();
  }

  bool SetValue(nb::handle value) {
    if (slot_->done()) return false;
    ByteBuffer bytes;
    const std::uint16_t flags = Encode(slot_, bytes, value);
    return Complete(flags, bytes);
  }
  bool SetError(int code, const std::string& text) {
    ByteBuffer bytes;
    actors::AppendRuntimeError(bytes, static_cast<ErrorCode>(code), text);
    return Complete(actors::kFlagReply | actors::kFlagRuntimeError, bytes);
  }
  bool SetException(nb::handle exception) {
    if (!PyExceptionInstance_Check(exception.ptr())) {
      throw nb::type_error("set_exception(exception): an exception instance");
    }
    ByteBuffer bytes;
    AppendException(bytes, exception.ptr(), actors::CallLimits().frame_bytes_max);
    return Complete(actors::kFlagReply | actors::kFlagTaskError, bytes);
  }

 private:
  bool Complete(std::uint16_t flags, const ByteBuffer& bytes) {
    return CallReactor::Current().Complete(slot_, flags, bytes.view());
  }
  Answer* slot_;
};

nb::object NewLocalRef(Answer* slot) {
  PyObject* ref = NewRef(slot, nullptr, nullptr);
  if (ref == nullptr) throw nb::python_error();
  return nb::steal(ref);
}

nb::object CompletedRef(nb::handle value) {
  actors::AnswerRef slot(Answer::New(CallReactor::Current().NextLocalId()));
  ByteBuffer bytes;
  const std::uint16_t flags = Encode(slot.get(), bytes, value);
  slot.get()->Claim();
  slot.get()->Fill(flags, bytes.view());
  slot.get()->Finish();
  return NewLocalRef(slot.Take());
}

nb::tuple PendingRef() {
  Answer* slot = Answer::New(CallReactor::Current().NextLocalId());
  Resolver resolver(slot);
  return nb::make_tuple(NewLocalRef(slot), std::move(resolver));
}

}  // namespace

void BindCallLocal(nb::module_& m) {
  nb::class_<Resolver>(m, "Resolver",
                       "Provides the value of a pending_ref(), once, from any thread.")
      .def("set_value", &Resolver::SetValue, nb::arg("value").none(),
           "False if the Ref had its answer before.")
      .def("set_error", &Resolver::SetError, nb::arg("code"), nb::arg("text"))
      .def("set_exception", &Resolver::SetException, nb::arg("exception"));
  m.def("completed_ref", &CompletedRef, nb::arg("value").none(),
        "A Ref that is done; the value is copied as a call would copy it.");
  m.def("pending_ref", &PendingRef, "(ref, resolver)");
}

}  // namespace troupe::bindings
