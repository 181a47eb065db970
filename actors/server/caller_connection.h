// A caller as the actor's process sees it: its calls that were not run yet, and the replies it has
// not confirmed. When its connection ends it may come back with another one (actor_session.h).
//
// The serving thread alone reads and runs; replies may be added and flushed by any thread (a method
// that answers later, the flusher), under this object's mutex. Never blocks. Lives in a shared_ptr,
// because a deferred reply may outlive it; it is then dropped.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/core/call/byte_buffer.h"
#include "actors/core/call/call_control.h"
#include "actors/core/call/call_frame.h"
#include "actors/core/session/actor_session.h"
#include "actors/net/call_stream.h"
#include "actors/objects/object_store.h"
#include "actors/slots/waiter.h"
#include "runtime/base/mutex.h"

namespace troupe::actors {

class CallRunner;
class BulkSession;

class CallerConnection : public std::enable_shared_from_this<CallerConnection> {
 public:
  /// `epoll_fd` is where the connection is registered under `id`; `wake_fd` an eventfd that makes
  /// the serving thread look at paused peers. Both outlive the connection being open.
  CallerConnection(CallStream stream, std::uint64_t id, int epoll_fd, int wake_fd);
  ~CallerConnection();

  // Any thread:
  /// Queues the reply to `sequence`; `frame` is kFrameHeadBytes of room, then the body. Returns the
  /// unsent bytes.
  std::size_t Reply(std::uint64_t sequence, std::uint16_t flags, ByteBuffer& frame);
  /// Queues the reply to a call that was counted by Defer, and writes it if it is to (`flush`).
  void ReplyDeferred(std::uint64_t sequence, std::uint16_t flags, ByteBuffer& frame, bool flush);
  /// Before a reply with kFlagObjects: what is held until it is known to be received.
  void Keep(std::uint64_t sequence, std::shared_ptr<ResultHold> hold);
  /// Writes what the socket takes.
  void Flush();
  std::size_t Unsent();

  // The serving thread:
  void Defer() { running_.fetch_add(1, std::memory_order_relaxed); }
  std::size_t running() const { return running_.load(); }
  /// Stops or resumes being told of input.
  void Pause(bool paused);
  bool paused() const { return paused_.load(); }
  /// Reads once into in(); see IoOutcome.
  IoResult Read(const CallLimits& limits);
  ByteBuffer& in() { return in_; }
  /// Tells the session of words on calls that have been read and not been come to, as they came:
  /// of each once, however often it is looked.
  void ScanControls(const CallLimits& limits);
  /// The word that is next in in(), of so many bytes, is come to: the session is told of it, unless
  /// it was, and it is consumed.
  void TakeWord(const CallControl& control, std::size_t bytes);
  /// Within a call: reads on, for words on calls; waits for more if there is nothing and `host` is
  /// given.
  enum class Looked { kOn, kEnded, kInterrupted };
  Looked LookAhead(const CallLimits& limits, WaitHost* host);
  /// A last frame that says why, then the end.
  void Goodbye(std::string_view why);
  /// Ends the connection without a fault: serving ends.
  void EndSession();
  void Close();
  std::uint64_t id() const { return watched_.id; }
  std::string who() const { return stream_.Peer(); }
  /// The caller is on another host.
  bool away() const { return away_; }
  /// Returns the session for large values to and from a caller of another host that takes them;
  /// nullptr: any other caller, or no descriptor is left. Any thread.
  std::shared_ptr<BulkSession> Bulk();
  /// Parks the caller, whose next call waits for arguments: nothing of it runs until Unpark (any
  /// thread).
  void Park() { parked_.store(true); }
  void Unparked() { parked_.store(false); }
  void Unpark();
  bool parked() const { return parked_.load(); }
  const std::string& identity() const { return stream_.identity(); }

  /// False: not the next call of the session.
  bool TakeCall(const Frame& frame);
  /// The call was answered at once.
  void Told() { calls_.Told(); }
  std::uint64_t received() const { return calls_.received(); }
  /// False: of replies that were never sent.
  bool Acknowledge(std::uint64_t replies);
  /// Answers the hello that begins a session.
  void Welcome(const SessionId& id);
  /// The connection is gone, the caller may come back.
  void Detach();
  /// Resumes on the connection of `other`, which is closed with it; the caller has received
  /// `replies`. False: frames it misses are no longer kept; nothing has changed.
  bool Resume(CallerConnection& other, std::uint64_t replies);
  /// How much is kept for the caller: replies that it has not said it received.
  std::size_t KeptBytes();

  std::unique_ptr<CallRunner> session;
  std::optional<SessionId> session_id;  // once it greeted
  // The owner of a caller's objects, if it is on this host and takes some; set before its first
  // call
  ProcessId process;

 private:
  void TellSession(const CallControl& control);
  void NoteResultLocked(std::uint64_t sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FlushLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WatchLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// How the socket is known to the serving thread.
  struct Watched {
    std::uint64_t id;
    int epoll_fd;
    int wake_fd;
  };

  /// The serving thread reads it without the mutex, and exchanges it under that; others write to it
  /// under the mutex. TLS has a lock of its own.
  CallStream stream_;
  /// State of reading, used by the serving thread; the state of sending is under the mutex.
  ActorSession calls_;
  const Watched watched_;
  const bool away_;
  const std::string identity_;
  ByteBuffer in_;
  /// Words on calls, counted as they come.
  struct Words {
    std::uint64_t told = 0;   // the session was
    std::uint64_t taken = 0;  // and are in in_ no more; never more than were told of
  } words_;
  std::uint64_t heard_ = 0;  // how often LookAhead has read something
  std::atomic<std::size_t> running_{0};
  std::atomic<bool> paused_{false};
  std::atomic<bool> parked_{false};

  Mutex mutex_;
  struct KeptResult {
    std::uint64_t sequence = 0;
    std::uint64_t frame = 0;  // 0: the reply is not made yet
    std::shared_ptr<ResultHold> hold;
  };
  enum class State { kOpen, kDetached, kClosed };
  std::vector<KeptResult> kept_results_ ABSL_GUARDED_BY(mutex_);
  std::optional<SessionId> crosses_ ABSL_GUARDED_BY(mutex_);  // the session that may have a link
  std::shared_ptr<BulkSession> bulk_session_ ABSL_GUARDED_BY(mutex_);
  State state_ ABSL_GUARDED_BY(mutex_) = State::kOpen;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;  // nothing more can be written to this connection
  bool write_armed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe::actors
