// A call that runs elsewhere than where it was read, or later, and answers when it ends. Needs the GIL.
#pragma once

#include <Python.h>
#include <absl/container/inlined_vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "actors/peer.h"
#include "bindings/call_answer.h"

namespace troupe::bindings {

/// Owns what it points to. Dropped without an answer, it gives none: the end of its actor does.
class DeferredCall {
 public:
  /// `args` are `positional` values, then one for each of `keywords` (a tuple or nullptr).
  DeferredCall(PyObject* method, PyObject* const* args, std::size_t count, PyObject* keywords,
               actors::Peer& peer, std::uint64_t sequence, PyObject* name, const AnswerForm& form,
               std::size_t group);
  DeferredCall(const DeferredCall&) = delete;
  DeferredCall& operator=(const DeferredCall&) = delete;
  ~DeferredCall();

  /// Calls the method. A new reference, or nullptr with an error set.
  PyObject* Run();
  /// Answers with `result` (stolen), or with the error that is set; once. `flush`: at once.
  void Answer(PyObject* result, bool flush);

  actors::Peer& peer() { return *peer_; }
  std::uint64_t sequence() const { return sequence_; }
  std::size_t group() const { return group_; }
  PyObject* name() const { return name_; }

 private:
  PyObject* method_;
  absl::InlinedVector<PyObject*, 6> args_;  // a place before the first, for vectorcall
  PyObject* keywords_;
  const std::shared_ptr<actors::Peer> peer_;
  const std::uint64_t sequence_;
  PyObject* name_;
  const AnswerForm form_;
  const std::size_t group_;
  bool answered_ = false;
};
using DeferredCallPtr = std::unique_ptr<DeferredCall>;

}  // namespace troupe::bindings
