// Waits for a log file to grow: inotify, no polling.
//
// View: one node; on the worker's loop. One inotify descriptor for all waiters. A waiter looks at the
// file again after it was told, and also when the limit is over.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "runtime/async/fd_watch.h"
#include "runtime/async/task.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/base/unique_fd.h"

namespace troupe::worker {

class LogWatch {
 public:
  static StatusOr<std::unique_ptr<LogWatch>> Open(const async::Executor& executor);

  /// A waiter for `path`; make it before looking at the file, so that no growth is missed.
  class Waiter {
   public:
    Waiter(LogWatch& watch, const std::string& path);
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    /// Suspends until the file has changed since the last call, or `limit` is over.
    async::Task<void> Changed(Duration limit);

   private:
    friend class LogWatch;
    struct Signal;
    LogWatch& watch_;
    int descriptor_ = -1;
    std::shared_ptr<Signal> signal_;
  };

  /// Wakes every waiter: a process has ended, so its log is complete.
  void WakeAll();

 private:
  LogWatch(const async::Executor& executor, UniqueFd fd);
  void Readable();

  const async::Executor executor_;
  UniqueFd fd_;
  std::map<int, std::set<Waiter*>> waiters_;
  std::unique_ptr<async::FdWatch> readable_;
};

}  // namespace troupe::worker
