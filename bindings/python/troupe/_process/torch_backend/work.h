// Works of torch over operations of a group, and their ends.
//
// A Work ends on the group's thread; what it still has to do with torch (results into tensors that
// are not in one piece) is done there too, before it ends. Buffers are held by it until then.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

namespace troupe_torch {

using Tensors = std::vector<at::Tensor>;

class GroupWork : public c10d::Work {
 public:
  GroupWork(int rank, c10d::OpType op, uint64_t seq, Tensors results)
      : c10d::Work(rank, op),
        seq_(seq),
        results_(std::move(results)),
        future_(c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::create(c10::TensorType::get()))) {}

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  Tensors result() override { return results_; }
  uint64_t getSequencenumber() const override { return seq_; }
  int sourceRank() const override { return source_; }

  /// Once, on whichever thread it ended.
  void end(std::exception_ptr error, int source) {
    source_ = source;
    finish(error);
    if (error)
      future_->setError(error);
    else
      future_->markCompleted(c10::IValue(results_));
  }

 private:
  const uint64_t seq_;
  const Tensors results_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::atomic<int> source_{-1};
};

/// Operations that are one Work, what they refer to, and what is to be done with their results.
struct Running {
  c10::intrusive_ptr<GroupWork> work;
  Tensors buffers;
  std::function<void()> after;
  std::atomic<int> left{1};
  std::atomic<int> source{-1};
  std::mutex mutex;
  std::string error;  // the first one
};

inline void ended(void* context, const char* error, int source) {
  auto* const running = static_cast<Running*>(context);
  if (error != nullptr) {
    std::lock_guard lock(running->mutex);
    if (running->error.empty()) running->error = error;
  }
  if (source >= 0) running->source = source;
  if (--running->left != 0) return;
  const std::unique_ptr<Running> last(running);
  std::exception_ptr raised;
  try {
    // DistBackendError is the type that torch raises for groups.
    TORCH_CHECK_WITH(DistBackendError, last->error.empty(), last->error);
    if (last->after) last->after();
  } catch (...) {
    raised = std::current_exception();
  }
  last->after = nullptr;
  last->buffers.clear();
  last->work->end(raised, last->source);
}

}  // namespace troupe_torch
