// A request to a TaskPool: a function, the shape of its arguments, and one call of it, all encoded.
//
// Plain data. A function and its shapes outlive every task of theirs and may be shared by any
// number; who makes them holds no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "actors/caller/pending_arguments.h"
#include "actors/core/policy/task_dispatch.h"
#include "actors/objects/object_handles.h"
#include "actors/slots/item_stream.h"

namespace troupe::actors {

/// Tells functions and shapes from all others of this process, also from those that are gone.
inline std::uint64_t NewTaskNumber() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

struct TaskFunction {
  enum class Retried : std::uint8_t { kNone, kAll, kSome };  // exceptions of a task

  const std::uint64_t id = NewTaskNumber();
  std::string
      definition;  // encoded arguments of `__define__`: the key of its calls, and what it is
  Handles refs;    // inside the definition
  std::size_t refs_at = 0;  // offset at which the value begins that holds them
  std::uint16_t definition_arguments = 2;
  std::int32_t retries = 0;  // when its process is lost; -1: any number
  Retried retried = Retried::kNone;
  std::uint64_t calls_max = 0;              // in one process; 0: any number
  std::uint64_t number = 0;                 // for who judges
  std::shared_ptr<const std::string> name;  // for people
  TaskDispatch::Kind kind;                  // guarded by the lock of the pools
};

/// Method and keyword names of calls, encoded. As long-lived as its function, or as the one call
/// that has it.
struct TaskShape {
  const std::uint64_t id = NewTaskNumber();
  std::string names;
  std::uint16_t keyword_count = 0;
};

struct TaskCall {
  std::shared_ptr<TaskFunction> function;
  const TaskShape* shape = nullptr;
  std::shared_ptr<const TaskShape> own_shape;  // nullptr: its function has it
  std::uint16_t argument_count = 0;
  std::string values;
  Handles held;  // objects that `values` names
  PendingArguments to_come;  // into `values`
  std::shared_ptr<ItemStream> items;
  std::uint64_t parent = 0;  // the task that starts this one; 0: none
};

}  // namespace troupe::actors
