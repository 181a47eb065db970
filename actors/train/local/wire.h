// The connections of a rank to ranks of other nodes that carry tensors, and the thread that moves
// bytes through them while others compute.
//
// Whoever starts something tries it at once on its own thread; the wire's thread does what is left,
// when the socket can. It sleeps while nothing is outstanding.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "runtime/base/unique_fd.h"

namespace troupe::train {

/// Wakes a thread out of poll.
class Waker {
 public:
  Waker();
  /// Any thread; returns at once.
  void Wake();
  void Clear();
  int fd() const { return fd_.get(); }

 private:
  const UniqueFd fd_;
};

/// A connection. All functions: any thread, and none blocks.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual int fd() const = 0;
  /// The events of poll that it waits for from now on; 0: nothing is outstanding.
  virtual short Wants() = 0;
  /// Goes on as far as it goes.
  virtual void Move() = 0;
  /// Drops what is outstanding, after which it touches nobody's memory, and says to the other end
  /// that nothing more comes.
  virtual void End() = 0;
};

class Wire {
 public:
  /// Begins to move. `waker` is what the streams wake it by; both must outlive it.
  Wire(std::vector<Stream*> streams, Waker& waker);
  /// The streams must have ended.
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

 private:
  void Run();

  const std::vector<Stream*> streams_;
  Waker& waker_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace troupe::train
