// Mutex, MutexLock, CondVar: the standard ones with annotations, so that clang says where something
// is used without its lock.
//
// What a mutex guards carries ABSL_GUARDED_BY(mutex_), a function that is called with it held
// ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_), one that must be called without it
// ABSL_LOCKS_EXCLUDED(mutex_). `clang-dev` and `release` refuse to compile what breaks such a
// promise (-Werror=thread-safety); g++ reads past them. The analysis looks at one function at a
// time and not into lambdas: waits are loops around CondVar::Wait, without a predicate.
//   https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
//
//   Mutex mutex_;
//   CondVar changed_;
//   std::deque<int> work_ ABSL_GUARDED_BY(mutex_);
//   ...
//   MutexLock lock(mutex_);
//   while (work_.empty()) changed_.Wait(mutex_);
#pragma once

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>

namespace troupe {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }
  /// Says to the analysis that the caller holds it, where that cannot be seen: in a callback, in a
  /// lambda.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}
  /// In a forked child, before it has threads: free, whoever held it in the parent.
  void Renew() { new (&mutex_) std::mutex; }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

/// Holds a mutex while it lives; may let go of it in between.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() {
    if (held_) mutex_.Unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() ABSL_UNLOCK_FUNCTION() {
    held_ = false;
    mutex_.Unlock();
  }
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    mutex_.Lock();
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

/// Waits may end without a reason: look at what is waited for, in a loop.
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  void Wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  /// False: `until` has passed.
  template <class Clock, class Span>
  bool WaitUntil(Mutex& mutex, std::chrono::time_point<Clock, Span> until)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const bool in_time = condition_.wait_until(lock, until) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  /// False: `most` has passed.
  template <class Rep, class Period>
  bool WaitFor(Mutex& mutex, std::chrono::duration<Rep, Period> most)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const bool in_time = condition_.wait_for(lock, most) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }
  /// In a forked child, before it has threads: nobody waits.
  void Renew() { new (&condition_) std::condition_variable; }

 private:
  std::condition_variable condition_;
};

}  // namespace troupe
