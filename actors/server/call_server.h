// The actor's half: lets callers in (CallListener), and runs their calls on the thread that serves.
//
// Per connection calls run in the order of arrival. The serving thread reads what is there, runs
// all whole calls (with the GIL taken once), answers, polls the last caller for at most 30 us
// (without the GIL while calls run on other threads), then blocks. It never blocks on one peer:
// replies that do not fit wait in memory, and a peer over the limits of ActorFlow is read no
// further until it drains. A frame that breaks a rule ends its connection with a named error; other
// callers notice nothing. A caller whose connection is lost may come back with another one and go
// on (SessionTable says for how long it is remembered).
//
// A second thread, made when first needed and asleep otherwise, writes replies that are held back
// by a long call of the same batch.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "actors/core/call/call_frame.h"
#include "actors/core/policy/spin_policy.h"
#include "actors/core/session/session_table.h"
#include "actors/net/fork_guard.h"
#include "actors/server/call_listener.h"
#include "actors/server/caller_connection.h"
#include "actors/slots/waiter.h"
#include "runtime/base/status.h"

namespace troupe::actors {

enum class Ran {
  kReplied,   // the reply is in the buffer
  kDeferred,  // CallerConnection::ReplyDeferred will be called, from any thread
  kStop,      // replied, and serving ends after it
  kGone,      // serving ends after it, and its caller learns no more than that the process is gone
};

/// Runs the calls of one connection; made and destroyed on the serving thread.
class CallRunner {
 public:
  virtual ~CallRunner() = default;
  /// Runs one call. Its reply goes into `reply` (room for the head is there) and `*flags`. An error
  /// is a broken rule of the protocol, not an exception of the method.
  virtual StatusOr<Ran> Run(const Frame& frame, CallerConnection& peer, ByteBuffer& reply,
                            std::uint16_t* flags) = 0;
  /// Before Run, of a call that names objects of another host: false if they are to come first.
  /// CallerConnection::Unpark says when to ask again.
  virtual bool Prepare(const Frame& frame, CallerConnection& peer) { return true; }
  /// The caller of a call that was run has taken this many of its items, as often as it says so,
  /// also while another call runs (CallerConnection::LookAhead).
  virtual void Taken(std::uint64_t sequence, std::uint64_t items) {}
  /// A call, run or still to come, is not wanted any more, nor (`recursive`) what it started. Said
  /// once for each time that its caller says so, also while another call runs.
  virtual void Cancel(std::uint64_t sequence, bool recursive) {}
};

/// The executor of calls: the bindings' with the GIL, the tests' without.
class CallExecutor : public WaitHost {
 public:
  virtual std::unique_ptr<CallRunner> Open() = 0;
  /// Returns true if calls run on other threads now, which need the locks that Suspend releases.
  virtual bool RunsElsewhere() const { return false; }
};

class CallServer {
 public:
  /// Listens at `path`: callers may connect from now on and wait for Serve.
  /// With `identity` also for callers of other hosts, which the worker passes on.
  static StatusOr<std::unique_ptr<CallServer>> Listen(const std::string& path,
                                                      IdentitySource identity = nullptr);
  CallServer(const CallServer&) = delete;
  CallServer& operator=(const CallServer&) = delete;
  /// Closes all connections and removes the socket file. Not while a thread serves.
  ~CallServer();

  enum class Ended { kStopped, kInterrupted, kStoppedByCall, kForked };
  /// Serves until Stop, an interruption, or a call that says so. Blocks the calling thread; called
  /// with the host resumed, and returns so.
  Ended Serve(CallExecutor& executor);
  /// Serves on a thread that has a loop of its own: it calls Turn when fd() is readable, and after
  /// NextTurnMs() (-1: not before). Never blocks. Something: that is how it ended, and serving is
  /// over.
  std::optional<Ended> Turn(CallExecutor& executor);
  /// When the thread that calls Turn is about to wait: polls the last caller as Serve does
  /// (spin_policy.h). True: something came and was run, and it is to look at all its sockets,
  /// without waiting, and to ask again before it waits; or to call Turn where serving IsOver().
  bool Poll();
  bool IsOver() const { return CheckEnded().has_value(); }
  int fd() const { return epoll_.get(); }
  int NextTurnMs() const { return BlockLimitMs(false); }
  /// Any thread, also before Serve.
  void Stop();
  const std::string& path() const { return listener_->path(); }
  const CallLimits& limits() const { return limits_; }

 private:
  class Flusher;
  CallServer();
  std::optional<Ended> CheckEnded() const;
  std::optional<Ended> Handle(CallExecutor& executor, int most_ms, bool blocks);
  bool MustLook() const;
  std::optional<IoResult> SpinFor(CallerConnection& peer);
  void Accept(CallExecutor& executor);
  std::shared_ptr<CallerConnection> Admit(CallStream stream, CallExecutor& executor);
  void TakeFromDoor(CallExecutor& executor);
  void OnEvent(CallerConnection& peer, std::uint32_t events);
  void ReadAndRun(CallerConnection& peer);
  void RunRead(CallerConnection& peer, const IoResult& got);
  void RunBatch(CallerConnection& peer);
  void RunWhole(CallerConnection& peer);
  bool RunOne(CallerConnection& peer, const Frame& frame, std::size_t* unsent);
  bool Prepared(CallerConnection& peer, const Frame& frame);
  bool Refuse(CallerConnection& peer, const std::string& why);  // always false
  bool TakeControl(CallerConnection& peer, const Frame& frame);
  bool Greet(CallerConnection& peer, const CallControl& hello, const Frame& frame);
  void Lose(CallerConnection& peer);
  void Drop(CallerConnection& peer);
  void ExpireSessions();
  int BlockLimitMs(bool handles_signals) const;
  void EndAll(CallExecutor& executor, Ended ended);
  void ResumePaused();
  Flusher& flusher();

  const CallLimits limits_;
  const std::uint32_t generation_;
  GuardedFd epoll_;
  GuardedFd wake_;
  std::unique_ptr<CallListener> listener_;
  std::atomic<bool> stop_{false};
  bool stop_by_call_ = false;
  std::uint64_t next_peer_ = 16;
  std::map<std::uint64_t, std::shared_ptr<CallerConnection>> peers_;
  // callers that greeted, detached ones too
  SessionTable<std::shared_ptr<CallerConnection>> sessions_;
  std::shared_ptr<CallerConnection> hot_;  // the one that was read last: polled before blocking
  int polls_in_row_ = 0;                   // answered by polling in Serve, without a look at others
  SpinPolicy spin_;
  ByteBuffer reply_;
  Flusher* flusher_ = nullptr;  // deleted by the destructor, left alone in a forked child
};

}  // namespace troupe::actors
