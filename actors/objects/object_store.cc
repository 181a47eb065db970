#include "actors/objects/object_store.h"

#include <errno.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>

#include "actors/objects/object_memory.h"
#include "actors/objects/object_turn.h"
#include "actors/slots/completions.h"
#include "runtime/async/os_random.h"
#include "runtime/base/signals_blocked.h"

namespace troupe::actors {
namespace {

constexpr int kTrimEveryMs = 10000;

std::atomic<ObjectStore*> the_store{nullptr};
Mutex making_store;

Status Lost(const std::string& why) { return MakeError(kObjectLost, "the object is lost: " + why); }

// Around a fork the table is at rest, and what is mapped then may be read for ever. The lock is
// taken in one handler and given back in another.
void BeforeFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  if (ObjectStore* store = ObjectStore::Existing()) store->Lock();
}
void AfterForkHere() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  ObjectStore* store = ObjectStore::Existing();
  if (store == nullptr) return;
  store->Forked();
  store->Unlock();
}

}  // namespace

// ---- the store's life -------------------------------------------------------------------------

ObjectStore* ObjectStore::Existing() {
  ObjectStore* store = the_store.load(std::memory_order_acquire);
  return store != nullptr && store->generation_ == ForkGuard::generation() ? store : nullptr;
}

ObjectStore* ObjectStore::Current() {
  if (ObjectStore* store = Existing()) return store;
  Completions& completions = Completions::Current();  // installs the ForkGuard
  const MutexLock lock(making_store);
  if (ObjectStore* store = Existing()) return store;
  async::OsRandom random;
  // A Ref's hex() begins with the reactor's incarnation, an object's name with its owner's first
  // half.
  const std::uint64_t high = std::strtoull(completions.incarnation().c_str(), nullptr, 16);
  const ProcessId self(high, random.Next() | 1);
  StatusOr<GuardedFd> listener = ObjectLink::Listen(self);
  if (!listener.ok()) return nullptr;
  auto* store = new ObjectStore(self, *std::move(listener), completions);
  if (!store->poll_.valid()) {
    delete store;
    return nullptr;
  }
  static const int installed = pthread_atfork(&BeforeFork, &AfterForkHere, nullptr);
  (void)installed;
  Answer::SetReleaseHook(&ObjectStore::Released);
  Answer::SetAskHook(&ObjectStore::Asked);
  the_store.store(store, std::memory_order_release);
  const SignalsBlocked blocked;
  const MutexLock beginning(store->mutex_);  // others look which thread it is
  store->thread_ = std::thread([store] { store->Run(); });
  return store;
}

ObjectStore::ObjectStore(const ProcessId& self, GuardedFd listener, Completions& completions)
    : self_(self),
      completions_(completions),
      generation_(ForkGuard::generation()),
      pool_(self, NodeId(), ObjectMemoryOptions()),
      table_(self),
      segments_(self),
      names_(self),
      links_(self, std::move(listener), poll_, table_, *this) {}

ObjectStore::Turn::~Turn() {
  store_.ApplyLocked();
  Afterwards after = std::exchange(store_.afterwards_, Afterwards());
  if (after.changed) ++store_.changes_;
  const bool moved = store_.links_.TakeMoved() || after.deadline_moved;
  const bool wake = moved && store_.thread_.get_id() != std::this_thread::get_id();
  store_.mutex_.Unlock();
  if (after.changed) store_.changed_.NotifyAll();
  if (wake) store_.poll_.Wake();
  for (DueAnswer& each : after.answers) {
    DueAnswer answer = std::move(each);  // the slot may end with this
    Answer* const slot = answer.slot.get();
    if (answer.open) {
      static_cast<void>(store_.completions_.OnDone(slot, EndOf(store_, slot, *answer.open)));
    }
    Conclude(store_.completions_, slot, answer.flags, answer.body, answer.then);
  }
  for (std::unique_ptr<Completion>& post : after.posts) store_.completions_.Post(std::move(post));
}

// ---- the thread -------------------------------------------------------------------------------

int ObjectStore::NextTimeoutMs() {
  const Turn turn(*this);
  std::optional<Instant> next = table_.NextDeadline();
  const std::optional<Instant> dial = links_.NextDial();
  if (dial && (!next || *dial < *next)) next = dial;
  if (!next) return pool_.OverHalf() ? kTrimEveryMs : -1;
  const std::int64_t left = Millis(*next - Instant(turn.now)) + 1;
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, kTrimEveryMs));
}

void ObjectStore::Run() {
  pthread_setname_np(pthread_self(), "troupe-objects");
  epoll_event events[64];
  while (true) {
    const int count = poll_.Wait(events, 64, NextTimeoutMs());
    if (count < 0 && errno != EINTR) return;
    const Turn turn(*this);
    for (int i = 0; i < count; ++i) links_.OnEvent(events[i]);
    const Instant now = turn.now;
    const std::optional<Instant> deadline = table_.NextDeadline();
    if (deadline && *deadline <= now) table_.Expire(now);
    links_.DialDue(now);
    pool_.Trim(now);
  }
}

// ---- values -----------------------------------------------------------------------------------

store::ObjectId ObjectStore::Put(const store::Writing& writing, std::uint64_t sequence,
                                 std::vector<store::ObjectId> contained) {
  Turn turn(*this);
  return table_.PutAs(sequence, store::Value::At(pool_.Lend(writing, self_)), std::move(contained),
                      turn.now);
}

void ObjectStore::AddHandle(const store::ObjectId& id) {
  Turn turn(*this);
  table_.AddHandle(id);
}

bool ObjectStore::TryAddHandle(const store::ObjectId& id) {
  Turn turn(*this);
  return table_.AddHandle(id);
}

bool ObjectStore::Knows(const store::ObjectId& id) {
  Turn turn(*this);
  return table_.Knows(id);
}

void ObjectStore::DropHandles(const std::vector<store::ObjectId>& ids) {
  Turn turn(*this);
  for (const store::ObjectId& id : ids) table_.DropHandle(id, turn.now);
}

void Handles::Clear() {
  // A forked child without a store inherited the handles.
  ObjectStore* const store = ids_.empty() ? nullptr : ObjectStore::Existing();
  if (store != nullptr) store->DropHandles(ids_);
  ids_.clear();
}

void ObjectStore::DropView(const store::ObjectId& id) {
  Turn turn(*this);
  table_.DropView(id, turn.now);
}

StatusOr<ObjectView> ObjectStore::View(const store::ObjectId& id) {
  Turn turn(*this);
  const store::Sight sight = table_.Look(id);
  switch (sight.known) {
    case store::Known::kOrphan:
      return MakeError(kOwnerDied, "the process that owned the object is gone: " + sight.cause);
    case store::Known::kLost:
      return Lost(sight.cause);
    case store::Known::kNothing:
    case store::Known::kWaiting:
      return Lost("this process holds no reference to it any more");
    case store::Known::kValue:
      break;
  }
  if (sight.value.locations.empty()) return Lost("it has no memory");
  const store::Location& location = sight.value.locations.front();
  const std::shared_ptr<ObjectMapping> mapping = MappingLocked(id, location);
  if (mapping == nullptr) {
    const std::string* const missing = segments_.WhyMissing(SegmentOf(location));
    return Lost(missing != nullptr ? *missing : "its memory was not fetched");
  }
  StatusOr<char*> at = mapping->reading.At(location);
  if (!at.ok()) return Lost(MessageOf(at.status()));
  if (!table_.AddView(id)) return Lost("it was let go of");
  ObjectView view;
  view.store_ = this;
  view.generation_ = generation_;
  view.id_ = id;
  view.location_ = location;
  view.mapping_ = mapping;
  view.bytes_ = {*at, location.bytes};
  return view;
}

// ---- what came in a call ----------------------------------------------------------------------

void ObjectStore::Receive(const ProcessId& lender, const std::vector<store::ObjectId>& ids) {
  Turn turn(*this);
  for (const store::ObjectId& id : ids) table_.Receive(lender, {id, 0}, nullptr, turn.now);
}

/// Returns true if there is nothing to wait for; if not, the object is on its way.
bool ObjectStore::SettledLocked(const store::ObjectId& id) {
  const store::Sight sight = table_.Look(id);
  if (sight.known == store::Known::kWaiting) return false;
  if (sight.known != store::Known::kValue || sight.value.locations.empty()) return true;
  const store::Location& location = sight.value.locations.front();
  const SegmentKey key = SegmentOf(location);
  if (MappingLocked(id, location) != nullptr || segments_.WhyMissing(key) != nullptr) return true;
  WantLocked(key, id.owner);
  return false;
}

bool ObjectStore::RegisteredLocked(const store::ObjectId& id) const {
  const store::BorrowedObject* const found = table_.state().borrowed.Find(id);
  return found == nullptr || found->state != store::RefState::kRegistering;
}

bool ObjectStore::Await(const std::vector<store::ObjectId>& values,
                        const std::vector<store::ObjectId>& refs, Duration most) {
  const Instant until = Now() + most;
  while (true) {
    std::uint64_t seen = 0;
    {
      Turn turn(*this);
      seen = changes_;
      bool settled = true;
      for (const store::ObjectId& id : values) settled = SettledLocked(id) && settled;
      for (const store::ObjectId& id : refs) settled = RegisteredLocked(id) && settled;
      if (settled) return true;
    }
    const MutexLock lock(mutex_);
    const Duration left = until - Now();
    if (left <= Duration::zero()) return false;
    if (changes_ == seen) static_cast<void>(changed_.WaitFor(mutex_, left));
  }
}

ObjectStore::Figures ObjectStore::figures() {
  Turn turn(*this);
  Figures figures;
  for (const auto& [sequence, object] : table_.state().owned) {
    ++(store::IsLife({self_, sequence}) ? figures.lives : figures.owned);
    figures.lent += object.borrowers.empty() && object.loans.empty() ? 0 : 1;
  }
  for (const auto& [owner, objects] : table_.state().borrowed.by_owner()) {
    for (const auto& [sequence, ref] : objects) {
      ++(store::IsLife({owner, sequence}) ? figures.lives : figures.borrowed);
    }
  }
  figures.mapped = segments_.foreign();
  figures.lent += static_cast<std::size_t>(lent_remote_.load(std::memory_order_relaxed));
  figures.links = links_.size();
  figures.pool = pool_.figures();
  return figures;
}

}  // namespace troupe::actors
