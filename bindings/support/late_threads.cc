// A library of its own, for Pythons of any version: programs that ranks become load it by ctypes
// (troupe/stand_ins/_late_threads.py).
//
// Up to version 3.13, Python ends a thread that asks for the interpreter after the program's end by
// pthread_exit. That unwinds the thread's frames, and a noexcept function of C++ among them calls
// std::terminate: a program that has done all its work is killed by SIGABRT. The thread of torch's
// Gloo groups does so now and then (with Python 3.11, one run of eight of a DDP program). Here such
// a thread ends alone. Its frames are not unwound any further, so that what waits for the thread,
// as the destructor of those groups does, goes on.
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <exception>

namespace {

// From the end of a thread to that of the process: the thread may have held a lock for ever.
constexpr timespec kEndsWithin{.tv_sec = 30, .tv_nsec = 0};

std::atomic<bool> ending = false;  // Python's exit handlers have begun to run
std::atomic<bool> ended = false;   // a thread was ended
std::terminate_handler before = nullptr;

bool IsMain() { return gettid() == getpid(); }

[[noreturn]] void Abort() {
  if (before != nullptr) before();
  abort();
}

void* AbortLater(void* /*unused*/) {
  nanosleep(&kEndsWithin, nullptr);
  fputs(
      "troupe: Python has ended, and the process did not within 30 s: a library's thread had asked "
      "for the interpreter after its end, and something waits for what the thread held\n",
      stderr);
  Abort();
}

[[noreturn]] void OnTerminate() {
  if (!ending || IsMain() || std::current_exception()) Abort();
  if (!ended.exchange(true)) {
    pthread_t later{};
    if (pthread_create(&later, nullptr, AbortLater, nullptr) != 0) Abort();
  }
  // The kernel wakes who waits in pthread_join.
  while (true) syscall(SYS_exit, 0);
}

// Runs when Python has ended, before destructors of libraries: what the thread held is in no state
// for these.
void OnExit(int status, void* /*unused*/) {
  if (!ended) return;
  fflush(nullptr);
  _exit(status);
}

}  // namespace

#define TROUPE_EXPORTED extern "C" __attribute__((visibility("default")))

/// Call once, after the libraries whose threads these are have been loaded.
TROUPE_EXPORTED void troupe_late_threads_watch() { before = std::set_terminate(OnTerminate); }

/// Call when Python's exit handlers run.
TROUPE_EXPORTED void troupe_late_threads_ending() {
  if (!ending.exchange(true)) on_exit(OnExit, nullptr);
}
