// A connection from this process to one actor, on this host or another: frames out, answers in.
// Shared by all threads.
//
// Issue returns at once with an answer to come; nothing here blocks. Whoever leads the process's
// reactor calls Read; any thread may Flush. When the connection ends, the actor is reached anew and
// the session goes on (caller_session.h), calls waiting meanwhile. Where it cannot, outstanding
// calls stay pending, because an ended connection alone is not death: Fail (the control plane's
// verdict) or the end of the grace period answers them. Every call ends in exactly one of: the
// reply, the verdict's error, kNotSent (its frame never left whole) or kMaybeExecuted; which of the
// last three it is, CallFates decides (call_fates.h).
//
// Its parts hold no lock: what mutex_ guards says so, and stream_ says who may touch it. Lock
// order: a channel's mutex, then the reactor's. Neither is held while the GIL is taken or a thread
// blocks.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/caller/actor_route.h"
#include "actors/caller/call_observer.h"
#include "actors/caller/channel_stream.h"
#include "actors/caller/item_table.h"
#include "actors/caller/pending_target.h"
#include "actors/core/call/byte_buffer.h"
#include "actors/core/call/call_fates.h"
#include "actors/core/call/call_frame.h"
#include "actors/core/session/caller_session.h"
#include "actors/core/session/slot_ring.h"
#include "actors/net/call_stream.h"
#include "actors/net/call_tls.h"
#include "actors/objects/object_store.h"
#include "actors/slots/answer.h"
#include "actors/slots/item_stream.h"
#include "actors/slots/waiter.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace troupe::actors {

class PendingCalls;
class CallReactor;
class BulkSession;
class ArgumentCodec;

struct ChannelOptions {
  std::string description = "an actor";  // as errors name it, e.g. "actor Counter(1234)"
  /// From the loss of the connection: for reaching the actor anew, and then for a verdict on it.
  Duration grace = std::chrono::seconds(5);
  CallLimits limits;
  /// A call beyond this many without an answer is refused (kTooMany).
  std::size_t outstanding_max = std::numeric_limits<std::size_t>::max();
  /// True if the actor runs calls in the order they were made: then none overtakes one that waits
  /// for arguments.
  bool ordered = true;
  /// Set: all answers are given to it, not to those who wait.
  std::shared_ptr<CallObserver> observer;
};

class Channel final : public PendingTarget,
                      public RouteUser,
                      public std::enable_shared_from_this<Channel> {
 public:
  /// Connects (see UnixStream::Connect) and starts being read by `reactor`, which outlives it.
  static StatusOr<std::shared_ptr<Channel>> Connect(CallReactor& reactor, const std::string& path,
                                                    ChannelOptions options);
  /// Begins to reach an actor on another host (call_dial.h) and returns at once: calls wait in the
  /// channel meanwhile. Not reached within the grace period: they and later ones end as
  /// kNotSent.
  static StatusOr<std::shared_ptr<Channel>> Dial(CallReactor& reactor, RemoteActor target,
                                                 IdentitySource identity, ChannelOptions options);
  /// The channel to an actor that is not there yet: calls wait in it until Aim or AimRemote, once,
  /// or Fail.
  static StatusOr<std::shared_ptr<Channel>> Later(CallReactor& reactor, ChannelOptions options);
  /// Sets the actor's socket, on this host. An error: it cannot be reached, and all calls have
  /// ended with that.
  Status Aim(const std::string& path);
  /// Sets the actor's address on another host; see Dial.
  void AimRemote(RemoteActor target, IdentitySource identity);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  enum class Issued {
    kOk,       // the answer is to come
    kOkDrain,  // also sent, and the issuer should let replies be read (CallReactor::Drain)
    kFull,     // over the limits of CallerFlow: wait for WhenRoom, then try again
    kTooMany,  // outstanding_max calls have no answer
    kEnded,    // IssueInto alone: the connection is over
  };
  struct Call {
    Issued issued;
    AnswerRef answer;  // set by kOk and kOkDrain
  };
  /// Queues a call. `frame` starts with kFrameHeadBytes of room, then the body; it is sealed here.
  /// `items` gets what comes before the answer.
  Call Issue(ByteBuffer& frame, std::uint16_t flags, std::shared_ptr<ItemStream> items = nullptr);
  /// Queues a call whose answer its caller has made; for a channel with an observer.
  Issued IssueInto(ByteBuffer& frame, std::uint16_t flags, Answer* answer,
                   std::shared_ptr<ItemStream> items = nullptr);
  /// A call of the channel's line, with the answer that its caller has. It is taken whatever there
  /// is room for, and answered at once where the channel is over.
  void IssueKept(ByteBuffer& frame, std::uint16_t flags, Answer* answer,
                 std::shared_ptr<ItemStream> items) override;
  /// Returns the queue of calls that wait for their arguments; made when the first one does.
  /// `values` outlives the channel.
  PendingCalls& Line(const ArgumentCodec& values);
  /// Returns the queue made by Line; nullptr: no call had to wait.
  PendingCalls* line() const { return line_seen_.load(std::memory_order_acquire); }
  /// An answer that is done when the channel has room, or can never have; none: it has now.
  AnswerRef WhenRoom() override;
  /// An answer that is done when every call has its own, or the connection has ended; none: no call
  /// is outstanding now.
  AnswerRef WhenIdle();
  /// Returns the session for large values that a call names, unless the actor is on this host;
  /// nullptr: it is, or there is no descriptor left. Whether there is one is known before the call
  /// is issued.
  std::shared_ptr<BulkSession> Bulk() override;

  /// Says how many items of the call with this answer are taken, in all.
  void Taken(const Answer* answer, std::uint64_t items) override;
  /// Asks the actor to cancel the call and (`recursive`) the calls that it started. Nothing is
  /// promised: its answer comes in any case, if only to say that it was cancelled.
  void Cancel(const Answer* answer, bool recursive = false);
  /// Cancels, recursively, all calls without an answer that the call of that number made
  /// (Answer::started_by).
  void CancelStartedBy(std::uint64_t call);
  /// Writes what the socket takes. Any thread.
  void Flush() override;
  /// Reads what is there and answers slots. Only by who leads the reactor. True: there was
  /// something.
  bool Read();

  /// The verdict: all outstanding and all later calls end with this error.
  void Fail(ErrorCode code, const std::string& text);
  /// The verdict as an answer of any kind: its flags and its body.
  void FailWith(std::uint16_t flags, std::string_view body);
  /// The actor's process is gone, the actor may not be: what was sent ends as kMaybeExecuted, all
  /// else as kNotSent.
  void Lose(const std::string& why);
  /// Run once on the background thread when the connection ends for good; at once if it has.
  void OnDisconnect(std::unique_ptr<Completion> completion);
  /// Ends the connection from this side: outstanding calls end as kMaybeExecuted or kNotSent.
  void Close();
  /// Called by the reactor when the grace period is over.
  void GraceExpired();

  const std::string& description() const { return options_.description; }
  std::uint64_t id() const { return id_; }
  int fd() const { return stream_.fd(); }
  /// Calls without an answer, those of the line too.
  std::size_t Outstanding();
  /// Returns true if a further call is refused (kTooMany).
  bool TooMany() { return Outstanding() >= options_.outstanding_max; }
  /// Returns true if a call made now may still be answered by the actor.
  bool Usable() override;
  /// Returns the actor's place.
  Place place() const override { return place_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t kSequenceMask = (std::uint64_t{1} << 40) - 1;
  static std::uint64_t SequenceOf(const Answer* slot) { return slot->call() & kSequenceMask; }

  Channel(CallReactor& reactor, ChannelOptions options);

  // How it comes to its connection, and to another one (channel_reach.cc).
  bool WantsConnection() override;
  void Attach(CallStream stream) override;
  void GiveUp(const Status& why) override;
  void LoseActor() override;
  void Begin(const std::string& path, CallStream stream);
  void BeginLocked(CallStream stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool LoseLocked(const std::string& reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ExpectLocked(bool expect) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Calls out (channel.cc).
  AnswerRef NewSlotLocked(std::shared_ptr<ItemStream> items) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// A call with this slot, whatever there is room for. True: replies should be read.
  bool IssueLocked(ByteBuffer& frame, std::uint16_t flags, Answer* slot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Seals and queues the frame of the call that `slot` answers. True: replies should be read.
  bool QueueLocked(ByteBuffer& frame, std::uint16_t flags, Answer* slot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell(ControlKind kind, const Answer* answer, std::uint64_t count);
  void FlushLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ArmWritesLocked(bool on) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool FullLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoomLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::size_t OutstandingLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  AnswerRef AwaitRoomLocked(bool idle) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OpenRoomLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Answers in; of who leads the reactor (channel.cc, channel_results.cc).
  bool TakeReplies(std::string* why);
  bool TakeRepliesLocked(std::string* why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeReplyLocked(const Frame& frame, std::uint64_t* calls_received, std::string* why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeControlLocked(const Frame& frame, std::string* why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeItemLocked(const Frame& frame, std::string* why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeResultLocked(AnswerRef slot, const Frame& frame, std::string* why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeObservedResultLocked(AnswerRef slot, const Frame& frame, std::string* why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FillBadResult(Answer& slot, std::string* why);
  /// Finishes a filled slot: tells the threads that wait for it, or the observer.
  void FinishLocked(AnswerRef slot, std::uint64_t sequence, ObservedAnswer::Lost lost)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Values in memory (channel_objects.cc).
  ObjectStore::Took TakeObjectLocked(Answer* slot, std::string_view body, bool wanted,
                                     ObjectStore::Then then) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  BulkSession* BulkSessionLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginBulkSessionLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // How it ends (channel_end.cc).
  void EndLocked(std::string_view reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Tells every call that is left. `text` says why, where there is no verdict.
  void FailLocked(std::string_view text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  class LineEnds;
  void EndLineLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Tells those who wait for what was finished under the lock.
  void NotifyFinished(const AnswerList& finished, bool as_leader) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Tells the observer. Called only where answers are made or read: the observer may hold a lock
  /// of its own when it flushes.
  void TellObserver(bool as_leader) ABSL_LOCKS_EXCLUDED(mutex_);

  struct RoomWaiter {
    AnswerRef slot;
    bool idle;  // WhenIdle's
  };
  struct ReactorKnows {
    bool stranded = false;  // true if frames are unflushed
    bool expecting = false;  // true while a welcome is awaited
    bool writes = false;  // true if the socket is watched for writing
  };

  CallReactor& reactor_;
  const ChannelOptions options_;
  const std::uint64_t id_;
  std::atomic<Place> place_{Place::kUnknown};
  std::atomic<PendingCalls*> line_seen_{nullptr};
  ChannelStream stream_;  // says itself who may do what

  Mutex mutex_;
  ActorRoute route_ ABSL_GUARDED_BY(mutex_);
  CallFates fates_ ABSL_GUARDED_BY(mutex_);
  SlotRing<AnswerRef> ring_ ABSL_GUARDED_BY(mutex_);  // calls without an answer
  ItemTable items_ ABSL_GUARDED_BY(mutex_);
  CallerSession session_ ABSL_GUARDED_BY(mutex_);
  std::size_t unflushed_frames_ ABSL_GUARDED_BY(mutex_) = 0;
  ReactorKnows reactor_knows_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<BulkSession> bulk_session_ ABSL_GUARDED_BY(mutex_);  // once a large value came up
  std::shared_ptr<PendingCalls> line_ ABSL_GUARDED_BY(mutex_);  // once a call had to wait; set once
  std::vector<RoomWaiter> room_waiters_ ABSL_GUARDED_BY(mutex_);
  AnswerList finished_ ABSL_GUARDED_BY(mutex_);  // finished slots, with waiters to notify
  std::vector<ObservedAnswer> observed_ ABSL_GUARDED_BY(mutex_);  // for the observer
  std::unique_ptr<Completion> on_disconnect_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::actors
