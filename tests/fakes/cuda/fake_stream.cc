#include "tests/fakes/cuda/fake_stream.h"

#include <utility>

namespace troupe::fakes {

FakeStream::FakeStream() : thread_([this] { Run(); }) {}

FakeStream::~FakeStream() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void FakeStream::Put(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

bool FakeStream::Idle() {
  std::lock_guard lock(mutex_);
  return !busy_ && work_.empty();
}

void FakeStream::WaitIdle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_ && work_.empty(); });
}

void FakeStream::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !work_.empty(); });
    if (work_.empty()) return;
    {
      const auto work = std::move(work_.front());
      work_.pop_front();
      busy_ = true;
      lock.unlock();
      work();
    }
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void FakeEvent::Mark::Pass() const {
  std::lock_guard lock(state_->mutex);
  state_->passed = std::max(state_->passed, number_);
  state_->changed.notify_all();
}

bool FakeEvent::Mark::Passed() const {
  std::lock_guard lock(state_->mutex);
  return state_->passed >= number_;
}

void FakeEvent::Mark::Wait() const {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->passed >= number_; });
}

FakeEvent::Mark FakeEvent::Next() {
  std::lock_guard lock(state_->mutex);
  return Mark(state_, ++state_->asked);
}

FakeEvent::Mark FakeEvent::Latest() const {
  std::lock_guard lock(state_->mutex);
  return Mark(state_, state_->asked);
}

}  // namespace troupe::fakes
