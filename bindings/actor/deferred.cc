#include "bindings/actor/deferred.h"

#include <utility>

namespace troupe::bindings {

DeferredCall::DeferredCall(PyObject* method, PyObject* const* args, std::size_t count,
                           PyObject* keywords, actors::CallerConnection& peer,
                           std::uint64_t sequence, std::uint16_t mark, PyObject* name,
                           const AnswerForm& form, std::size_t group,
                           std::shared_ptr<ItemSender> items)
    : method_(Py_NewRef(method)),
      keywords_(Py_XNewRef(keywords)),
      peer_(peer.shared_from_this()),
      running_{.sequence = sequence, .number = NextCallNumber()},
      name_(Py_NewRef(name)),
      recorded_(mark, sequence, name),
      form_(form),
      group_(group),
      items_(std::move(items)) {
  args_.reserve(count + 1);
  args_.push_back(nullptr);
  for (std::size_t i = 0; i < count; ++i) args_.push_back(Py_NewRef(args[i]));
  peer_->Defer();
}

DeferredCall::~DeferredCall() {
  for (PyObject* value : args_) Py_XDECREF(value);
  Py_XDECREF(keywords_);
  Py_DECREF(name_);
  Py_DECREF(method_);
}

PyObject* DeferredCall::Run() {
  recorded_.Begin();
  const std::size_t named =
      keywords_ != nullptr ? static_cast<std::size_t>(PyTuple_GET_SIZE(keywords_)) : 0;
  return PyObject_Vectorcall(method_, args_.data() + 1,
                             (args_.size() - 1 - named) | PY_VECTORCALL_ARGUMENTS_OFFSET,
                             keywords_);
}

void DeferredCall::AnswerCancelled(const char* when, bool flush) {
  if (std::exchange(answered_, true)) return;
  recorded_.End();
  actors::ByteBuffer reply;
  reply.Extend(actors::kFrameHeadBytes);
  WriteCancelled(reply, name_, when);
  peer_->ReplyDeferred(running_.sequence, actors::kFlagReply | actors::kFlagRuntimeError, reply,
                       flush);
}

void DeferredCall::Conclude(PyObject* result, bool flush) {
  if (std::exchange(answered_, true)) {
    Py_XDECREF(result);
    return;
  }
  recorded_.End();
  char space[512];
  actors::ByteBuffer reply(space, sizeof space);
  reply.Extend(actors::kFrameHeadBytes);
  std::uint16_t flags = actors::kFlagReply;
  const actors::CallLimits limits;
  WriteAnswer({*peer_, running_.sequence, name_, form_, limits}, result, reply, &flags);
  peer_->ReplyDeferred(running_.sequence, flags, reply, flush);
}

}  // namespace troupe::bindings
