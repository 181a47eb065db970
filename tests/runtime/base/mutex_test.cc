// Mutex, MutexLock and CondVar, each by two threads.
#include "runtime/base/mutex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <thread>

namespace troupe {
namespace {

class Queue {
 public:
  void Push(int value) {
    MutexLock lock(mutex_);
    values_.push_back(value);
    changed_.NotifyOne();
  }
  int Pop() {
    MutexLock lock(mutex_);
    while (values_.empty()) changed_.Wait(mutex_);
    const int first = values_.front();
    values_.pop_front();
    return first;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<int> values_ ABSL_GUARDED_BY(mutex_);
};

TEST(Mutex, a_wait_hears_what_another_thread_did) {
  Queue queue;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) queue.Push(i);
  });
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(queue.Pop(), i);
  other.join();
}

TEST(Mutex, a_lock_may_be_let_go_of_in_between) {
  Mutex mutex;
  const auto free_for_another = [&] {
    bool got = false;
    std::thread([&] {
      if (mutex.TryLock()) {
        got = true;
        mutex.Unlock();
      }
    }).join();
    return got;
  };
  {
    MutexLock lock(mutex);
    EXPECT_FALSE(free_for_another());
    lock.Unlock();
    EXPECT_TRUE(free_for_another());
    lock.Lock();
    EXPECT_FALSE(free_for_another());
    lock.Unlock();
  }
  EXPECT_TRUE(free_for_another());
}

TEST(Mutex, a_wait_ends_at_its_time_with_the_lock_held) {
  Mutex mutex;
  CondVar never;
  MutexLock lock(mutex);
  while (never.WaitFor(mutex, std::chrono::milliseconds(1))) {
  }
  while (never.WaitUntil(mutex, std::chrono::steady_clock::now())) {
  }
  bool got = true;
  std::thread([&] { got = mutex.TryLock(); }).join();
  EXPECT_FALSE(got);
}

TEST(Mutex, renewed_it_is_free) {
  Mutex mutex;
  mutex.Lock();
  mutex.Renew();
  EXPECT_TRUE(mutex.TryLock());
  mutex.Unlock();
}

}  // namespace
}  // namespace troupe
