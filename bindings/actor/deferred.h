// A call that runs elsewhere than where it was read, or later, and answers when it ends. Needs the
// GIL.
#pragma once

#include <Python.h>
#include <absl/container/inlined_vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "actors/server/caller_connection.h"
#include "bindings/actor/answer.h"
#include "bindings/actor/item_sender.h"
#include "bindings/actor/recorded_run.h"
#include "bindings/support/running.h"

namespace troupe::bindings {

/// Owns what it points to. Dropped without an answer, it gives none: the end of its actor does.
class DeferredCall {
 public:
  /// `args` are `positional` values, then one for each of `keywords` (a tuple or nullptr). `mark`:
  /// as in actors::CallHead.
  DeferredCall(PyObject* method, PyObject* const* args, std::size_t count, PyObject* keywords,
               actors::CallerConnection& peer, std::uint64_t sequence, std::uint16_t mark,
               PyObject* name, const AnswerForm& form, std::size_t group,
               std::shared_ptr<ItemSender> items);
  DeferredCall(const DeferredCall&) = delete;
  DeferredCall& operator=(const DeferredCall&) = delete;
  ~DeferredCall();

  /// Calls the method. A new reference, or nullptr with an error set.
  PyObject* Run();
  /// Answers that it was cancelled, `when` it was.
  void AnswerCancelled(const char* when, bool flush);
  /// Answers with `result` (stolen), or with the error that is set; once. `flush`: at once.
  void Conclude(PyObject* result, bool flush);

  actors::CallerConnection& peer() { return *peer_; }
  bool Is(const actors::CallerConnection& peer, std::uint64_t sequence) const {
    return peer_.get() == &peer && running_.sequence == sequence;
  }
  RunningCall& running() { return running_; }
  std::size_t group() const { return group_; }
  PyObject* name() const { return name_; }
  /// The sender of the items of a call that streams; nullptr: it does not.
  const std::shared_ptr<ItemSender>& items() const { return items_; }

 private:
  PyObject* method_;
  absl::InlinedVector<PyObject*, 6> args_;  // a place before the first, for vectorcall
  PyObject* keywords_;
  const std::shared_ptr<actors::CallerConnection> peer_;
  RunningCall running_;
  PyObject* name_;
  RecordedRun recorded_;
  const AnswerForm form_;
  const std::size_t group_;
  const std::shared_ptr<ItemSender> items_;
  bool answered_ = false;
};
using DeferredCallPtr = std::unique_ptr<DeferredCall>;

}  // namespace troupe::bindings
