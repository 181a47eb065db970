#include "runtime/async/timer.h"

#include <algorithm>
#include <utility>

namespace troupe::async {

struct Timer::State : std::enable_shared_from_this<State> {
  State(Executor executor, const Clock& c, std::function<void()> f)
      : timer(std::move(executor)), clock(c), on_due(std::move(f)) {}

  void Wait() {
    const std::uint64_t mine = ++generation;
    timer.expires_after(std::max(Duration(0), due - clock.Now()));
    timer.async_wait([self = shared_from_this(), mine](const boost::system::error_code& error) {
      if (error || mine != self->generation) return;
      // Asio's timer does not count suspend, the Clock does; a virtual clock may be behind.
      if (self->clock.Now() < self->due) return self->Wait();
      ++self->generation;
      self->on_due();
    });
  }

  asio::steady_timer timer;
  const Clock& clock;
  std::function<void()> on_due;
  Instant due{};
  std::uint64_t generation = 0;
};

Timer::Timer(Executor executor, const Clock& clock, std::function<void()> on_due)
    : state_(std::make_shared<State>(std::move(executor), clock, std::move(on_due))) {}

Timer::~Timer() { Cancel(); }

void Timer::ArmAt(Instant due) {
  state_->due = due;
  state_->Wait();
}

void Timer::Cancel() {
  ++state_->generation;
  state_->timer.cancel();
}

}  // namespace troupe::async
