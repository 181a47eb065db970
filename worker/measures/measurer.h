// Measures the node on a thread of its own, so that neither a slow disk nor a driver that does not
// answer holds up the worker's loop.
//
// View: one node; all calls on its loop. One measurement at a time: one that is due meanwhile is
// left out.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/async/loop_thread.h"
#include "runtime/base/time.h"
#include "worker/measures/gpu_measures.h"
#include "worker/measures/node_measures.h"

namespace troupe::worker {

class Measurer {
 public:
  using OnMeasured = std::function<void(std::vector<wire::Measure>)>;

  /// `on_measured` is called on `own`, never after the measurer's end.
  Measurer(async::Executor own, std::vector<std::string> folders, std::vector<wire::Device> devices,
           OnMeasured on_measured);
  ~Measurer();
  Measurer(const Measurer&) = delete;
  Measurer& operator=(const Measurer&) = delete;

  /// Begins a measurement when the last one began `every` ago. `processes` tells what runs.
  void Tick(Instant now, Duration every,
            const std::function<std::vector<MeasuredProcess>()>& processes);

 private:
  struct State;
  const async::Executor own_;
  const std::shared_ptr<State> state_;
  Instant due_{};
  NodeMeasurer node_;
  GpuMeasurer gpus_;
  async::LoopThread thread_;  // last: it uses the members above
};

}  // namespace troupe::worker
