// The objects of this process, and its part in those of others on this host: runtime/store put to work.
//
// Values of kLargeBytes and more are written into this process's pool, named by object, and read by
// others where they lie: an argument names the object, its receiver registers with the owner (Hold) and
// maps the segment, whose descriptor comes over a link between the two processes once per segment. A
// large result is written by the actor and owned by its caller from the moment its reply is read. Whoever
// owns a value holds its segment's descriptor, so that a result outlives the actor, and whoever asks the
// owner gets it. Memory is written again only after every reader has let go cleanly (runtime/store).
//
// One per process, made at its first use, never destroyed; a forked child gets another one, and what it
// inherited is inert. Thread-safe; nothing blocks but Begin (new memory) and Await. One thread of its own
// does the links. Lock order: a channel's or a peer's mutex, then this one's; the GIL is never taken with
// it held.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "actors/net/fork_guard.h"
#include "actors/core/call/object_frame.h"
#include "actors/core/call/object_name.h"
#include "actors/objects/object_handles.h"
#include "actors/objects/object_link.h"
#include "actors/objects/object_list.h"
#include "actors/slots/answer.h"
#include "actors/slots/completions.h"
#include "actors/slots/waiter.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/store/core/references.h"
#include "runtime/store/pool.h"
#include "runtime/store/reading.h"

namespace troupe::actors {

/// Values from this size on are written to shared memory.
inline constexpr std::size_t kLargeBytes = 100u << 10;
/// Codes of this process alone, beyond those of the wire.
inline constexpr ErrorCode kObjectLost{101};
inline constexpr ErrorCode kOwnerDied{102};
/// The result of a call went with the process that made it, before it could be read: it came, and has no value.
inline constexpr ErrorCode kResultLost{103};

class BulkSession;
class ObjectStore;

/// Where an object's value is that came, by name, from another host. Called with the store's lock held: it takes no
/// lock but its own, and returns at once.
class RemoteSource {
 public:
  virtual ~RemoteSource() = default;
  /// Somebody asks for the value. `number`: of the object here.
  virtual void Want(const store::ObjectId& name, std::uint64_t number) = 0;
  /// Nobody holds it here any more.
  virtual void LetGo(const store::ObjectId& name, std::uint64_t number) = 0;
  /// It is a life, and others have it from this process, or do no more.
  virtual void LentOn(const store::ObjectId& name, std::uint64_t number, bool lent) = 0;
};

/// A segment that is mapped here.
struct ObjectMapping {
  GuardedFd descriptor;
  store::Reading reading;
  std::uint64_t bytes = 0;
};

/// An object that is being read: its memory stays as it is while this lives. Move-only.
class ObjectView {
 public:
  ObjectView() = default;
  ObjectView(ObjectView&& other) noexcept { *this = std::move(other); }
  ObjectView& operator=(ObjectView&& other) noexcept;
  ~ObjectView();

  std::string_view bytes() const { return bytes_; }
  /// The same bytes over a mapping of the caller's own, which may be written to: what is written stays
  /// there.
  StatusOr<store::Reading> Private(char** at) const;

 private:
  friend class ObjectStore;
  ObjectStore* store_ = nullptr;
  std::uint32_t generation_ = 0;
  store::ObjectId id_;
  store::Location location_;
  std::shared_ptr<ObjectMapping> mapping_;
  std::string_view bytes_;
};

/// What keeps a large result in its maker until the reply with it is known to be received. Destroyed
/// without that: the reply will not be sent again, and its memory is given up.
class ResultHold {
 public:
  explicit ResultHold(std::function<void()> lost) : lost_(std::move(lost)) {}
  ~ResultHold() {
    if (lost_) lost_();
  }
  ResultHold(const ResultHold&) = delete;
  ResultHold& operator=(const ResultHold&) = delete;
  void Delivered() { lost_ = nullptr; }

 private:
  std::function<void()> lost_;
};

/// What is posted once a result is here, or never will be. `fills_only`: that one finishes the slot.
struct ResultThen {
  std::unique_ptr<Completion> run;
  bool fills_only = false;
};

class ObjectStore {
 public:
  /// nullptr: no descriptor or memory is left for one.
  static ObjectStore* Current();
  static ObjectStore* Existing();

  const ProcessId& self() const { return self_; }
  /// Who finishes answers in this process.
  Completions& completions() const { return completions_; }
  store::Pool& pool() { return pool_; }

  // -- values of this process --
  /// What was written becomes an object under that number, which this process never uses twice; the caller
  /// has its one handle. `contained`: the objects that the value names.
  store::ObjectId Put(const store::Writing& writing, std::uint64_t sequence,
                      std::vector<store::ObjectId> contained);
  /// The value that `slot` is about to be filled with becomes an object, which the slot stands for; of a slot that
  /// others know already, that object's. `writing`, or what travels in frames: `bytes`.
  store::ObjectId Provide(Slot* slot, const store::Writing* writing, std::string_view bytes,
                          const std::vector<store::ObjectId>& contained);
  /// The object that a slot is to other processes, with one more handle: the caller's. A pending one has its value
  /// when its slot has. Nothing: a forked child inherited it.
  std::optional<store::ObjectId> Export(Slot* slot);
  /// The slot of an object that is known here, by that name or as what came from another host under it; a pending one
  /// is answered when its value is there. One reference for the caller. nullptr: it is not known here. `known_as`: what
  /// it is called in other processes, if that is another name.
  Slot* Borrow(const store::ObjectId& id, const store::ObjectId* known_as = nullptr);
  /// The same of many.
  std::vector<Slot*> BorrowAll(const std::vector<store::ObjectId>& ids);
  /// What a slot stands for.
  std::optional<store::ObjectId> NameOf(const Slot* slot);
  void AddHandle(const store::ObjectId& id);
  /// False: it is not known here (any more).
  bool TryAddHandle(const store::ObjectId& id);
  bool Knows(const store::ObjectId& id);
  /// What its value names.
  std::vector<store::ObjectId> Inside(const store::ObjectId& id);
  /// Posts `then` once nobody holds the object of this process that the slot stands for. One that waits for the same
  /// object already is enough: `then` is left alone. False: no other process has ever known of it.
  bool WhenForgotten(const Slot* slot, std::unique_ptr<Completion>* then);
  void DropHandles(const std::vector<store::ObjectId>& ids);
  /// An error is kObjectLost or kOwnerDied: it cannot be read here (any more).
  StatusOr<ObjectView> View(const store::ObjectId& id);

  // -- what came in a call --
  /// One handle of each, to be dropped; they are registered with their owners.
  void Receive(const ProcessId& lender, const std::vector<store::ObjectId>& ids);
  /// Until each of `values` can be read and each of `refs` is registered with its owner, or never can be; false:
  /// `most` passed first.
  bool Await(const std::vector<store::ObjectId>& values, const std::vector<store::ObjectId>& refs,
             Duration most);

  // -- results --
  /// A result for that caller that is large, or names the objects `contained`, as the body of its reply: with
  /// `writing`, or else `bytes`. An error: the caller is gone.
  StatusOr<std::shared_ptr<ResultHold>> LendResult(const store::Writing* writing, std::string_view bytes,
                                                   const std::vector<store::ObjectId>& contained,
                                                   const ProcessId& owner, std::string* body);
  /// What the value of such a reply takes, wherever it is. Nothing: it is none.
  static std::optional<std::uint64_t> ResultBytes(std::string_view body);
  using Then = ResultThen;
  enum class Took { kDone, kLater, kBad };
  /// Such a reply has come for `slot`. kDone: the slot is filled and to be finished; kLater: this store does it, or
  /// fills it and posts `then`.
  Took TakeResult(Slot* slot, std::string_view body, Then then = {});
  /// Posts `then` once no result's memory is being fetched from some maker that one is fetched from: who waits for all
  /// of them looks again then. False: none is, and it is left alone.
  bool AfterArrivals(std::unique_ptr<Completion>* then);
  /// Both for a caller on another host, which gets it over the session's link (bulk_session.h); `contained` is taken over.
  std::shared_ptr<ResultHold> OfferResult(const store::Writing* writing, std::string_view bytes, Handles contained,
                                          const std::shared_ptr<BulkSession>& bulk_session, std::string* body);
  /// `wanted`: somebody may read it; else its maker is told that nobody does.
  Took TakeRemoteResult(Slot* slot, std::string_view body, const std::shared_ptr<BulkSession>& bulk_session, bool wanted,
                      Then then = {});
  /// So many more references are lent to processes of other hosts, or fewer.
  void NoteLentRemote(std::ptrdiff_t more) { lent_remote_.fetch_add(more, std::memory_order_relaxed); }

  // -- references of other hosts (remote_refs.h) --
  /// What an object is called between hosts: by its owner's name, also where another one stands for it here.
  store::ObjectId RemoteNameOf(const store::ObjectId& id);
  /// The same of what a value names, and of all that a call does with what the large values among it name.
  std::vector<store::ObjectId> RemoteInsideOf(const store::ObjectId& name);
  std::vector<store::ObjectId> RemoteNamesOf(const std::vector<store::ObjectId>& ids);
  /// The object that stands here for what another host calls so, with one more handle. `*fresh`: it is new, and has its
  /// value when FulfilRemote or FailRemote says so; `source` is asked for it when somebody here asks.
  store::ObjectId TakeRemote(const store::ObjectId& name, const std::shared_ptr<RemoteSource>& source, bool* fresh);
  /// The bytes that came for it, which are memory or are copied, and what they name.
  void FulfilRemote(const store::ObjectId& id, std::uint16_t flags, const store::Writing& writing,
                  const std::vector<store::ObjectId>& contained);
  void FailRemote(const store::ObjectId& id, ErrorCode code, std::string_view text);
  /// What another host calls so is lent to one more process of another host, or one less.
  void NoteLentOn(const store::ObjectId& name, bool lent);

  struct Figures {
    std::size_t owned = 0;  // without lives, like `borrowed`
    std::size_t lent = 0;   // objects and lives of this process that others of this host hold, all that other hosts do
    std::size_t borrowed = 0;
    std::size_t lives = 0;  // of this process and of others
    std::size_t mapped = 0;  // segments of others
    std::size_t links = 0;
    store::Pool::Figures pool;
  };
  Figures figures();
  /// What this process owns, then what it borrows, `most` of them at most. Values that lie in this process alone, as small
  /// results do until somebody else asks for them, are not objects and not listed.
  std::vector<ListedObject> List(std::size_t most);

  /// The slot of an exported object has its answer.
  void EndExported(const store::ObjectId& id, std::uint16_t flags, std::string_view bytes);

  // For forks.
  void Lock() { mutex_.lock(); }
  void Unlock() { mutex_.unlock(); }
  void Forked() { table_.Forked(); }
  void DropView(const store::ObjectId& id);
  std::uint32_t generation() const { return generation_; }

 private:
  using Key = std::pair<ProcessId, std::uint32_t>;  // maker, segment
  struct Arriving {
    Slot* slot;  // one reference
    store::Location location;
    std::vector<store::Handed> contained;
    Then then;
  };
  /// An answer to be given once the lock is released.
  struct Answer {
    Slot* slot;  // one reference, given back then
    std::uint16_t flags;
    std::string body;
    Then then;
    std::optional<store::ObjectId> open;  // what the slot will be in the end is this object's value too
  };
  class Turn;
  /// An object that stands for one of another host.
  struct Proxy {
    store::ObjectId name;
    std::shared_ptr<RemoteSource> source;
    bool asleep = true;  // nobody has asked for its value
    bool lost = false;
  };

  ObjectStore(const ProcessId& self, GuardedFd listener, Completions& completions);
  static void Released(const Slot* slot);
  static void Asked(const Slot* slot);
  void Run();

  // All with the mutex held:
  void Note(Slot* slot, const store::ObjectId& id);
  std::optional<store::ObjectId> ObjectOf(const Slot* slot) const;
  Slot* BorrowOne(const store::ObjectId& name, const store::ObjectId* known_as, Instant now);
  store::ObjectId Here(const store::ObjectId& name) const;
  store::ObjectId RemoteName(const store::ObjectId& id) const;
  std::vector<store::ObjectId> InsideOf(const store::ObjectId& id) const;
  void FinishRemote(Slot* slot, const store::Writing* writing, std::string value,
                  const std::vector<store::ObjectId>& contained, Then& then);
  void Rouse(const store::ObjectId& id);
  void ForgetRemote(const store::ObjectId& id);
  void CountLentOn(const store::ObjectId& id, bool lent);
  void NoteBorrowed(const store::ObjectId& id);
  void HoldLentOn(const ProcessId& borrower, const store::ObjectId& id, bool lent);
  void Apply();
  void ApplyOne(const store::Effect& effect);
  void CloseSegments();
  void Retire(const Key& key);
  bool Settled(const store::ObjectId& id);
  bool Registered(const store::ObjectId& id) const;
  bool Sighted(const store::ObjectId& id, std::uint16_t* flags, std::string* body);
  void AnswerBorrowed(const store::ObjectId& id);
  void AnswerBorrowedOf(const Key& key);
  std::shared_ptr<ObjectMapping> MappingOf(const store::ObjectId& id, const store::Location& at);
  std::shared_ptr<ObjectMapping> OwnMapping(std::uint32_t segment);
  void Want(const Key& key, const ProcessId& from);
  void Map(const Key& key, GuardedFd descriptor, std::uint64_t bytes);
  void MissAllFrom(const ProcessId& peer, const std::string& why);
  void ForgetMaker(const ProcessId& maker);
  void Missing(const Key& key, const std::string& why);
  void FinishArrived(const Key& key);
  void AnswerLost(Arriving& arriving, const std::string& why);
  bool Arrives(const ProcessId& maker) const;
  void EndArrivals(const ProcessId& maker);

  void EnsureLink(const ProcessId& peer);
  void FlushAll();
  ObjectLink* LinkTo(const ProcessId& peer);
  void Accept();
  void AddLink(GuardedFd fd, bool dialled, const ProcessId& peer, std::uint64_t stamp);
  void OnReadable(ObjectLink& link);
  bool TakeFrames(ObjectLink& link);
  bool TakeFrame(ObjectLink& link, const ObjectFrame& frame);
  bool Greet(ObjectLink& link, const ObjectFrame& hello);
  void Give(ObjectLink& link, const ObjectFrame& want);
  void FlushLink(ObjectLink& link);
  void CloseLink(std::uint64_t id);
  std::string HelloTo(const ProcessId& peer, std::uint64_t stamp) const;
  void RunDue(Instant now);
  int NextTimeoutMs();

  const ProcessId self_;
  Completions& completions_;
  const std::uint32_t generation_;
  GuardedFd listener_;
  GuardedFd epoll_;
  GuardedFd wake_;
  store::Pool pool_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<std::ptrdiff_t> lent_remote_{0};
  store::References table_;
  boost::unordered_flat_map<store::ObjectId, Slot*, store::ObjectIdHash> slot_of_;  // where one lives, no reference
  std::multimap<store::ObjectId, Slot*> borrowing_;   // slots to be answered, no reference
  std::multimap<Key, store::ObjectId> borrowing_of_;  // those whose memory is fetched
  std::map<Key, std::shared_ptr<ObjectMapping>> mapped_;                   // kept for the next value there
  std::map<Key, std::weak_ptr<ObjectMapping>> known_;                      // all that are mapped here
  std::map<store::ObjectId, std::shared_ptr<ObjectMapping>> pinned_;       // what objects here lie in
  std::map<Key, ProcessId> wanted_;                                        // whom it was asked of
  std::map<Key, std::string> missing_;                                     // whom nobody has any more, and why
  std::map<store::ObjectId, std::unique_ptr<Completion>> when_forgotten_;  // of this process's objects
  std::multimap<Key, Arriving> arriving_;                                  // replies whose memory is fetched
  std::multimap<ProcessId, std::unique_ptr<Completion>> after_arrivals_;   // by maker
  std::map<store::ObjectId, Proxy> proxies_;               // by what stands for them here
  std::map<store::ObjectId, store::ObjectId> known_as_;    // between hosts, of what has another name here
  std::map<store::ObjectId, store::ObjectId> here_;        // the other way round
  std::map<store::ObjectId, std::size_t> lent_on_;         // lives of others: how often
  std::set<store::ObjectId> lent_beside_;                  // those among them that processes of this host borrow
  std::set<std::pair<ProcessId, store::ObjectId>> held_lent_on_;  // lives of this process, by who lent them on
  std::map<std::uint64_t, std::unique_ptr<ObjectLink>> links_;
  std::map<ProcessId, std::uint64_t> link_of_;
  std::map<ProcessId, Instant> dial_again_;
  std::set<std::uint64_t> unflushed_;
  std::vector<std::uint64_t> over_;
  std::uint64_t next_link_ = 16;  // below: the listener and the wake-up
  std::uint64_t connections_ = 0;
  std::map<ProcessId, std::uint64_t> connections_of_;
  std::uint64_t changes_ = 0;  // somebody who waits may look
  bool woken_ = false;
  bool deadline_moved_ = false;
  std::vector<Answer> answers_;
  std::vector<std::unique_ptr<Completion>> posts_;  // likewise
  std::thread thread_;
};

}  // namespace troupe::actors
