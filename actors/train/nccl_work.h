// Operations on a communicator's stream, and the event that they have passed.
#pragma once

#include <atomic>
#include <memory>

#include "actors/train/communicator.h"
#include "actors/train/cuda_types.h"

namespace troupe::train {

class NcclCommunicator;

class NcclWork final : public Work {
 public:
  /// Takes the event; keeps the communicator, which forgets it once it has ended.
  NcclWork(std::shared_ptr<NcclCommunicator> group, CudaEvent event, std::uint64_t seq);
  ~NcclWork() override;

  bool Done() override;
  Status Wait(Duration most) override;
  std::uint64_t seq() const override { return seq_; }

  /// For cuStreamWaitEvent: another stream goes on when the operations have passed, or were
  /// stopped.
  CudaEvent event() const { return event_; }
  /// Returns true if the stream has passed the event, or CUDA can no longer say. Never blocks.
  bool Passed();

 private:
  const std::shared_ptr<NcclCommunicator> group_;
  const CudaEvent event_;
  const std::uint64_t seq_;
  std::atomic<CudaResult> result_{CudaResult::kNotReady};
};

}  // namespace troupe::train
