// The zygote of this node: an interpreter that forks ranks and actors on demand.
//
// View: one process; on the worker's loop. It is started at once, again when it dies (its children
// die with it), and given up after some deaths in a row before it was ready: `unusable()` then says
// why, and everything is executed instead. Fork requests wait until it is ready.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/async/fd_watch.h"
#include "runtime/async/timer.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/os/process.h"
#include "runtime/wire/messages.h"

namespace troupe::worker {

struct ZygoteOptions {
  std::string python;
  std::string log_path;
  std::vector<std::string> environment;
};

/// A request with the descriptors that go along; closed here once they are sent.
struct ForkOrder {
  wire::ForkRequest request;
  UniqueFd control;
  UniqueFd out;
  UniqueFd err;
};

class Zygote {
 public:
  struct Events {
    std::function<void(const wire::ZygoteReady&)> ready;  // also when it is not usable
    std::function<void(ProcessId, int pid)> forked;
    std::function<void(ProcessId, const std::string& error)> refused;
    std::function<void(int pid, int status, std::uint64_t peak_rss_kib)> child_exit;
    std::function<void(const std::string& why)> lost;     // its children end with it
    std::function<void()> given_up;                        // unusable() has just become true
  };

  /// `clock` must outlive the zygote. Start() starts it.
  Zygote(async::Executor executor, const Clock& clock, ZygoteOptions options, Events events);
  ~Zygote();
  void Start();

  void Fork(ForkOrder order);
  /// Takes a waiting request back; nullopt when it was sent already or is not known.
  std::optional<ForkOrder> Withdraw(ProcessId process);
  /// All that still wait.
  std::vector<ForkOrder> WithdrawAll();

  /// Reaped by whoever reaps this process's children. True when `pid` was the zygote's.
  bool OnReaped(int pid, int status);
  /// Kills it, and so its children; it is not started again.
  void Stop();

  bool is_ready() const { return ready_; }
  bool unusable() const { return unusable_; }
  int pid() const { return pid_; }

 private:
  void Readable();
  void Take(const wire::Message& message);
  void SendWaiting();
  void Lost(const std::string& why);

  const async::Executor executor_;
  const ZygoteOptions options_;
  const Clock& clock_;
  Events events_;
  async::Timer restart_;
  UniqueFd socket_;
  std::unique_ptr<async::FdWatch> watch_;
  UniqueFd pidfd_;
  int pid_ = 0;
  bool ready_ = false;
  bool unusable_ = false;
  bool stopped_ = false;
  bool blocked_ = false;   // the socket is full
  int failures_ = 0;
  std::deque<ForkOrder> waiting_;
  std::set<ProcessId> sent_;   // not answered yet
};

}  // namespace troupe::worker
