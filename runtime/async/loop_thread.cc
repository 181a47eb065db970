#include "runtime/async/loop_thread.h"

#include <pthread.h>

#include "runtime/base/signals_blocked.h"

namespace troupe::async {

LoopThread::LoopThread(const std::string& name) : work_(context_.get_executor()) {
  // The new thread inherits this mask: it must not have an unblocked moment of its own.
  const SignalsBlocked blocked;
  thread_ = std::thread([this, thread_name = name.substr(0, 15)] {
    pthread_setname_np(pthread_self(), thread_name.c_str());
    context_.run();
  });
  thread_id_ = thread_.get_id();
}

LoopThread::~LoopThread() { Stop(); }

void LoopThread::Stop() {
  const MutexLock lock(stopping_);
  if (!thread_.joinable()) return;
  work_.reset();
  context_.stop();
  thread_.join();
}

}  // namespace troupe::async
