// How a method ends its actor: by SystemExit, or KeyboardInterrupt on the serving thread.
//
// Who runs calls asks HowRaised() where one has raised, keeps what is to be raised by serve(), and
// says Stop() once the call is answered. Shared with what outlives the executor. Needs the GIL.
#pragma once

#include <Python.h>

#include <functional>
#include <utility>

namespace troupe::bindings {

class ActorExit {
 public:
  explicit ActorExit(std::function<void()> stop) : stop_(std::move(stop)) {}
  ~ActorExit() { Py_XDECREF(exception_); }
  ActorExit(const ActorExit&) = delete;
  ActorExit& operator=(const ActorExit&) = delete;

  /// The meaning of the current error for the actor whose method raised it.
  enum class How {
    kStays,  // the actor goes on
    kAnswers,  // exit_actor(), sys.exit(0): the error is the call's answer
    // sys.exit() of another code: the call has no answer, like one whose process was killed
    kCrashes,
  };
  /// Judges the error that is set, which stays set.
  static How HowRaised();
  /// Keeps the error that is set, which stays set, to be raised by serve().
  void KeepRaised();
  /// Once its call is answered: ends serving.
  void Stop() {
    if (stop_) stop_();
  }
  void Keep(PyObject* exception) { Py_XSETREF(exception_, exception); }  // steals
  PyObject* Take() { return std::exchange(exception_, nullptr); }
  void Over() { stop_ = nullptr; }

 private:
  std::function<void()> stop_;
  PyObject* exception_ = nullptr;
};

}  // namespace troupe::bindings
