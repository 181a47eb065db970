// Things that a fork must not carry over: descriptors, and every object that threads or locks
// belong to.
//
// In a forked child the descriptors registered here are closed before fork() returns (an actor must
// not look alive because a child of its caller holds the socket), and generation() is another
// number: an object that remembers the generation it was made in knows that it is inert, and then
// touches neither its locks nor its descriptors. posix_spawn and vfork run no handlers; there
// close-on-exec does it.
#pragma once

#include <atomic>
#include <cstdint>

namespace troupe::actors {

class ForkGuard {
 public:
  /// Registers the handler; at the first call in a process image. Cheap afterwards.
  static void Install();
  static std::uint32_t generation() { return generation_.load(std::memory_order_relaxed); }

  /// Marks a descriptor as one that a child must not keep. Any thread.
  static void Guard(int fd);
  /// Unmarks it and closes it. Any thread.
  static void Close(int fd);

 private:
  static void InChild();
  static std::atomic<std::uint32_t> generation_;
};

/// A guarded descriptor, closed at the end of its life unless that happens in a forked child.
class GuardedFd {
 public:
  GuardedFd() = default;
  explicit GuardedFd(int fd) : fd_(fd), generation_(ForkGuard::generation()) {
    if (fd_ >= 0) ForkGuard::Guard(fd_);
  }
  GuardedFd(GuardedFd&& other) noexcept : fd_(other.fd_), generation_(other.generation_) {
    other.fd_ = -1;
  }
  GuardedFd& operator=(GuardedFd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = other.fd_;
      generation_ = other.generation_;
      other.fd_ = -1;
    }
    return *this;
  }
  ~GuardedFd() { Reset(); }
  int get() const { return fd_; }
  void Reset() {
    if (fd_ >= 0 && generation_ == ForkGuard::generation()) ForkGuard::Close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
  std::uint32_t generation_ = 0;
};

}  // namespace troupe::actors
