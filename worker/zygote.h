// A zygote of this node: an interpreter that forks ranks and actors on demand.
//
// View: one process; on the worker's loop. What it forks are children of this process, announced
// before they are, with a pidfd: until one is given to a request it is parked, and ends with its
// zygote; from then on it is nobody's but its own. The zygote is started at once, again when it
// dies, and given up after some deaths in a row before it was ready: everything is executed
// instead. Fork requests wait until it is ready; one that it had not answered when it died goes to
// the next one, once, and is executed then.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
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
  // modules beside what every process needs; one that fails makes it unusable
  std::vector<std::string> preimport;
  std::vector<std::string> import_path;  // folders in which they are found
  // Folders searched last, of which nothing else is known: see python_path.h
  std::vector<std::string> programs_path;
  std::string own_python_path;  // the one in `environment`, and of fresh interpreters
  std::string working_directory;
  std::string setup;   // see RuntimeEnvironment; "": nothing
  bool light = false;  // without what only some processes need: soon ready
  // lists of modules, each with a zygote before anybody asks (`zygotes.h`)
  std::vector<std::vector<std::string>> ahead;
};

/// The exit code of a child that its zygote ended before, or failed at, giving its request: no
/// user's code has run in it (`_process/prefork.py` has the same).
inline constexpr int kNeverGivenCode = 79;
/// How often zygotes are asked for one process: what it may meet is the end of one that somebody
/// killed.
inline constexpr int kTriesMax = 2;

/// A request with the descriptors that go along; kept until it is answered, for it may have to be
/// asked again.
struct ForkOrder {
  wire::ForkRequest request;
  UniqueFd control;
  UniqueFd out;
  UniqueFd err;
  int tries = 0;
};

class Zygote {
 public:
  struct Events {
    std::function<void(const wire::ZygoteReady&)> ready;  // also when it is not usable
    std::function<void(ProcessId, int pid, UniqueFd pidfd)> forked;
    std::function<void(ProcessId, const std::string& error)> refused;
    // by kTriesMax zygotes, each of which ended: it is to be executed
    std::function<void(ProcessId)> unanswered;
    std::function<void(const std::string& why)> given_up;  // unusable() has just become true
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

  /// Takes in what it has said by now. Whoever reaps or lists this process's children calls this
  /// next: each of them that a zygote forked has been announced then.
  void Drain();
  /// The zygote was reaped by whoever reaps this process's children; `how` it ended.
  void OnEnded(const std::string& how);
  /// A child of this process was reaped. True: this zygote had parked it.
  bool OnParkedEnded(int pid) { return parked_.erase(pid) > 0; }
  /// Kills it, and so what it has parked; it is not started again.
  void Stop();

  /// Nobody waits for it.
  bool idle() const { return waiting_.empty() && sent_.empty(); }
  bool is_ready() const { return ready_; }
  bool unusable() const { return unusable_; }
  int pid() const { return pid_; }
  bool IsParked(int pid) const { return parked_.count(pid) > 0; }

 private:
  void Readable();
  void Take(const wire::Message& message, std::vector<UniqueFd> fds);
  void OnReply(const wire::ForkReply& reply);
  void SendWaiting();
  void AskAgain(ForkOrder order);
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
  bool blocked_ = false;  // the socket is full
  int failures_ = 0;
  std::deque<ForkOrder> waiting_;
  std::deque<ForkOrder> sent_;      // not answered yet
  std::map<int, UniqueFd> parked_;  // children that no request has been given to yet
};

}  // namespace troupe::worker
