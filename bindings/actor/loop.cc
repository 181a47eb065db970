#include "bindings/actor/loop.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "actors/core/session/flow_control.h"
#include "actors/net/fork_guard.h"
#include "actors/net/now.h"
#include "bindings/actor/coroutine.h"
#include "bindings/actor/item_sink.h"
#include "bindings/actor/loop_apart.h"
#include "bindings/actor/loop_calls.h"
#include "bindings/support/gil.h"
#include "bindings/support/nanobind.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

constexpr Duration kHold = actors::ActorFlow::kHold;

/// A callable that flushes; holds no reference to what it flushes. nullptr: an error is set.
PyObject* NewFlush(const std::shared_ptr<LoopCalls>& calls) {
  try {
    const auto flush = [held = std::weak_ptr<LoopCalls>(calls)] {
      if (const std::shared_ptr<LoopCalls> calls = held.lock()) calls->Flush();
    };
    return nb::cpp_function(flush).release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  }
}

/// The coroutine that gives what a streaming method returned; steals that. nullptr: an error is
/// set.
PyObject* NewGiver(PyObject* result, const std::shared_ptr<ItemSender>& items) {
  PyObject* module = PyImport_ImportModule("troupe._actors.streams");
  PyObject* sink = module != nullptr ? NewItemSink(items) : nullptr;
  PyObject* giver =
      sink != nullptr ? PyObject_CallMethod(module, "give", "OO", result, sink) : nullptr;
  Py_XDECREF(sink);
  Py_XDECREF(module);
  Py_DECREF(result);
  return giver;
}

}  // namespace

LoopCalls::LoopCalls(int limit, PyObject* loop, std::shared_ptr<ActorExit> exit)
    : group_({limit}),
      exit_(std::move(exit)),
      create_task_(PyObject_GetAttrString(loop, "create_task")),
      call_soon_(PyObject_GetAttrString(loop, "call_soon")),
      generation_(actors::ForkGuard::generation()),
      flusher_(std::make_unique<actors::ReplyFlusher>()) {
  PyObject* asyncio = PyImport_ImportModule("asyncio");
  if (asyncio != nullptr) cancelled_error_ = PyObject_GetAttrString(asyncio, "CancelledError");
  Py_XDECREF(asyncio);
}

LoopCalls::~LoopCalls() {
  Py_XDECREF(cancelled_error_);
  if (generation_ != actors::ForkGuard::generation()) {
    flusher_.release();  // the parent's: its thread is not here
    return;
  }
  const GilReleased released;  // joins a thread
  flusher_.reset();
}

void LoopCalls::Submit(DeferredCallPtr call) {
  std::optional<DeferredCallPtr> now = group_.Begin(0, std::move(call));
  if (now) Start(*std::move(now));
}

/// Runs a call's method, and those that wait in its group as long as they end at once.
void LoopCalls::Start(DeferredCallPtr call) {
  while (call != nullptr && !over_) {
    PyObject* result = nullptr;
    {
      const Running running(&call->running());
      call->running().coroutine = true;  // a plain method among them too: nobody else reads for it
      result = call->Run();
    }
    if (result != nullptr && call->items() != nullptr) result = NewGiver(result, call->items());
    if (result != nullptr && PyCoro_CheckExact(result)) {
      if (StartTask(call, result)) return;
      result = nullptr;
    }
    Conclude(*call, result, /*first_step=*/false);
    call = group_.End(0).value_or(nullptr);
  }
}

/// Steals `coroutine`. False: an error is set.
bool LoopCalls::StartTask(DeferredCallPtr& call, PyObject* coroutine) {
  PyObject* wrapped = NewCallCoroutine(coroutine, call, shared_from_this());
  if (wrapped == nullptr) return false;
  ++fresh_;
  PyObject* task = PyObject_CallOneArg(create_task_, wrapped);
  if (task == nullptr) {  // the answer is its error
    PyObject* thrown = PyObject_CallMethod(wrapped, "throw", "O", PyErr_Occurred());
    Py_XDECREF(thrown);
    PyErr_Clear();
  }
  if (task != nullptr) SetTask(wrapped, task);
  Py_XDECREF(task);
  Py_DECREF(wrapped);
  return true;
}

void LoopCalls::Ended(DeferredCallPtr call, PyObject* result, bool first_step) {
  Conclude(*call, result, first_step);
  Start(group_.End(0).value_or(nullptr));
}

void LoopCalls::Conclude(DeferredCall& call, PyObject* result, bool first_step) {
  const ActorExit::How how = result == nullptr ? ActorExit::HowRaised() : ActorExit::How::kStays;
  const bool leaves = how != ActorExit::How::kStays;
  if (leaves) exit_->KeepRaised();
  if (leaves) over_ = true;
  if (how == ActorExit::How::kCrashes) {
    PyErr_Clear();
    Flush();  // results for others
    return exit_->Stop();
  }
  if (result == nullptr && call.running().cancelled && PyErr_ExceptionMatches(cancelled_error_)) {
    PyErr_Clear();
    call.AnswerCancelled("while it ran", /*flush=*/false);
  }
  call.Conclude(result, /*flush=*/false);
  Hold(call.peer(), first_step);
  if (leaves) exit_->Stop();
}

void LoopCalls::Hold(actors::CallerConnection& peer, bool first_step) {
  if (over_) return peer.Flush();
  const bool flushed_later = in_turn_ || fresh_ > 0;  // the end of the turn, or a step that
                                                      // follows, flushes
  if (held_.get() != &peer) {
    Flush();
    if (first_step && !flushed_later) return peer.Flush();
    held_ = peer.shared_from_this();
    held_since_ = actors::Now();
    flusher_->Expose(held_);
  }
  if (flushed_later) {
    if (actors::Now() - held_since_ >= kHold) Flush();
  } else if (first_step || (!flush_due_ && !(flush_due_ = CallFlushSoon()))) {
    Flush();
  }
}

void LoopCalls::EndTurn() {
  in_turn_ = false;
  if (fresh_ == 0) Flush();
}

bool LoopCalls::Cancel(const actors::CallerConnection& peer, std::uint64_t sequence,
                       bool recursive) {
  const std::optional<DeferredCallPtr> waiting =
      group_.Withdraw([&](const DeferredCallPtr& call) { return call->Is(peer, sequence); });
  if (!waiting) return CancelTask(coroutines_, peer, sequence, recursive);
  (*waiting)->AnswerCancelled("before it began", /*flush=*/true);
  return true;
}

void LoopCalls::Waits(bool first_step) {
  if (first_step && fresh_ == 0) Flush();
}

void LoopCalls::Over() {
  over_ = true;
  Flush();
  LetTasksGo(coroutines_);
  Py_CLEAR(create_task_);
  Py_CLEAR(call_soon_);
  Py_CLEAR(flush_);
}

bool LoopCalls::CallFlushSoon() {
  if (flush_ == nullptr) flush_ = NewFlush(shared_from_this());
  PyObject* soon = flush_ != nullptr ? PyObject_CallOneArg(call_soon_, flush_) : nullptr;
  if (soon == nullptr) PyErr_Clear();
  Py_XDECREF(soon);
  return soon != nullptr;
}

void LoopCalls::Flush() {
  flush_due_ = false;
  if (held_ == nullptr) return;
  flusher_->Cover();
  std::exchange(held_, nullptr)->Flush();
}

LoopExecutor::LoopExecutor(PyExecutorOptions options, PyObject* loop)
    : PyExecutor(std::move(options)),
      calls_(std::make_shared<LoopCalls>(limits()[0], loop, exit())) {
  const std::vector<int> all = limits();
  for (std::size_t i = 1; i < all.size(); ++i)
    apart_.push_back(std::make_shared<LoopApart>(all[i], exit()));
}

LoopExecutor::~LoopExecutor() {
  calls_->Over();
  for (const auto& each : apart_) each->End();
}

void LoopExecutor::Submit(DeferredCallPtr call) {
  const std::size_t group = call->group();
  if (group == 0) return calls_->Submit(std::move(call));
  LoopApart& apart = *apart_[group - 1];
  apart.Submit(std::move(call));
}

void LoopExecutor::Cancel(const actors::CallerConnection& peer, std::uint64_t sequence,
                          bool recursive) {
  if (calls_->Cancel(peer, sequence, recursive)) return;
  for (const auto& each : apart_) {
    if (each->Cancel(peer, sequence, recursive)) return;
  }
}

bool LoopExecutor::RunsElsewhere() const {
  return std::any_of(apart_.begin(), apart_.end(), [](const auto& each) { return each->runs(); });
}

void LoopExecutor::BeginTurn() { calls_->BeginTurn(); }

void LoopExecutor::EndTurn() { calls_->EndTurn(); }

}  // namespace troupe::bindings
