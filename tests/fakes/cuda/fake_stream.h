// A stream and an event of the fake CUDA: what is put into a stream runs in order on a thread of
// its own, and an event is a mark that a stream passes.
//
// Thread-safe. An event may be destroyed while a stream still holds its mark, as CUDA allows.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace troupe::fakes {

class FakeStream {
 public:
  FakeStream();
  /// Waits for what was put.
  ~FakeStream();
  FakeStream(const FakeStream&) = delete;
  FakeStream& operator=(const FakeStream&) = delete;

  /// Returns at once; `work` runs after what was put before.
  void Put(std::function<void()> work);
  bool Idle();
  /// Blocks until all that was put has run.
  void WaitIdle();

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool busy_ = false, stopping_ = false;
  std::thread thread_;
};

/// An event's records, counted: asked for, and passed by the stream.
class FakeEvent {
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::uint64_t asked = 0, passed = 0;
  };

 public:
  /// A record of an event, which outlives it.
  class Mark {
   public:
    Mark(std::shared_ptr<State> state, std::uint64_t number)
        : state_(std::move(state)), number_(number) {}
    void Pass() const;
    bool Passed() const;
    void Wait() const;

   private:
    std::shared_ptr<State> state_;
    std::uint64_t number_;
  };

  Mark Next();
  /// An event that was never recorded has passed.
  Mark Latest() const;

 private:
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace troupe::fakes
