// TaskPool and TaskFunction: tasks of this process as Python objects, over
// actors/tasks/task_pool.h. Needs the GIL.
#pragma once

#include <map>
#include <memory>

#include "actors/tasks/task_pool.h"
#include "bindings/support/nanobind.h"

namespace troupe::bindings {

struct CallChannelObject;
struct CallableCell;

/// The contents of a TaskPool object.
class PyTaskPool {
 public:
  explicit PyTaskPool(nanobind::object wake);
  ~PyTaskPool();
  PyTaskPool(const PyTaskPool&) = delete;
  PyTaskPool& operator=(const PyTaskPool&) = delete;

  const std::shared_ptr<actors::TaskPool>& pool() const { return pool_; }
  /// Returns the channel of a lane, borrowed; nullptr: the lane is closed.
  CallChannelObject* ChannelOf(actors::LaneId lane) const;

  actors::LaneId Open(nanobind::handle channel);
  bool Close(actors::LaneId lane);
  nanobind::tuple Look();
  nanobind::list Tasks(std::size_t most) const;
  void FailWaiting(nanobind::handle exception);
  nanobind::list TakeDoubtful();
  void Judge(nanobind::handle ref, bool again);

 private:
  std::shared_ptr<CallableCell> cell_;  // callback when the pool wants a look
  std::shared_ptr<actors::TaskPool> pool_;
  std::map<actors::LaneId, nanobind::object> channels_;
};

/// nullptr with an error set: it is none.
std::shared_ptr<actors::TaskPool> TaskPoolOf(PyObject* object);

/// Makes the type TaskFunction.
void BindTaskFunction(nanobind::module_& m);
void BindTasks(nanobind::module_& m);

}  // namespace troupe::bindings
