#include "bindings/actor/loop_apart.h"

#include <algorithm>
#include <utility>

#include "bindings/support/nanobind.h"

namespace nb = nanobind;

namespace troupe::bindings {

LoopApart::~LoopApart() { Py_XDECREF(loop_); }

bool LoopApart::Begin() {
  if (loop_ != nullptr) return true;
  PyObject* module = PyImport_ImportModule("troupe._process.event_loop");
  PyObject* loop = module != nullptr ? PyObject_CallMethod(module, "apart", nullptr) : nullptr;
  Py_XDECREF(module);
  if (loop == nullptr) return false;
  loop_ = loop;
  calls_ = std::make_shared<LoopCalls>(limit_, loop_, exit_);
  return true;
}

bool LoopApart::Later(std::function<void()> action) {
  try {
    const nb::object callable = nb::cpp_function(std::move(action));
    nb::handle(loop_).attr("call_soon_threadsafe")(callable);
    return true;
  } catch (nb::python_error& error) {
    error.restore();
    return false;
  }
}

void LoopApart::Submit(DeferredCallPtr call) {
  if (!Begin()) return call->Conclude(nullptr, /*flush=*/true);
  coming_.push_back(std::move(call));
  // before it is asked for: the other thread may be done with it when Later returns
  if (std::exchange(due_, true)) return;
  if (Later([self = shared_from_this()] { self->Take(); })) return;
  due_ = false;
  call = std::move(coming_.back());
  coming_.pop_back();
  call->Conclude(nullptr, /*flush=*/true);
}

void LoopApart::Take() {
  due_ = false;
  calls_->BeginTurn();
  while (!coming_.empty()) {
    DeferredCallPtr call = std::move(coming_.front());
    coming_.pop_front();
    calls_->Submit(std::move(call));
  }
  calls_->EndTurn();
}

bool LoopApart::Cancel(const actors::CallerConnection& peer, std::uint64_t sequence,
                       bool recursive) {
  const auto found = std::find_if(coming_.begin(), coming_.end(),
                                  [&](const auto& call) { return call->Is(peer, sequence); });
  if (found != coming_.end()) {
    const DeferredCallPtr call = std::move(*found);
    coming_.erase(found);
    call->AnswerCancelled("before it began", /*flush=*/true);
    return true;
  }
  if (calls_ == nullptr) return false;
  const bool asked = Later([calls = calls_, held = peer.shared_from_this(), sequence, recursive] {
    calls->Cancel(*held, sequence, recursive);
  });
  if (!asked) PyErr_Clear();  // the loop has ended
  return false;
}

void LoopApart::End() {
  coming_.clear();
  if (calls_ == nullptr) return;
  const bool asked = Later([calls = calls_, loop = nb::borrow(loop_)] {
    calls->Over();
    loop.attr("stop")();
  });
  if (!asked) PyErr_Clear();
}

}  // namespace troupe::bindings
