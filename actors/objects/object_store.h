// The objects of this process, and its part in those of others on this host: runtime/store put to
// work.
//
// Values of kLargeBytes and more are written into this process's pool, named by object, and read by
// others where they lie: an argument names the object, its receiver registers with the owner (Hold)
// and maps the segment, whose descriptor comes over a link between the two processes once per
// segment. A large result is written by the actor and owned by its caller from the moment its reply
// is read. Whoever owns a value holds its segment's descriptor, so that a result outlives the
// actor, and whoever asks the owner gets it. Memory is written again only after every reader has
// let go cleanly (runtime/store).
//
// The store is the mutex, the reference table, the pool, and what is to be done once the mutex is
// free. What it decides by is in parts that take no lock: ObjectLinks (who is connected),
// SegmentMap (what is mapped), ObjectWaits (who waits for what), RemoteNames (what other hosts'
// objects are called here).
//
// One per process, made at its first use, never destroyed; a forked child gets another one, and
// what it inherited is inert. Thread-safe; nothing blocks but Begin (new memory) and Await. One
// thread of its own does the links. Lock order: a channel's or a peer's mutex, then this one's; the
// GIL is never taken with it held.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "actors/core/call/object_frame.h"
#include "actors/core/call/object_name.h"
#include "actors/core/remote/remote_names.h"
#include "actors/net/fork_guard.h"
#include "actors/objects/object_handles.h"
#include "actors/objects/object_links.h"
#include "actors/objects/object_list.h"
#include "actors/objects/object_poll.h"
#include "actors/objects/object_view.h"
#include "actors/objects/object_waits.h"
#include "actors/objects/remote_source.h"
#include "actors/objects/result_hold.h"
#include "actors/objects/segment_map.h"
#include "actors/slots/answer.h"
#include "actors/slots/completions.h"
#include "actors/slots/waiter.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/store/core/references.h"
#include "runtime/store/pool.h"

namespace troupe::actors {

/// Values from this size on are written to shared memory.
inline constexpr std::size_t kLargeBytes = 100u << 10;
/// Codes of this process alone, beyond those of the wire.
inline constexpr ErrorCode kObjectLost{101};
inline constexpr ErrorCode kOwnerDied{102};
/// The result of a call went with the process that made it, before it could be read: it came, and
/// has no value.
inline constexpr ErrorCode kResultLost{103};

class ObjectStore : private ObjectLinks::Events {
 public:
  /// nullptr: no descriptor or memory is left for one.
  static ObjectStore* Current();
  static ObjectStore* Existing();

  const ProcessId& self() const { return self_; }
  /// The finisher of answers in this process.
  Completions& completions() const { return completions_; }
  store::Pool& pool() { return pool_; }

  // -- values of this process --
  /// What was written becomes an object under that number, which this process never uses twice; the
  /// caller has its one handle. `contained`: the objects that the value names.
  store::ObjectId Put(const store::Writing& writing, std::uint64_t sequence,
                      std::vector<store::ObjectId> contained) ABSL_LOCKS_EXCLUDED(mutex_);
  /// The value that `slot` is about to be filled with becomes an object, which the slot stands for;
  /// of a slot that others know already, that object's. `writing`, or what travels in frames:
  /// `bytes`.
  store::ObjectId Provide(Answer* slot, const store::Writing* writing, std::string_view bytes,
                          const std::vector<store::ObjectId>& contained)
      ABSL_LOCKS_EXCLUDED(mutex_);
  /// The object that a slot is to other processes, with one more handle: the caller's. A pending
  /// one has its value when its slot has. Nothing: a forked child inherited it.
  std::optional<store::ObjectId> Export(Answer* slot) ABSL_LOCKS_EXCLUDED(mutex_);
  /// The slot of an object that is known here, by that name or as what came from another host under
  /// it; a pending one is answered when its value is there. Empty: it is not known here.
  /// `known_as`: what it is called in other processes, if that is another name.
  AnswerRef Borrow(const store::ObjectId& id, const store::ObjectId* known_as = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_);
  /// Borrow for each of many, in their order.
  std::vector<AnswerRef> BorrowAll(const std::vector<store::ObjectId>& ids)
      ABSL_LOCKS_EXCLUDED(mutex_);
  /// Returns the object that a slot stands for.
  std::optional<store::ObjectId> NameOf(const Answer* slot) ABSL_LOCKS_EXCLUDED(mutex_);
  void AddHandle(const store::ObjectId& id) ABSL_LOCKS_EXCLUDED(mutex_);
  /// False: it is not known here (any more).
  bool TryAddHandle(const store::ObjectId& id) ABSL_LOCKS_EXCLUDED(mutex_);
  bool Knows(const store::ObjectId& id) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Returns the objects that its value names.
  std::vector<store::ObjectId> Inside(const store::ObjectId& id) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Posts `then` once nobody holds the object of this process that the slot stands for. One that
  /// waits for that already is enough: `then` is left alone. False: no other process has ever known
  /// of it.
  bool WhenForgotten(const Answer* slot, std::unique_ptr<Completion>* then)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void DropHandles(const std::vector<store::ObjectId>& ids) ABSL_LOCKS_EXCLUDED(mutex_);
  /// An error is kObjectLost or kOwnerDied: it cannot be read here (any more).
  StatusOr<ObjectView> View(const store::ObjectId& id) ABSL_LOCKS_EXCLUDED(mutex_);

  // -- what came in a call --
  /// One handle of each, to be dropped; they are registered with their owners.
  void Receive(const ProcessId& lender, const std::vector<store::ObjectId>& ids)
      ABSL_LOCKS_EXCLUDED(mutex_);
  /// Until each of `values` can be read and each of `refs` is registered with its owner, or never
  /// can be; false: `most` passed first.
  bool Await(const std::vector<store::ObjectId>& values, const std::vector<store::ObjectId>& refs,
             Duration most) ABSL_LOCKS_EXCLUDED(mutex_);

  // -- results (those for callers on other hosts: bulk/remote_results.h) --
  /// A result for that caller that is large, or names the objects `contained`, as the body of its
  /// reply: with `writing`, or else `bytes`. An error: the caller is gone.
  StatusOr<std::shared_ptr<ResultHold>> LendResult(const store::Writing* writing,
                                                   std::string_view bytes,
                                                   const std::vector<store::ObjectId>& contained,
                                                   const ProcessId& owner, std::string* body)
      ABSL_LOCKS_EXCLUDED(mutex_);
  /// Returns the size of such a reply's value, wherever it is. Nothing: it is none.
  static std::optional<std::uint64_t> ResultBytes(std::string_view body);
  using Then = ResultThen;
  enum class Took { kDone, kLater, kBad };
  /// Takes such a reply for `slot`. kDone: the slot is filled and to be finished; kLater: this
  /// store does it, or fills it and posts `then`.
  Took TakeResult(Answer* slot, std::string_view body, Then then = {}) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Posts `then` once no result's memory is being fetched from some maker that one is fetched
  /// from: who waits for all of them looks again then. False: none is, and it is left alone.
  bool AfterArrivals(std::unique_ptr<Completion>* then) ABSL_LOCKS_EXCLUDED(mutex_);

  // -- references of other hosts (remote_refs.h) --
  /// So many more references are lent to processes of other hosts, or fewer.
  void NoteLentRemote(std::ptrdiff_t more) {
    lent_remote_.fetch_add(more, std::memory_order_relaxed);
  }
  /// Returns the object's name between hosts: its owner's, also where another one stands for it
  /// here.
  store::ObjectId RemoteNameOf(const store::ObjectId& id) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Returns the objects that a value names, by their names between hosts.
  std::vector<store::ObjectId> RemoteInsideOf(const store::ObjectId& name)
      ABSL_LOCKS_EXCLUDED(mutex_);
  /// All names of what a call names and of what the large values among it name.
  std::vector<store::ObjectId> RemoteNamesOf(const std::vector<store::ObjectId>& ids)
      ABSL_LOCKS_EXCLUDED(mutex_);
  /// The names between hosts at the front of a value become those of here.
  void NameAsHere(std::string* value) ABSL_LOCKS_EXCLUDED(mutex_);
  /// The object that stands here for what another host calls so, with one more handle. `*fresh`: it
  /// is new, and has its value when FulfilRemote or FailRemote says so; `source` is asked for it
  /// when somebody here asks.
  store::ObjectId TakeRemote(const store::ObjectId& name,
                             const std::shared_ptr<RemoteSource>& source, bool* fresh)
      ABSL_LOCKS_EXCLUDED(mutex_);
  /// The bytes that came for it, which are memory or are copied, and what they name.
  void FulfilRemote(const store::ObjectId& id, std::uint16_t flags, const store::Writing& writing,
                    const std::vector<store::ObjectId>& contained) ABSL_LOCKS_EXCLUDED(mutex_);
  void FailRemote(const store::ObjectId& id, ErrorCode code, std::string_view text)
      ABSL_LOCKS_EXCLUDED(mutex_);
  /// Notes that an object with this name between hosts is lent to a further process of another
  /// host, or to one less.
  void NoteLentOn(const store::ObjectId& name, bool lent) ABSL_LOCKS_EXCLUDED(mutex_);

  struct Figures {
    std::size_t owned = 0;  // without lives, like `borrowed`
    // Objects and lives of this process that others of this host hold, all that other hosts do.
    std::size_t lent = 0;
    std::size_t borrowed = 0;
    std::size_t lives = 0;   // this process's and others'
    std::size_t mapped = 0;  // segments of others
    std::size_t links = 0;
    store::Pool::Figures pool;
  };
  Figures figures() ABSL_LOCKS_EXCLUDED(mutex_);
  /// Lists the owned objects, then the borrowed ones, `most` of them at most. Values that lie in
  /// this process alone, as small results do until somebody else asks for them, are not objects and
  /// not listed.
  std::vector<ListedObject> List(std::size_t most) ABSL_LOCKS_EXCLUDED(mutex_);

  /// The slot of an exported object has its answer.
  void EndExported(const store::ObjectId& id, std::uint16_t flags, std::string_view bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // For forks.
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex_) { mutex_.Lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION(mutex_) { mutex_.Unlock(); }
  void Forked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { table_.Forked(); }
  void DropView(const store::ObjectId& id) ABSL_LOCKS_EXCLUDED(mutex_);
  std::uint32_t generation() const { return generation_; }

 private:
  /// An answer to be given once the lock is free.
  struct DueAnswer {
    AnswerRef slot;
    std::uint16_t flags = 0;
    std::string body;
    Then then;
    // Object that shares the slot's final value.
    std::optional<store::ObjectId> open;
  };
  /// Work to do once the lock is free.
  struct Afterwards {
    std::vector<DueAnswer> answers;
    std::vector<std::unique_ptr<Completion>> posts;
    bool changed = false;  // true if threads in Await must look again
    bool deadline_moved = false;  // the thread is to look when it is due
  };
  class Turn;

  ObjectStore(const ProcessId& self, GuardedFd listener, Completions& completions);
  static void Released(const Answer* slot);
  static void Asked(const Answer* slot);
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  int NextTimeoutMs() ABSL_LOCKS_EXCLUDED(mutex_);

  // ObjectLinks::Events, called back by links_, which is called with the mutex held.
  bool OnFrame(ObjectLink& link, const ObjectFrame& frame) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool OnControl(const ProcessId& peer, std::uint64_t connection,
                 const store::ReceivedFrame& received) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnDown(const ProcessId& peer) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnNothingFrom(const ProcessId& peer, const std::string& why) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<SegmentKey> WantedFrom(const ProcessId& peer) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Applies the effects that the table asks for.
  void ApplyLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ApplyOneLocked(const store::Effect& effect) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetLocked(const store::ObjectId& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Segments.
  std::shared_ptr<ObjectMapping> MappingLocked(const store::ObjectId& id, const store::Location& at)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<ObjectMapping> OwnMappingLocked(const SegmentKey& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WantLocked(const SegmentKey& key, const ProcessId& from)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MapLocked(const SegmentKey& key, GuardedFd descriptor, std::uint64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MissLocked(const SegmentKey& key, const std::string& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveLocked(ObjectLink& link, const SegmentKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RetireLocked(const SegmentKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Slots, and results that arrive.
  void NoteLocked(Answer* slot, const store::ObjectId& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<store::ObjectId> ObjectOfLocked(const Answer* slot) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  AnswerRef BorrowLocked(const store::ObjectId& name, const store::ObjectId* known_as, Instant now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool SightedLocked(const store::ObjectId& id, std::uint16_t* flags, std::string* body)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AnswerBorrowedLocked(const store::ObjectId& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AnswerBorrowedOfLocked(const SegmentKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool SettledLocked(const store::ObjectId& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool RegisteredLocked(const store::ObjectId& id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishArrivedLocked(const SegmentKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AnswerLostLocked(ArrivingResult& arriving, const std::string& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndArrivalsLocked(const ProcessId& maker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Stand-ins for objects of other hosts.
  store::ObjectId HereLocked(const store::ObjectId& name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<store::ObjectId> InsideLocked(const store::ObjectId& id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RouseLocked(const store::ObjectId& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellLentOnLocked(RemoteNames::Tell whom, const store::ObjectId& id, bool lent)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteBorrowedLocked(const store::ObjectId& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HoldLentOnLocked(const ProcessId& borrower, const store::ObjectId& id, bool lent)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ProcessId self_;
  Completions& completions_;
  const std::uint32_t generation_;
  ObjectPoll poll_;   // thread-safe
  store::Pool pool_;  // thread-safe
  std::atomic<std::ptrdiff_t> lent_remote_{0};

  Mutex mutex_;
  CondVar changed_;  // `changes_` has
  std::uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  Afterwards afterwards_ ABSL_GUARDED_BY(mutex_);
  store::References table_ ABSL_GUARDED_BY(mutex_);
  SegmentMap segments_ ABSL_GUARDED_BY(mutex_);
  ObjectWaits waits_ ABSL_GUARDED_BY(mutex_);
  RemoteNames names_ ABSL_GUARDED_BY(mutex_);
  // Sources of the values of stand-ins for objects of other hosts.
  std::map<store::ObjectId, std::shared_ptr<RemoteSource>> sources_ ABSL_GUARDED_BY(mutex_);
  ObjectLinks links_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::actors
