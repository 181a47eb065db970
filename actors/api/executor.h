// Runs calls on a C++ object: this library's half of actors/server/call_server.h. Methods run on
// the thread that serves, one after the other.
#pragma once

#include <memory>
#include <string>

#include "actors/api/registry.h"
#include "actors/server/call_server.h"

namespace troupe::api {

class CppExecutor final : public actors::CallExecutor {
 public:
  /// `self` is of the class `entry`; both outlive the executor. `who`: for people, "Counter (C++,
  /// pid 12 on node-a)".
  CppExecutor(const ClassEntry& entry, void* self, std::string who)
      : entry_(entry), self_(self), who_(std::move(who)) {}

  std::unique_ptr<actors::CallRunner> Open() override;
  void Suspend() override {}
  void Resume() override {}
  bool Interrupted() override { return false; }
  bool HandlesSignals() const override { return false; }

  const ClassEntry& entry() const { return entry_; }
  void* self() const { return self_; }
  const std::string& who() const { return who_; }
  const actors::CallLimits& limits() const { return limits_; }

 private:
  const ClassEntry& entry_;
  void* const self_;
  const std::string who_;
  const actors::CallLimits limits_;
};

/// Returns the name of a C++ exception's type: "std::out_of_range".
std::string TypeNameOf(const std::exception& error);
/// A pickle of the exception of Python's that stands for it: ValueError, IndexError, TypeError,
/// MemoryError, else RuntimeError.
std::string PythonExceptionOf(const std::exception& error);

}  // namespace troupe::api
