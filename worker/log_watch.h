// Waits for log files to grow: inotify, no polling.
//
// View: one node; on the worker's loop. One inotify descriptor for all waiters. A waiter looks at
// its files again after it was told, and also when the limit is over.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/async/fd_watch.h"
#include "runtime/async/task.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/base/unique_fd.h"

namespace troupe::worker {

class LogWatch {
 public:
  static StatusOr<std::unique_ptr<LogWatch>> Open(const async::Executor& executor);

  /// A waiter for these files; make it before looking at them, so that no growth is missed.
  class Waiter {
   public:
    Waiter(LogWatch& watch, std::vector<std::string> paths);
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    /// Suspends until one of them has changed since the last call, or `limit` is over.
    async::Task<void> Changed(Duration limit);
    /// Returns the places in `paths` of those that have changed since the last call; a file that
    /// appeared has, too.
    std::vector<std::size_t> Take();
    /// Ends the wait, the next one if there is none now.
    void Wake();

   private:
    friend class LogWatch;
    struct Signal;
    void Watch(std::size_t path);
    void Note(int descriptor);
    void LookForAbsent();

    LogWatch& watch_;
    const std::vector<std::string> paths_;
    std::map<int, std::vector<std::size_t>> watched_;  // by descriptor; -1: not there
    std::set<std::size_t> changed_;
    std::shared_ptr<Signal> signal_;
  };

  /// Wakes every waiter: a process has ended, so its log is complete.
  void WakeAll();
  /// Wakes those who wait for a file that was not there: a process has been started.
  void WakeAbsent();

 private:
  LogWatch(const async::Executor& executor, UniqueFd fd);
  void Readable();

  const async::Executor executor_;
  UniqueFd fd_;
  std::map<int, std::set<Waiter*>> waiters_;
  std::unique_ptr<async::FdWatch> readable_;
};

}  // namespace troupe::worker
