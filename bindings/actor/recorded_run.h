// A marked call at its actor, as a span of the process's ring (runtime/obs/trace.h). Needs the GIL.
#pragma once

#include <Python.h>

#include <cstdint>

#include "runtime/obs/trace.h"

namespace troupe::bindings {

class RecordedRun {
 public:
  /// `mark`: the call's; 0: nothing is recorded. `name`: a str.
  RecordedRun(std::uint16_t mark, std::uint64_t sequence, PyObject* name) {
    if (mark == 0) [[likely]] return;
    flow_ = obs::FlowOf(mark, sequence);
    name_ = Py_NewRef(name);
    Begin();
  }
  ~RecordedRun() {
    End();
    Py_XDECREF(name_);
  }
  RecordedRun(const RecordedRun&) = delete;
  RecordedRun& operator=(const RecordedRun&) = delete;

  /// The method begins only now.
  void Begin() {
    if (flow_ != 0) began_ = obs::TraceNow();
  }
  /// The method is over. Once; the end of this object says it too.
  void End() {
    if (flow_ == 0) [[likely]] return;
    obs::Span span;
    span.kind = obs::SpanKind::kRun;
    span.begin = began_;
    span.end = obs::TraceNow();
    const char* const name = PyUnicode_AsUTF8(name_);
    if (name != nullptr) span.name = name;
    span.flow = flow_;
    obs::AddSpan(span);
    flow_ = 0;
  }

 private:
  std::uint64_t flow_ = 0;
  Instant began_{};
  PyObject* name_ = nullptr;
};

}  // namespace troupe::bindings
