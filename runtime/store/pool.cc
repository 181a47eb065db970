#include "runtime/store/pool.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/signals_blocked.h"
#include "runtime/os/memory.h"
#include "runtime/store/slot_header.h"

namespace troupe::store {
namespace {

std::uint64_t HalfOfMemory() {
  const std::uint64_t total = os::ReadMemory().total_bytes;
  return total == 0 ? 1u << 30 : total / 2;
}

std::string Mib(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

Pool::Pool(ProcessId self, NodeId node, PoolOptions options)
    : self_(self), node_(node), options_(options), pid_(getpid()) {}

Pool::~Pool() {
  if (Inherited()) {  // the thread is the parent's, the mappings are not here
    if (spare_maker_.joinable()) spare_maker_.detach();
    return;
  }
  {
    const MutexLock lock(mutex_);
    closing_ = true;
  }
  spare_wanted_.NotifyAll();
  if (spare_maker_.joinable()) spare_maker_.join();
}

StatusOr<Writing> Pool::Begin(std::uint64_t bytes) {
  if (Inherited()) {
    return MakeError(ErrorCode::kInvalid, "a forked child cannot make objects of its parent's");
  }
  const auto shape = ShapeFor(bytes);
  if (!shape)
    return MakeError(ErrorCode::kTooLarge, "an object of " + std::to_string(bytes) + " bytes");
  MutexLock lock(mutex_);
  auto taken = slots_.Take(bytes);
  // Already being made: no second one
  if (!taken && making_spare_ && spare_ && *spare_ == *shape) {
    while (making_spare_) spare_made_.Wait(mutex_);
    taken = slots_.Take(bytes);
  }
  if (!taken) {
    ++waited_for_;
    TROUPE_TRY(Make(*shape, Place::kAnywhere));
    taken = slots_.Take(bytes);
    if (!taken) return MakeError(ErrorCode::kInternal, "a new segment has no room for its value");
    if (++misses_[shape->slot_bytes] >= 2) WantSpare(*shape);
  }
  const SegmentShape& has = shapes_.at(taken->at.segment);
  idle_since_.erase(taken->at.segment);
  Writing writing;
  writing.bytes = bytes;
  writing.slot = *taken;
  writing.offset = taken->at.slot * has.slot_bytes + kSlotHeaderBytes;
  writing.data = segments_.at(taken->at.segment).data() + writing.offset;
  lock.Unlock();
  SlotHeader header;
  header.generation = taken->generation;
  header.bytes = bytes;
  std::memcpy(writing.data - kSlotHeaderBytes, &header, sizeof(header));
  return writing;
}

Status Pool::Reserve(std::uint64_t bytes) {
  const auto shape = ShapeFor(bytes);
  if (!shape)
    return MakeError(ErrorCode::kTooLarge, "an object of " + std::to_string(bytes) + " bytes");
  MutexLock lock(mutex_);
  return slots_.HasFree(*shape) ? Status() : Make(*shape, Place::kAnywhere);
}

Status Pool::Make(const SegmentShape& shape, Place place) {
  const std::uint64_t bytes = shape.bytes();
  const Status room = RoomInMemory(bytes, shape);
  if (!room.ok() && place == Place::kMemory) return room;
  std::uint64_t& held = room.ok() ? bytes_ : disk_bytes_;
  held += bytes;
  const std::string folder = options_.spill_folder;
  mutex_.Unlock();
  auto segment = room.ok() ? Segment::Create(bytes) : Segment::CreateOnDisk(folder, bytes);
  mutex_.Lock();
  if (!segment.ok()) {
    held -= bytes;
    if (room.ok()) return segment.status();
    return MakeError(
        ErrorCode::kTooLarge,
        MessageOf(room) + "\n  " + MessageOf(segment.status()) +
            "\n  drop references to objects, or raise the limit (object_store_memory)");
  }
  const std::uint32_t number = slots_.Add(shape);
  segments_.emplace(number, std::move(segment).value());
  shapes_[number] = shape;
  ++made_;
  if (room.ok()) return Status();
  on_disk_.insert(number);
  if (!std::exchange(told_of_disk_, true)) {
    Log(LogLevel::kWarning, "objects of this process go to disk",
        {{"folder", options_.spill_folder}, {"why", MessageOf(room)}});
  }
  return Status();
}

Status Pool::RoomInMemory(std::uint64_t bytes, const SegmentShape& shape) {
  // Requested by processes that need memory only
  if (options_.bytes_max == 0) options_.bytes_max = HalfOfMemory();
  if (!MakeRoom(bytes, shape)) {
    return MakeError(ErrorCode::kTooLarge, "no room for an object of up to " +
                                               Mib(shape.slot_bytes) + ": this process holds " +
                                               Mib(bytes_) + " of objects, of " +
                                               Mib(options_.bytes_max) + " it may");
  }
  if (options_.memory_left == nullptr) return Status();
  const std::uint64_t left = options_.memory_left();
  if (bytes <= left) return Status();
  return MakeError(ErrorCode::kTooLarge, "no room for an object of up to " + Mib(shape.slot_bytes) +
                                             ": the system has " + Mib(left) +
                                             " of memory before it is short of it");
}

// Other classes' segments go before a value is refused.
bool Pool::MakeRoom(std::uint64_t bytes, const SegmentShape& keep) {
  if (bytes > options_.bytes_max) return false;
  std::vector<std::uint32_t> others;
  for (const auto& [number, shape] : shapes_) {
    if (!(shape == keep)) others.push_back(number);
  }
  for (const std::uint32_t number : others) {
    if (bytes_ + bytes <= options_.bytes_max) return true;
    if (slots_.Trim(number)) DropClosed();
  }
  return bytes_ + bytes <= options_.bytes_max;
}

void Pool::GiveUp(const Writing& writing) {
  if (Inherited()) return;
  const MutexLock lock(mutex_);
  slots_.GiveUp(writing.slot.at);
  CloseOnDisk(writing.slot.at.segment);
  DropClosed();
}

Location Pool::Lend(const Writing& writing, const ProcessId& owner) {
  const MutexLock lock(mutex_);
  slots_.Lend(writing.slot.at, owner);
  Location location;
  location.node = node_;
  location.slot = {self_, writing.slot.at.segment, writing.slot.at.slot};
  location.generation = writing.slot.generation;
  location.offset = writing.offset;
  location.bytes = writing.bytes;
  return location;
}

void Pool::Free(const ProcessId& owner, const SlotId& slot, std::uint64_t generation, bool clean) {
  if (slot.maker != self_ || Inherited()) return;
  const MutexLock lock(mutex_);
  slots_.Free(owner, {slot.segment, slot.slot}, generation, clean);
  CloseOnDisk(slot.segment);
  DropClosed();
}

void Pool::OwnerLost(const ProcessId& owner, bool dead) {
  if (Inherited()) return;
  const MutexLock lock(mutex_);
  slots_.OwnerLost(owner, dead);
  DropClosed();
}

void Pool::Trim(Instant now) {
  if (Inherited()) return;
  const MutexLock lock(mutex_);
  std::vector<std::uint32_t> idle;
  for (const auto& [number, shape] : shapes_) {
    if (!slots_.Idle(number)) {
      idle_since_.erase(number);
      continue;
    }
    const Instant since = idle_since_.try_emplace(number, now).first->second;
    if (since + options_.idle <= now) idle.push_back(number);
  }
  for (const std::uint32_t number : idle) {
    if (bytes_ <= options_.bytes_max / 2 || segments_.size() == 1) return;
    if (slots_.Trim(number)) DropClosed();
  }
}

// Free memory is used first: a disk keeps nothing for the next value.
void Pool::CloseOnDisk(std::uint32_t segment) {
  if (on_disk_.count(segment) != 0) slots_.Trim(segment);
}

bool Pool::OverHalf() const {
  const MutexLock lock(mutex_);
  return bytes_ > options_.bytes_max / 2;
}

void Pool::DropClosed() {
  for (const CloseSegment& close : slots_.TakeClosed()) {
    (on_disk_.erase(close.segment) != 0 ? disk_bytes_ : bytes_) -=
        shapes_.at(close.segment).bytes();
    shapes_.erase(close.segment);
    segments_.erase(close.segment);
    idle_since_.erase(close.segment);
    closed_.push_back(close);
  }
}

std::vector<CloseSegment> Pool::TakeClosed() {
  const MutexLock lock(mutex_);
  return std::exchange(closed_, {});
}

StatusOr<UniqueFd> Pool::DescriptorOf(std::uint32_t number, std::uint64_t* bytes) const {
  const MutexLock lock(mutex_);
  const auto found = segments_.find(number);
  if (found == segments_.end()) {
    return MakeError(ErrorCode::kFenced, "the memory of the object is closed: it is lost");
  }
  UniqueFd copy(fcntl(found->second.descriptor(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) {
    return MakeError(ErrorCode::kTooLarge,
                     std::string("a descriptor for an object: ") + std::strerror(errno));
  }
  *bytes = found->second.bytes();
  return copy;
}

Pool::Figures Pool::figures() const {
  const MutexLock lock(mutex_);
  return {bytes_, disk_bytes_, segments_.size(), slots_.InUse(), made_, waited_for_};
}

void Pool::WantSpare(const SegmentShape& shape) {
  if (!options_.spares || making_spare_ || slots_.HasFree(shape)) return;
  if (bytes_ + shape.bytes() > options_.bytes_max / 2) return;
  spare_ = shape;
  making_spare_ = true;
  if (!spare_maker_.joinable()) StartSpareMaker();
  spare_wanted_.NotifyOne();
}

// Signals are for the program's own threads.
void Pool::StartSpareMaker() {
  const SignalsBlocked blocked;
  spare_maker_ = std::thread([this] { MakeSpares(); });
}

bool Pool::Inherited() const { return getpid() != pid_; }

void Pool::MakeSpares() {
  MutexLock lock(mutex_);
  for (;;) {
    while (!making_spare_ && !closing_) spare_wanted_.Wait(mutex_);
    if (closing_) return;
    static_cast<void>(Make(*spare_, Place::kMemory));  // the process that needs it finds out, and
                                                       // reports why
    making_spare_ = false;
    spare_.reset();
    spare_made_.NotifyAll();
  }
}

void Pool::WaitForSpares() {
  MutexLock lock(mutex_);
  while (making_spare_) spare_made_.Wait(mutex_);
}

}  // namespace troupe::store
