// How many tasks of a pool wait, and what follows from it: whether there is room for more, whether
// answers must be read although nobody waits for one, whether who leases processes is to look.
// Pure: no socket, no clock, no thread.
//
//   TB-1  There is no room from kTasksMax tasks kept or kBytesMax of arguments on; who waits for
//   room hears of it
//         once both are at half of that.
//   TB-2  Answers are expected while a task waits for a process: the next answer sends it.
//   TB-3  A wake that was asked for above a number comes once; whoever wants another one asks
//   again. TB-4  Where no task waits no bytes do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace troupe::actors {

class TaskBacklog {
 public:
  static constexpr std::size_t kTasksMax = 1u << 20;
  static constexpr std::size_t kBytesMax = 256u << 20;

  /// A task with arguments of so many bytes waits for a process, or does so no more.
  void Add(std::size_t bytes) { bytes_ += bytes; }
  void Remove(std::size_t bytes) { bytes_ -= bytes < bytes_ ? bytes : bytes_; }
  /// Returns true if there is no room for another task where so many are kept with no process, for
  /// whatever they wait.
  bool Full(std::size_t kept) const { return kept >= kTasksMax || bytes_ >= kBytesMax; }

  /// A wake is due once more than so many wait for a process; -1: not for that.
  void WakeAbove(std::int64_t waiting) { wake_above_ = waiting; }
  /// A wake is due once more than so many processes that take tasks have none; -1: not for that.
  void WakeAboveIdle(std::int64_t idle) { wake_above_idle_ = idle; }
  /// Returns true if the number of processes without tasks matters.
  bool counts_idle() const { return wake_above_idle_ >= 0; }
  void NoteIdle(std::int64_t idle);
  /// A wake is due for a reason of the caller's own.
  void Wake() { wake_due_ = true; }
  /// True once per wake that was due: the caller wakes.
  bool TakeWake();

  struct Change {
    std::optional<bool> expects;  // set: from now on answers are expected, or not any more
    bool room = false;  // true if threads that wait for room must be woken
  };
  /// After anything happened: so many wait for a process now, and so many for their arguments.
  Change Note(std::size_t waiting, std::size_t held_back);

 private:
  std::size_t bytes_ = 0;
  std::int64_t wake_above_ = 0;
  std::int64_t wake_above_idle_ = -1;
  bool wake_due_ = false;
  bool expects_ = false;
};

}  // namespace troupe::actors
