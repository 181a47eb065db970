// One connection from this process to one actor, on this host or another: frames out, answers in.
// Shared by all threads.
//
// Issue returns at once with a Slot that is answered later; nothing here blocks. Whoever leads the
// process's reactor calls Read; any thread may Flush. When the connection ends, the actor is reached
// anew and the session goes on (caller_session.h), calls waiting meanwhile. Where it cannot,
// outstanding calls stay pending, because an ended connection alone is not death: Fail (the control
// plane's verdict) or the end of the grace period answers them. Every call ends in exactly one of: the
// reply, the verdict's error, kNotSent (its frame never left whole) or kMaybeExecuted.
//
// Lock order: a channel's mutex, then the reactor's. Neither is held while the GIL is taken or a
// thread blocks.
#pragma once

#include <absl/container/inlined_vector.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/byte_buffer.h"
#include "actors/call_frame.h"
#include "actors/call_stream.h"
#include "actors/call_tls.h"
#include "actors/caller_session.h"
#include "actors/redial_rule.h"
#include "actors/slot.h"
#include "actors/slot_ring.h"
#include "actors/waiter.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace troupe::actors {

class CallReactor;

struct ChannelOptions {
  std::string description = "an actor";  // as errors name it, e.g. "actor Counter(1234)"
  /// From the loss of the connection: for reaching the actor anew, and then for a verdict on it.
  Duration grace = std::chrono::seconds(5);
  CallLimits limits;
};

class Channel : public std::enable_shared_from_this<Channel> {
 public:
  /// Connects (see UnixStream::Connect) and starts being read by `reactor`, which outlives it.
  static StatusOr<std::shared_ptr<Channel>> Connect(CallReactor& reactor, const std::string& path,
                                                    ChannelOptions options);
  /// Begins to reach an actor on another host (call_dial.h) and returns at once: calls wait in the
  /// channel meanwhile. Not reached within the grace period: they end as kNotSent, later ones as
  /// kActorUnavailable.
  static StatusOr<std::shared_ptr<Channel>> Dial(CallReactor& reactor, RemoteActor target,
                                                 IdentitySource identity, ChannelOptions options);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  enum class Issued {
    kOk,       // `*answer` is set
    kOkDrain,  // the same, and the issuer should let replies be read (CallReactor::Drain)
    kFull,     // over the limits of CallerFlow: wait for WhenRoom, then try again
  };
  /// Queues a call. `frame` starts with kFrameHeadBytes of room, then the body; it is sealed here.
  /// `*answer` comes with one reference for the caller.
  Issued Issue(ByteBuffer& frame, std::uint16_t flags, Slot** answer);
  /// A slot that is done when the channel has room, or can never have; nullptr: it has now. One
  /// reference for the caller.
  Slot* WhenRoom();

  /// Writes what the socket takes. Any thread.
  void Flush();
  /// Reads what is there and answers slots. Only by who leads the reactor. True: there was
  /// something.
  bool Read();

  /// The verdict: all outstanding and all later calls end with this error.
  void Fail(ErrorCode code, const std::string& text);
  /// Run once on the background thread when the connection ends for good; at once if it has.
  void OnDisconnect(std::unique_ptr<Completion> completion);
  /// Ends the connection from this side: outstanding calls end as kMaybeExecuted or kNotSent.
  void Close();
  /// Called by the reactor when the grace period is over.
  void GraceExpired();

  const std::string& description() const { return options_.description; }
  std::uint64_t id() const { return id_; }
  int fd() const { return stream_.fd(); }
  std::size_t Outstanding();

 private:
  friend class CallReactor;
  /// Usually one: what a blocked thread waits for.
  using SlotList = absl::InlinedVector<Slot*, 8>;
  enum class State { kOpen, kEnded, kFailed };

  /// Where the actor is: a socket on this host, or a process on another one.
  struct Way {
    std::string unix_path;
    RemoteActor target;
    IdentitySource identity;
    bool here() const { return !unix_path.empty(); }
  };
  class Redial;

  Channel(CallReactor& reactor, ChannelOptions options, Way way);
  static async::Task<void> Reach(std::weak_ptr<Channel> channel, RedialRule::Step step);
  void ReachHere();
  void Attach(CallStream stream);
  void BeginLocked(CallStream stream);
  void GiveUp(const Status& why);
  bool LoseLocked(const std::string& reason);
  void ExpectLocked(bool expect);
  void FlushLocked();
  void EndLocked(std::string reason);
  void FailLocked(ErrorCode code_if_sent, ErrorCode code_if_unsent, const std::string& text);
  void OpenRoomLocked();
  bool HasRoomLocked() const;
  bool TakeReplies(std::string* why);
  bool TakeReply(const Frame& frame, std::uint64_t* calls_received, std::string* why);
  bool TakeControl(const Frame& frame, std::string* why);
  static void Answer(Slot* slot, ErrorCode code, std::string_view text);
  /// Tells those who wait for slots finished under the lock; after it is released.
  void NotifyFinished(const SlotList& finished, bool as_leader);

  CallReactor& reactor_;
  const ChannelOptions options_;
  const std::uint64_t id_;
  const Way way_;
  /// Set with `mutex_` held and before attached_; then the leader's to read, the mutex's to write.
  CallStream stream_;
  std::atomic<bool> attached_{false};

  std::mutex mutex_;
  State state_ = State::kOpen;
  SlotRing<Slot*> ring_;
  CallerSession session_;
  RedialRule redial_;
  std::size_t unflushed_frames_ = 0;
  std::uint64_t written_ = 0;   // once ended: bytes of the session that a socket took
  bool broken_ = false;         // nothing more can be written to this connection
  bool expecting_ = false;      // the reactor knows that a welcome is awaited
  std::string lost_reason_;     // why the last connection ended
  bool stranded_ = false;       // the reactor knows of unflushed frames
  bool write_armed_ = false;
  std::vector<Slot*> room_waiters_;
  SlotList finished_;  // done, with waiters to notify once the lock is released
  std::unique_ptr<Completion> on_disconnect_;
  std::string end_reason_;
  ErrorCode verdict_ = ErrorCode::kNone;
  std::string verdict_text_;

  ByteBuffer in_;  // the leader's alone
};

}  // namespace troupe::actors
