// Signals are for the program's own threads: a thread that is started while one of these lives gets
// none.
//
// View of the calling thread, whose mask is as before afterwards.
//
// Example:
//   const SignalsBlocked blocked;
//   thread_ = std::thread([this] { Run(); });
#pragma once

#include <pthread.h>
#include <signal.h>

namespace troupe {

class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace troupe
