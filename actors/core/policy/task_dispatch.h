// Assignment of tasks to processes. Pure: no socket, no clock, no thread.
//
// A lane is a process that runs tasks of this caller one after the other, in the order they are
// sent to it.
//
//   TL-1  A task waits, or is with one lane. Those that wait go in the order they came.
//   TL-2  An empty lane takes any task. A lane that has tasks takes another one only where they and
//         it are quick, by what their functions took before, and may all be repeated: no more than
//         take kAhead together, and kDepthMax. So nothing waits long behind another task while a
//         lane is free, and the end of a process is never the end of a task that did not run in it
//         and may not be repeated.
//   TL-3  What a lane lost and may go again comes before all that waits, in its order, and from
//         then on goes to empty lanes only: what ends its process takes no other task with it
//         twice.
//   TL-4  A closed lane takes nothing; what is with it stays until it is answered or lost. Likewise
//         one that is paused, until it is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "runtime/base/time.h"

namespace troupe::actors {

using LaneId = std::uint64_t;  // 0: none

class TaskDispatch {
 public:
  static constexpr Duration kAhead = std::chrono::milliseconds(2);
  static constexpr Duration kUnknown = std::chrono::seconds(1);
  static constexpr std::size_t kDepthMax = 512;

  /// The facts known about a function.
  class Kind {
   public:
    /// How many of it may be with one lane; 1 while nothing is known.
    std::size_t depth() const;
    /// Zero: not known.
    Duration typical() const { return typical_; }
    void Took(Duration each);

   private:
    Duration typical_{};
  };

  struct Task {
    Kind* kind = nullptr;
    std::int32_t retries = 0;  // -1: any number
    bool alone = false;        // goes to empty lanes only
    bool waits = false;
    LaneId lane = 0;
    Task* before = nullptr;  // in the queue
    Task* after = nullptr;
  };

  /// A task begins: the lane it is with now, or 0, and it waits.
  LaneId Begin(Task& task, Instant now);
  /// The next task of those that wait goes to this lane; nullptr: none does.
  Task* Next(LaneId lane, Instant now);
  /// Lanes that may take what waits.
  std::vector<LaneId> Willing() const;
  /// Tasks of a lane were answered, by its process or by its end. How long each of them was first
  /// there, on average.
  Duration Answered(LaneId lane, const std::vector<Task*>& tasks, Instant now, bool lost);
  /// A task that was answered goes again, behind those of its kind that came back before it.
  void Again(Task& task);
  /// A task that was chosen did not leave after all: it waits before all others.
  void Undo(Task& task);
  /// A task that waits is not wanted any more.
  void Drop(Task& task);
  /// All that wait, in their order, which wait no more.
  std::vector<Task*> TakeAll();

  void Open(LaneId lane, Instant now);
  void Close(LaneId lane);
  void Pause(LaneId lane, bool paused);
  /// Forgets a lane that is closed, and that nothing is with. False: it is not that far.
  bool Forget(LaneId lane);

  struct LaneView {
    LaneId lane = 0;
    std::size_t tasks = 0;
    bool open = true;
    // when it became idle, or when its oldest task went to it or became the oldest
    Instant since{};
  };
  std::vector<LaneView> Lanes() const;
  /// Returns true if a lane takes tasks, and has none.
  bool Idle(LaneId lane) const;
  std::size_t waiting() const { return waiting_; }
  /// How long all tasks that wait would take one lane; one of a function not known counts kUnknown.
  Duration Work() const;

 private:
  struct Lane {
    std::size_t tasks = 0;
    bool exclusive = false;  // the task wants no other beside it
    bool open = true;
    bool paused = false;
    Instant since{};
  };
  static std::size_t DepthOf(const Task& task);
  static bool Takes(const Lane& lane, const Task& task);
  static void Put(LaneId id, Lane& lane, Task& task, Instant now);
  void LinkBefore(Task* place, Task& task);
  void Unlink(Task& task);

  std::map<LaneId, Lane> lanes_;
  Task* first_ = nullptr;
  Task* last_ = nullptr;
  Task* first_new_ = nullptr;  // the first that waits and has not gone again
  std::size_t waiting_ = 0;
};

}  // namespace troupe::actors
