#include "actors/objects/object_store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "actors/core/call/call_frame.h"
#include "actors/objects/object_memory.h"
#include "actors/objects/object_turn.h"
#include "actors/slots/completions.h"
#include "runtime/async/os_random.h"
#include "runtime/base/signals_blocked.h"

namespace troupe::actors {
namespace {

std::atomic<ObjectStore*> the_store{nullptr};
std::mutex making_store;

Status Lost(const std::string& why) { return MakeError(kObjectLost, "the object is lost: " + why); }

// Around a fork the table is at rest, and what is mapped then may be read for ever.
void BeforeFork() {
  if (ObjectStore* store = ObjectStore::Existing()) store->Lock();
}
void AfterForkHere() {
  ObjectStore* store = ObjectStore::Existing();
  if (store == nullptr) return;
  store->Forked();
  store->Unlock();
}

}  // namespace

// ---- views -----------------------------------------------------------------------------------

ObjectView& ObjectView::operator=(ObjectView&& other) noexcept {
  std::swap(store_, other.store_);
  std::swap(generation_, other.generation_);
  std::swap(id_, other.id_);
  std::swap(location_, other.location_);
  std::swap(mapping_, other.mapping_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

ObjectView::~ObjectView() {
  // What a forked child inherited is inert, its locks included.
  if (store_ != nullptr && generation_ == ForkGuard::generation()) store_->DropView(id_);
}

StatusOr<store::Reading> ObjectView::Private(char** at) const {
  TROUPE_ASSIGN(store::Reading reading,
                store::Reading::Private(mapping_->descriptor.get(), mapping_->bytes));
  TROUPE_ASSIGN(*at, reading.At(location_));
  return reading;
}

// ---- the store's life --------------------------------------------------------------------------

ObjectStore* ObjectStore::Existing() {
  ObjectStore* store = the_store.load(std::memory_order_acquire);
  return store != nullptr && store->generation_ == ForkGuard::generation() ? store : nullptr;
}

ObjectStore* ObjectStore::Current() {
  if (ObjectStore* store = Existing()) return store;
  Completions& completions = Completions::Current();  // installs the ForkGuard
  const std::lock_guard lock(making_store);
  if (ObjectStore* store = Existing()) return store;
  async::OsRandom random;
  // A Ref's hex() begins with the reactor's incarnation, an object's name with its owner's first half.
  const std::uint64_t high = std::strtoull(completions.incarnation().c_str(), nullptr, 16);
  const ProcessId self(high, random.Next() | 1);
  StatusOr<GuardedFd> listener = ObjectLink::Listen(self);
  if (!listener.ok()) return nullptr;
  auto* store = new ObjectStore(self, *std::move(listener), completions);
  if (store->epoll_.get() < 0 || store->wake_.get() < 0) {
    delete store;
    return nullptr;
  }
  static const int installed = pthread_atfork(&BeforeFork, &AfterForkHere, nullptr);
  (void)installed;
  Slot::SetReleaseHook(&ObjectStore::Released);
  Slot::SetAskHook(&ObjectStore::Asked);
  the_store.store(store, std::memory_order_release);
  const SignalsBlocked blocked;
  store->thread_ = std::thread([store] { store->Run(); });
  return store;
}

ObjectStore::ObjectStore(const ProcessId& self, GuardedFd listener, Completions& completions)
    : self_(self),
      completions_(completions),
      generation_(ForkGuard::generation()),
      listener_(std::move(listener)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      pool_(self, NodeId(), ObjectMemoryOptions()),
      table_(self) {}

void Conclude(Completions& completions, Slot* slot, std::uint16_t flags, std::string_view body, ResultThen& then) {
  if (then.fills_only) {
    slot->Fill(flags, body);
  } else {
    completions.Answer(slot, flags, body);
  }
  if (then.run != nullptr) completions.Post(std::move(then.run));
}

ObjectStore::Turn::~Turn() {
  store_.Apply();
  std::vector<Answer> answers;
  answers.swap(store_.answers_);
  std::vector<std::unique_ptr<Completion>> posts;
  posts.swap(store_.posts_);
  const bool woken = std::exchange(store_.woken_, false);
  if (woken) ++store_.changes_;
  const bool poke =
      std::exchange(store_.deadline_moved_, false) && store_.thread_.get_id() != std::this_thread::get_id();
  lock_.unlock();
  if (woken) store_.changed_.notify_all();
  if (poke) {
    const std::uint64_t one = 1;
    (void)!::write(store_.wake_.get(), &one, sizeof one);
  }
  for (Answer& answer : answers) {
    if (answer.open) {
      static_cast<void>(store_.completions_.OnDone(answer.slot, EndOf(store_, answer.slot, *answer.open)));
    }
    Conclude(store_.completions_, answer.slot, answer.flags, answer.body, answer.then);
    answer.slot->Release();
  }
  for (std::unique_ptr<Completion>& post : posts) store_.completions_.Post(std::move(post));
}

// ---- values ------------------------------------------------------------------------------------

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

void ObjectStore::DropHandles(const std::vector<store::ObjectId>& ids) {
  Turn turn(*this);
  for (const store::ObjectId& id : ids) table_.DropHandle(id, turn.now);
}

void Handles::Clear() {
  ObjectStore* const store = ids_.empty() ? nullptr : ObjectStore::Existing();  // else inherited by a forked child
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
  const std::shared_ptr<ObjectMapping> mapping = MappingOf(id, location);
  if (mapping == nullptr) {
    const auto missing = missing_.find({location.slot.maker, location.slot.segment});
    return Lost(missing != missing_.end() ? missing->second : "its memory was not fetched");
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

/// The segment a value lies in, if it is mapped here; it stays so while the object is known.
std::shared_ptr<ObjectMapping> ObjectStore::MappingOf(const store::ObjectId& id,
                                                      const store::Location& at) {
  const Key key{at.slot.maker, at.slot.segment};
  const auto kept = mapped_.find(key);
  std::shared_ptr<ObjectMapping> mapping;
  if (kept != mapped_.end()) {
    mapping = kept->second;
  } else if (const auto known = known_.find(key); known != known_.end()) {
    mapping = known->second.lock();
  }
  if (mapping == nullptr && key.first == self_) mapping = OwnMapping(key.second);
  if (mapping != nullptr && key.first != self_) pinned_[id] = mapping;
  return mapping;
}

std::shared_ptr<ObjectMapping> ObjectStore::OwnMapping(std::uint32_t segment) {
  std::uint64_t bytes = 0;
  StatusOr<UniqueFd> fd = pool_.DescriptorOf(segment, &bytes);
  if (!fd.ok()) {
    missing_[{self_, segment}] = MessageOf(fd.status());
    return nullptr;
  }
  Map({self_, segment}, GuardedFd(fd->Release()), bytes);
  const auto kept = mapped_.find({self_, segment});
  return kept == mapped_.end() ? nullptr : kept->second;
}

void ObjectStore::Map(const Key& key, GuardedFd descriptor, std::uint64_t bytes) {
  wanted_.erase(key);
  StatusOr<store::Reading> reading = store::Reading::ReadOnly(descriptor.get(), bytes);
  if (!reading.ok()) return Missing(key, MessageOf(reading.status()));
  auto mapping = std::make_shared<ObjectMapping>(
      ObjectMapping{std::move(descriptor), *std::move(reading), bytes});
  missing_.erase(key);
  known_[key] = mapping;
  mapped_[key] = std::move(mapping);
  FinishArrived(key);
  AnswerBorrowedOf(key);
  woken_ = true;
}

// ---- what came in a call -------------------------------------------------------------------------

void ObjectStore::Receive(const ProcessId& lender, const std::vector<store::ObjectId>& ids) {
  Turn turn(*this);
  for (const store::ObjectId& id : ids) table_.Receive(lender, {id, 0}, nullptr, turn.now);
}

/// Whether there is nothing to wait for; if not, it is on its way.
bool ObjectStore::Settled(const store::ObjectId& id) {
  const store::Sight sight = table_.Look(id);
  if (sight.known == store::Known::kWaiting) return false;
  if (sight.known != store::Known::kValue || sight.value.locations.empty()) return true;
  const store::Location& location = sight.value.locations.front();
  const Key key{location.slot.maker, location.slot.segment};
  if (MappingOf(id, location) != nullptr || missing_.count(key) != 0) return true;
  Want(key, id.owner);
  return false;
}

bool ObjectStore::Registered(const store::ObjectId& id) const {
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
      for (const store::ObjectId& id : values) settled = Settled(id) && settled;
      for (const store::ObjectId& id : refs) settled = Registered(id) && settled;
      if (settled) return true;
    }
    std::unique_lock lock(mutex_);
    const Duration left = until - Now();
    if (left <= Duration::zero()) return false;
    changed_.wait_for(lock, left, [&] { return changes_ != seen; });
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
    for (const auto& [sequence, ref] : objects) ++(store::IsLife({owner, sequence}) ? figures.lives : figures.borrowed);
  }
  for (const auto& [key, mapping] : known_) {
    figures.mapped += key.first == self_ || mapping.expired() ? 0 : 1;
  }
  figures.lent += static_cast<std::size_t>(lent_remote_.load(std::memory_order_relaxed));
  figures.links = link_of_.size();
  figures.pool = pool_.figures();
  return figures;
}

}  // namespace troupe::actors
