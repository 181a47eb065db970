#include "bindings/actor/executor.h"

#include <absl/strings/str_format.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/core/call/call_target.h"
#include "actors/net/now.h"
#include "bindings/actor/answer.h"
#include "bindings/actor/item_sender.h"
#include "bindings/actor/recorded_run.h"
#include "bindings/values/errors.h"
#include "bindings/values/object_arguments.h"
#include "bindings/values/pickle.h"
#include "bindings/values/values.h"

namespace troupe::bindings {
namespace {

using actors::ByteBuffer;
using actors::Frame;
using actors::Ran;

constexpr unsigned kItemsPerLook = 32;
constexpr std::size_t kCancelledMax = 4096;  // most cancelled calls noted; others run
constexpr std::chrono::milliseconds kHearAgain{1};

PyObject* NewName(std::string_view text) {
  PyObject* name = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr);
  if (name != nullptr) PyUnicode_InternInPlace(&name);
  return name;
}

/// A call shape as this side understands it.
struct Shape {
  PyObject* name = nullptr;      // str
  PyObject* method = nullptr;    // nullptr: looked up again at each call, and raises
  PyObject* keywords = nullptr;  // tuple or nullptr
  Py_ssize_t keyword_count = 0;
  AnswerForm form;
  std::string asked_group;  // empty: the method's own
  bool keeps_tensors = false;
  std::size_t group = 0;

  /// Without its references, which are the other's now.
  void GiveUp(std::vector<PyObject*>* kept) {
    for (PyObject** object : {&name, &method, &keywords}) {
      if (*object != nullptr) kept->push_back(std::exchange(*object, nullptr));
    }
  }
  void Clear() {
    Py_CLEAR(name);
    Py_CLEAR(method);
    Py_CLEAR(keywords);
    keyword_count = 0;
    form = {};
    asked_group.clear();
    keeps_tensors = false;
  }
};

int DropAll(void* objects) {
  const std::unique_ptr<std::vector<PyObject*>> all(static_cast<std::vector<PyObject*>*>(objects));
  for (PyObject* object : *all) Py_DECREF(object);
  return 0;
}

/// A connection may end on a thread of the runtime, which must not wait for the interpreter there.
void DropOnAnyThread(std::vector<PyObject*> objects) {
  if (objects.empty()) return;
  auto all = std::make_unique<std::vector<PyObject*>>(std::move(objects));
  if (PyGILState_Check() == 1) {
    DropAll(all.release());
  } else if (Py_AddPendingCall(&DropAll, all.get()) == 0) {
    static_cast<void>(all.release());
  }  // else the interpreter has too much to do: they stay
}

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

class PySession : public actors::CallRunner {
 public:
  explicit PySession(PyExecutor& executor) : executor_(executor) {}
  ~PySession() override {
    std::vector<PyObject*> kept;
    for (Shape& shape : shapes_) shape.GiveUp(&kept);
    once_.GiveUp(&kept);
    DropOnAnyThread(std::move(kept));
    for (const auto& [sequence, weak] : streams_) {
      if (const std::shared_ptr<ItemSender> items = weak.lock()) items->Stop();
    }
  }

  StatusOr<Ran> Run(const Frame& frame, actors::CallerConnection& peer, ByteBuffer& reply,
                    std::uint16_t* flags) override;
  bool Prepare(const Frame& frame, actors::CallerConnection& peer) override;
  void Taken(std::uint64_t sequence, std::uint64_t items) override;
  void Cancel(std::uint64_t sequence, bool recursive) override;

 private:
  StatusOr<Shape*> ShapeOf(const Frame& frame);
  /// Looks the method up, unless it is known. False: an error is set.
  bool Resolve(Shape& shape);
  void Defer(const Shape& shape, Arguments& arguments, actors::CallerConnection& peer,
             std::uint64_t sequence);
  /// Runs the method here. A new reference, or nullptr with an error set.
  PyObject* Invoke(const Shape& shape, Arguments& arguments);
  /// Runs one that streams: sends its items. `cut_off`: not all of them, since the caller
  /// wanted no more.
  PyObject* Stream(const Shape& shape, Arguments& arguments, actors::CallerConnection& peer,
                   std::uint64_t sequence, bool* cut_off);
  void HearOfThoseBehind(const Frame& frame);
  std::shared_ptr<ItemSender> NewItems(const Shape& shape, actors::CallerConnection& peer,
                                       std::uint64_t sequence);

  PyExecutor& executor_;
  std::vector<Shape> shapes_;
  Shape once_;  // shape of a call beyond those the protocol allows
  actors::CallPrefix prefix_;
  // Arguments of the call after the last, from another host
  std::shared_ptr<actors::RemoteArguments> coming_;
  std::map<std::uint64_t, std::weak_ptr<ItemSender>> streams_;  // by sequence
  actors::CallerConnection* peer_ = nullptr;  // peer of the last call
  RunningCall running_;                // here; its sequence is the last call's, wherever that runs
  std::set<std::uint64_t> cancelled_;  // calls that have not been come to
  Instant heard_{};                    // when it was last looked what is said of calls that wait
};

/// Reads the call's method and the form of its answer; an unreadable name is no method either.
bool Aim(Shape& shape, std::string_view name) {
  const actors::CallTarget target =
      actors::ParseCallTarget(name).value_or(actors::CallTarget{name});
  shape.form = {target.returns, target.streams, target.ahead};
  shape.asked_group = target.group;
  shape.keeps_tensors = target.keeps_tensors;
  shape.name = NewName(target.method);
  return shape.name != nullptr;
}

StatusOr<Shape*> PySession::ShapeOf(const Frame& frame) {
  TROUPE_TRY(actors::ParseCall(frame, executor_.call_limits(), &prefix_));
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
  if (!Resolve(shape)) PyErr_Clear();  // each call says so
  return &shape;
}

StatusOr<Ran> PySession::Run(const Frame& frame, actors::CallerConnection& peer, ByteBuffer& reply,
                             std::uint16_t* flags) {
  executor_.LetBegin();
  TROUPE_ASSIGN(Shape * found, ShapeOf(frame));
  Shape& shape = *found;
  peer_ = &peer;
  running_ = {frame.head.sequence, false, false, &peer, shape.name, NextCallNumber()};
  std::shared_ptr<actors::RemoteArguments> coming = std::exchange(coming_, nullptr);
  if (!cancelled_.empty() && cancelled_.erase(frame.head.sequence) != 0) {
    WriteCancelled(reply, shape.name, "before it began");
    *flags |= actors::kFlagRuntimeError;
    return Ran::kReplied;
  }
  Arguments arguments(prefix_.head.arg_count);
  std::string_view values = prefix_.values;
  std::optional<Incoming> incoming;
  bool good = true;
  if ((frame.head.flags & actors::kFlagObjects) != 0) {
    incoming.emplace();
    if (!ObjectsNamed(values, prefix_.head.arg_count, &incoming->values, &incoming->refs)) {
      return MakeError(ErrorCode::kInvalid, "arguments that name objects, and do not");
    }
    const bool away = peer.away() && !peer.process.IsNil();
    good = away ? incoming->FetchRemote(std::move(coming)) : incoming->Fetch(peer.process);
  }
  for (int i = 0; good && i < prefix_.head.arg_count; ++i) {
    PyObject* value = nullptr;
    const bool away = incoming && incoming->TakeRemote(&values, &value);
    const Decoded decoded = !away              ? DecodeValue(&values, &value)
                            : value != nullptr ? Decoded::kOk
                                               : Decoded::kRaised;
    if (decoded == Decoded::kMalformed) {
      return MakeError(ErrorCode::kInvalid, absl::StrFormat("argument %d that is no value", i + 1));
    }
    good = decoded == Decoded::kOk;  // else unpickling raised: the call's error
    if (good) arguments.Add(value);
  }
  if (values.size() >= 8 && good) return MakeError(ErrorCode::kInvalid, "bytes after a call");
  PyObject* result = nullptr;
  bool cut_off = false;
  if (good && Resolve(shape)) {
    if (executor_.defers()) {
      Defer(shape, arguments, peer, frame.head.sequence);
      return Ran::kDeferred;
    }
    const RecordedRun recorded(prefix_.head.mark, frame.head.sequence, shape.name);
    const Running running(&running_);
    result = shape.form.streams ? Stream(shape, arguments, peer, frame.head.sequence, &cut_off)
                                : Invoke(shape, arguments);
  }
  using How = ActorExit::How;
  const How how = result == nullptr ? ActorExit::HowRaised() : How::kStays;
  if (how == How::kCrashes) {
    executor_.exit()->KeepRaised();
    PyErr_Clear();
    return Ran::kGone;
  }
  // An interrupt is how a task is cancelled: its process goes on.
  if (how == How::kAnswers || (result == nullptr && !running_.cancelled &&
                               PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))) {
    executor_.exit()->Keep(AppendRaised(reply, executor_.call_limits().frame_bytes_max));
    *flags |= actors::kFlagTaskError;
    return Ran::kStop;
  }
  if (result != nullptr && cut_off) {
    Py_DECREF(result);
    WriteCancelled(reply, shape.name, "while it ran");
    *flags |= actors::kFlagRuntimeError;
  } else {
    const AnswerTo to{peer, frame.head.sequence, shape.name, shape.form, executor_.call_limits()};
    WriteAnswer(to, result, reply, flags);
  }
  HearOfThoseBehind(frame);
  return Ran::kReplied;
}

/// Reads messages about waiting calls before the next begins, where one took a while: a call that
/// came in the same read would run though it was cancelled long ago.
void PySession::HearOfThoseBehind(const Frame& frame) {
  if (peer_->in().size() <= frame.bytes) return;
  const Instant now = actors::Now();
  if (now - heard_ < kHearAgain) return;
  heard_ = now;
  peer_->LookAhead(executor_.call_limits(), nullptr);
}

/// Starts fetching remote arguments. Malformed frames are accepted here; Run reports them.
bool PySession::Prepare(const Frame& frame, actors::CallerConnection& peer) {
  if (coming_ == nullptr) {
    actors::CallPrefix prefix;
    std::vector<store::ObjectId> values;
    std::vector<store::ObjectId> refs;
    if (!actors::ParseCall(frame, executor_.call_limits(), &prefix).ok() ||
        !ObjectsNamed(prefix.values, prefix.head.arg_count, &values, &refs) ||
        (values.empty() && refs.empty())) {
      return true;
    }
    const std::shared_ptr<actors::BulkSession> bulk_session = peer.Bulk();
    if (bulk_session == nullptr) return true;
    coming_ =
        actors::RemoteArguments::Begin(*bulk_session, values, refs, [weak = peer.weak_from_this()] {
          if (const std::shared_ptr<actors::CallerConnection> waiting = weak.lock())
            waiting->Unpark();
        });
  }
  return coming_->ready();
}

bool PySession::Resolve(Shape& shape) {
  // An attribute may have appeared since the last call; if not, this raises the AttributeError.
  if (shape.method != nullptr) return true;
  PyObject* method =
      executor_.Find(shape.name, shape.keeps_tensors ? &shape.form : nullptr, &shape.group);
  if (method == nullptr) return false;
  if (!shape.asked_group.empty() && !executor_.FindGroup(shape.asked_group, &shape.group)) {
    Py_DECREF(method);
    return false;
  }
  shape.method = method;
  return true;
}

void PySession::Defer(const Shape& shape, Arguments& arguments, actors::CallerConnection& peer,
                      std::uint64_t sequence) {
  executor_.Submit(std::make_unique<DeferredCall>(
      shape.method, arguments.first(), arguments.size(), shape.keywords, peer, sequence,
      prefix_.head.mark, shape.name, shape.form, shape.group, NewItems(shape, peer, sequence)));
}

std::shared_ptr<ItemSender> PySession::NewItems(const Shape& shape, actors::CallerConnection& peer,
                                                std::uint64_t sequence) {
  if (!shape.form.streams) return nullptr;
  std::erase_if(streams_, [](const auto& each) { return each.second.expired(); });
  auto items = std::make_shared<ItemSender>(peer, sequence, shape.name, shape.form.ahead);
  streams_[sequence] = items;
  return items;
}

void PySession::Taken(std::uint64_t sequence, std::uint64_t items) {
  const auto found = streams_.find(sequence);
  if (found == streams_.end()) return;
  if (const std::shared_ptr<ItemSender> sender = found->second.lock()) sender->Taken(items);
}

void PySession::Cancel(std::uint64_t sequence, bool recursive) {
  if (sequence > running_.sequence) {
    if (cancelled_.size() < kCancelledMax) cancelled_.insert(sequence);
    return;
  }
  const auto found = streams_.find(sequence);
  if (found != streams_.end()) {
    if (const std::shared_ptr<ItemSender> sender = found->second.lock()) sender->Stop();
  }
  if (executor_.defers()) {
    executor_.Cancel(*peer_, sequence, recursive);
  } else if (sequence == running_.sequence) {
    running_.cancelled = running_.told = true;
    // else it is over
    if (recursive && Running::current() == &running_) CancelStartedBy(running_.number);
  }
}

PyObject* PySession::Stream(const Shape& shape, Arguments& arguments,
                            actors::CallerConnection& peer, std::uint64_t sequence,
                            bool* cut_off) {
  const std::shared_ptr<ItemSender> items = NewItems(shape, peer, sequence);
  PyObject* result = Invoke(shape, arguments);
  if (result == nullptr) return nullptr;
  unsigned sent = 0;
  result = SendItems(result, *items, [&] {
    // This thread alone reads what the caller says.
    if (items->may_send() && ++sent % kItemsPerLook != 0) return true;
    do {
      const actors::CallerConnection::Looked looked =
          peer.LookAhead(executor_.call_limits(), items->may_send() ? nullptr : &executor_);
      if (looked == actors::CallerConnection::Looked::kInterrupted) return false;
      if (looked == actors::CallerConnection::Looked::kEnded) items->Stop();
    } while (!items->may_send() && !items->stopped());
    return true;
  });
  *cut_off = items->cut_off();
  return result;
}

PyObject* PySession::Invoke(const Shape& shape, Arguments& arguments) {
  const std::size_t positional = arguments.size() - static_cast<std::size_t>(shape.keyword_count);
  PyObject* method = Py_NewRef(shape.method);  // a nested call may redefine the shape
  PyObject* result = PyObject_Vectorcall(
      method, arguments.first(), positional | PY_VECTORCALL_ARGUMENTS_OFFSET, shape.keywords);
  Py_DECREF(method);
  return result;
}

}  // namespace

PyExecutor::PyExecutor(PyExecutorOptions options)
    : options_(std::move(options)), exit_(std::make_shared<ActorExit>(options_.stop)) {
  Py_INCREF(options_.find);
}

PyExecutor::~PyExecutor() {
  exit_->Over();
  Py_DECREF(options_.find);
}

std::unique_ptr<actors::CallRunner> PyExecutor::Open() {
  return std::make_unique<PySession>(*this);
}

PyObject* PyExecutor::Find(PyObject* name, const AnswerForm* keeping, std::size_t* group) const {
  PyObject* found =
      keeping == nullptr
          ? PyObject_CallOneArg(options_.find, name)
          : PyObject_CallFunction(options_.find, "OI", name,
                                  keeping->streams ? 1u : static_cast<unsigned>(keeping->returns));
  *group = 0;
  if (found == nullptr || !PyTuple_CheckExact(found) || PyTuple_GET_SIZE(found) != 2) return found;
  PyObject* method = Py_NewRef(PyTuple_GET_ITEM(found, 0));
  PyObject* named = PyTuple_GET_ITEM(found, 1);
  const char* text = named == Py_None ? "" : PyUnicode_AsUTF8(named);
  if (text == nullptr || !FindGroup(text, group)) Py_CLEAR(method);
  Py_DECREF(found);
  return method;
}

bool PyExecutor::FindGroup(std::string_view name, std::size_t* group) const {
  std::string known;
  for (std::size_t i = 0; i < options_.groups.size(); ++i) {
    const std::string& each = options_.groups[i].first;
    *group = i;
    if (each == name) return true;
    if (!each.empty()) known += (known.empty() ? "" : ", ") + each;
  }
  PyErr_Format(PyExc_ValueError, "this actor has no concurrency group '%s'; there are: %s",
               std::string(name).c_str(), known.empty() ? "none" : known.c_str());
  return false;
}

std::vector<int> PyExecutor::limits() const {
  std::vector<int> limits;
  for (const auto& [name, limit] : options_.groups) limits.push_back(limit);
  return limits;
}

}  // namespace troupe::bindings
