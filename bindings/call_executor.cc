#include "bindings/call_executor.h"

#include <absl/strings/str_format.h>

#include <string>
#include <utility>
#include <vector>

#include "actors/call_target.h"
#include "bindings/call_answer.h"
#include "bindings/call_deferred.h"
#include "bindings/call_errors.h"
#include "bindings/call_pickle.h"
#include "bindings/call_values.h"

namespace troupe::bindings {
namespace {

using actors::ByteBuffer;
using actors::Frame;
using actors::Ran;

PyObject* NewName(std::string_view text) {
  PyObject* name = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr);
  if (name != nullptr) PyUnicode_InternInPlace(&name);
  return name;
}

/// What a call shape means on this side.
struct Shape {
  PyObject* name = nullptr;      // str
  PyObject* method = nullptr;    // nullptr: looked up again at each call, and raises
  PyObject* keywords = nullptr;  // tuple or nullptr
  Py_ssize_t keyword_count = 0;
  AnswerForm form;

  void Clear() {
    Py_CLEAR(name);
    Py_CLEAR(method);
    Py_CLEAR(keywords);
    keyword_count = 0;
    form = {};
  }
};

/// Arguments on the stack, more of them on the heap; one place before the first for vectorcall.
class Arguments {
 public:
  explicit Arguments(std::size_t count) {
    if (count + 1 > kInline) {
      heap_.resize(count + 1);
      items_ = heap_.data();
    }
    items_[0] = nullptr;
  }
  ~Arguments() {
    for (std::size_t i = 1; i <= size_; ++i) Py_DECREF(items_[i]);
  }
  void Add(PyObject* value) { items_[++size_] = value; }
  PyObject** first() { return items_ + 1; }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kInline = 17;
  PyObject* inline_[kInline];
  std::vector<PyObject*> heap_;
  PyObject** items_ = inline_;
  std::size_t size_ = 0;
};

class PySession : public actors::CallSession {
 public:
  explicit PySession(PyExecutor& executor) : executor_(executor) {}
  ~PySession() override {
    for (Shape& shape : shapes_) shape.Clear();
    once_.Clear();
  }

  StatusOr<Ran> Run(const Frame& frame, actors::Peer& peer, ByteBuffer& reply,
                    std::uint16_t* flags) override;

 private:
  StatusOr<Shape*> ShapeOf(const Frame& frame);
  /// Runs the method. A new reference; nullptr with an error set, or with `*deferred`.
  PyObject* Invoke(Shape& shape, Arguments& arguments, actors::Peer& peer, std::uint64_t sequence,
                   bool* deferred);

  PyExecutor& executor_;
  std::vector<Shape> shapes_;
  Shape once_;  // of a call beyond the shapes the protocol allows
  actors::CallPrefix prefix_;
};

/// What the call is of, and how it is to be answered; what cannot be read names no method either.
bool Aim(Shape& shape, std::string_view name) {
  const actors::CallTarget target = actors::ParseCallTarget(name).value_or(actors::CallTarget{name});
  shape.form = {target.returns, target.streams, target.ahead};
  shape.name = NewName(target.method);
  return shape.name != nullptr;
}

StatusOr<Shape*> PySession::ShapeOf(const Frame& frame) {
  TROUPE_TRY(actors::ParseCall(frame, executor_.limits(), &prefix_));
  const std::uint16_t id = prefix_.head.shape;
  if ((frame.head.flags & actors::kFlagNamed) == 0) {
    if (id >= shapes_.size() || shapes_[id].name == nullptr) {
      return MakeError(ErrorCode::kInvalid, absl::StrFormat("call shape %u before its names", id));
    }
    if (shapes_[id].keyword_count != prefix_.head.keyword_count) {
      return MakeError(ErrorCode::kInvalid, "a call whose keywords are not its shape's");
    }
    return &shapes_[id];
  }
  if (id != actors::kNoShape && id >= shapes_.size()) shapes_.resize(id + 1u);
  Shape& shape = id == actors::kNoShape ? once_ : shapes_[id];
  shape.Clear();
  bool good = Aim(shape, prefix_.method);
  const Py_ssize_t count = static_cast<Py_ssize_t>(prefix_.keywords.size());
  if (good && count != 0) good = (shape.keywords = PyTuple_New(count)) != nullptr;
  for (Py_ssize_t i = 0; good && i < count; ++i) {
    PyObject* name = NewName(prefix_.keywords[static_cast<std::size_t>(i)]);
    good = name != nullptr;
    if (good) PyTuple_SET_ITEM(shape.keywords, i, name);
  }
  if (!good) {
    PyErr_Clear();
    shape.Clear();
    return MakeError(ErrorCode::kInvalid, "a name that is not UTF-8");
  }
  shape.keyword_count = count;
  shape.method = executor_.Find(shape.name);
  if (shape.method == nullptr) PyErr_Clear();
  return &shape;
}

StatusOr<Ran> PySession::Run(const Frame& frame, actors::Peer& peer, ByteBuffer& reply,
                             std::uint16_t* flags) {
  TROUPE_ASSIGN(Shape * found, ShapeOf(frame));
  Shape& shape = *found;
  Arguments arguments(prefix_.head.arg_count);
  std::string_view values = prefix_.values;
  bool good = true;
  for (int i = 0; good && i < prefix_.head.arg_count; ++i) {
    PyObject* value = nullptr;
    const Decoded decoded = DecodeValue(&values, &value);
    if (decoded == Decoded::kMalformed) {
      return MakeError(ErrorCode::kInvalid, absl::StrFormat("argument %d that is no value", i + 1));
    }
    good = decoded == Decoded::kOk;  // else unpickling raised: the call's error
    if (good) arguments.Add(value);
  }
  if (values.size() >= 8 && good) return MakeError(ErrorCode::kInvalid, "bytes after a call");
  bool deferred = false;
  PyObject* result =
      good ? Invoke(shape, arguments, peer, frame.head.sequence, &deferred) : nullptr;
  if (deferred) return Ran::kDeferred;
  const bool leaves = result == nullptr && (PyErr_ExceptionMatches(PyExc_SystemExit) ||
                                            PyErr_ExceptionMatches(PyExc_KeyboardInterrupt));
  if (leaves) {
    executor_.KeepExit(AppendRaised(reply, executor_.limits().frame_bytes_max));
    *flags |= actors::kFlagTaskError;
    return Ran::kStop;
  }
  const AnswerTo to{peer, frame.head.sequence, shape.name, shape.form, executor_.limits()};
  WriteAnswer(to, result, reply, flags);
  return Ran::kReplied;
}

PyObject* PySession::Invoke(Shape& shape, Arguments& arguments, actors::Peer& peer,
                            std::uint64_t sequence, bool* deferred) {
  if (shape.method == nullptr) {
    // Looked up again: an attribute may have appeared since; if not, this raises the
    // AttributeError.
    shape.method = executor_.Find(shape.name);
    if (shape.method == nullptr) return nullptr;
  }
  const Py_ssize_t positional = static_cast<Py_ssize_t>(arguments.size()) - shape.keyword_count;
  PyObject* method = Py_NewRef(shape.method);  // a nested call may redefine the shape
  PyObject* result = nullptr;
  if (executor_.concurrency() > 1 && !IsCoroutineFunction(method)) {
    *deferred = executor_.SubmitToPool(method, arguments.first(), positional, shape.keywords, peer,
                                       sequence);
  } else {
    result = PyObject_Vectorcall(
        method, arguments.first(),
        static_cast<std::size_t>(positional) | PY_VECTORCALL_ARGUMENTS_OFFSET, shape.keywords);
    if (result != nullptr && PyCoro_CheckExact(result)) {
      *deferred = executor_.SubmitCoroutine(result, peer, sequence);
      Py_CLEAR(result);
    }
  }
  Py_DECREF(method);
  return result;
}

}  // namespace

PyExecutor::PyExecutor(PyObject* find, int concurrency, const actors::CallLimits& limits)
    : find_(Py_NewRef(find)), concurrency_(concurrency), limits_(limits) {}

PyExecutor::~PyExecutor() {
  if (pool_ != nullptr) {
    Py_XDECREF(PyObject_CallMethod(pool_, "shutdown", "O", Py_False));
    PyErr_Clear();
  }
  if (loop_ != nullptr) {
    PyObject* stop = PyObject_GetAttrString(loop_, "stop");
    if (stop != nullptr) {
      Py_XDECREF(PyObject_CallMethod(loop_, "call_soon_threadsafe", "O", stop));
      Py_DECREF(stop);
    }
    PyErr_Clear();
  }
  Py_XDECREF(pool_);
  Py_XDECREF(loop_thread_);
  Py_XDECREF(loop_);
  Py_XDECREF(exit_);
  Py_DECREF(find_);
}

std::unique_ptr<actors::CallSession> PyExecutor::Open() {
  return std::make_unique<PySession>(*this);
}

void PyExecutor::KeepExit(PyObject* exception) { Py_XSETREF(exit_, exception); }

PyObject* PyExecutor::TakeExit() { return std::exchange(exit_, nullptr); }

}  // namespace troupe::bindings
