#include "worker/measures/measurer.h"

#include <boost/asio/post.hpp>
#include <iterator>
#include <utility>

namespace troupe::worker {

struct Measurer::State {
  OnMeasured on_measured;  // empty: the measurer has ended
  bool busy = false;
};

Measurer::Measurer(async::Executor own, std::vector<std::string> folders,
                   std::vector<wire::Device> devices, OnMeasured on_measured)
    : own_(std::move(own)),
      state_(std::make_shared<State>()),
      node_(std::move(folders)),
      gpus_(std::move(devices)),
      thread_("worker-measures") {
  state_->on_measured = std::move(on_measured);
}

Measurer::~Measurer() {
  state_->on_measured = nullptr;
  thread_.Stop();
}

void Measurer::Tick(Instant now, Duration every,
                    const std::function<std::vector<MeasuredProcess>()>& processes) {
  if (now < due_ || std::exchange(state_->busy, true)) return;
  due_ = now + every;
  async::asio::post(thread_.context(), [this, processes = processes()] {
    std::vector<wire::Measure> measures = node_.Read(processes);
    std::vector<wire::Measure> gpus = gpus_.Read();
    measures.insert(measures.end(), std::make_move_iterator(gpus.begin()),
                    std::make_move_iterator(gpus.end()));
    async::asio::post(own_, [state = state_, measures = std::move(measures)]() mutable {
      state->busy = false;
      if (state->on_measured) state->on_measured(std::move(measures));
    });
  });
}

}  // namespace troupe::worker
