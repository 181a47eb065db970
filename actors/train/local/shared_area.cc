#include "actors/train/local/shared_area.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>
#include <utility>

namespace troupe::train {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMailboxBytes = 64 << 10, kSmallMailboxBytes = 4 << 10;
constexpr int kManyRanks = 64;  // from here on mailboxes are small, for there are ranks^2 of them
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::size_t Up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

std::string MemoryError(const std::string& what) { return what + ": " + std::strerror(errno); }

}  // namespace

AreaShape AreaShape::OfOneNode(int size) {
  const auto ranks = static_cast<std::size_t>(size);
  const std::size_t section = std::max<std::size_t>(kPieceBytes / ranks / 64 * 64, 64);
  return {size, size, 2, section, section * ranks, section * ranks};
}

AreaShape AreaShape::OfSeveralNodes(int size, int group_size, std::size_t result_bytes) {
  if (size == 1) return {size, group_size, kSlotsMax, 64, 64, 64};
  return {size, group_size, kSlotsMax, kSpanningBytes, kSpanningBytes, result_bytes};
}

SharedArea::SharedArea(UniqueFd memory, int rank, const AreaShape& shape)
    : memory_(std::move(memory)),
      rank_(rank),
      shape_(shape),
      mailbox_bytes_(shape.size < kManyRanks ? kMailboxBytes : kSmallMailboxBytes),
      gone_(std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(shape.group_size))) {
  const auto ranks = static_cast<std::size_t>(shape.size);
  const std::size_t lines = Up(sizeof(RankLine) * ranks, kPage);
  const std::size_t contributed = Up(shape.slot_bytes * shape.slots * ranks, kPage);
  const std::size_t results = Up(shape.result_bytes * shape.slots, kPage);
  const std::size_t mailbox = Up(sizeof(Mailbox) + mailbox_bytes_, kPage);
  bytes_ = lines + contributed + results + mailbox * ranks * ranks;
  contributed_ = lines;
  results_ = lines + contributed;
  mailboxes_ = lines + contributed + results;
}

Status SharedArea::MapAll() {
  void* at =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory_.get(), 0);
  if (at == MAP_FAILED)
    return MakeError(ErrorCode::kTooLarge, MemoryError("mapping the " + std::to_string(bytes_) +
                                                       " bytes that the ranks of a node share"));
  base_ = static_cast<std::byte*>(at);
  lines_ = reinterpret_cast<RankLine*>(base_);  // zero is how its atomics begin
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<SharedArea>> SharedArea::Make(int rank, const AreaShape& shape) {
  UniqueFd memory(memfd_create("troupe-group", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.valid())
    return MakeError(ErrorCode::kTooLarge,
                     MemoryError("making the memory that the ranks of a node share"));
  std::unique_ptr<SharedArea> area(new SharedArea(std::move(memory), rank, shape));
  const std::size_t reserved = area->mailboxes_;
  if (ftruncate(area->memory(), static_cast<off_t>(area->bytes_)) != 0 ||
      fallocate(area->memory(), 0, 0, static_cast<off_t>(reserved)) != 0 ||
      fcntl(area->memory(), F_ADD_SEALS, kSeals) != 0)
    return MakeError(ErrorCode::kTooLarge, MemoryError("reserving " + std::to_string(reserved) +
                                                       " bytes that the ranks of a node share"));
  TROUPE_TRY(area->MapAll());
  return area;
}

StatusOr<std::unique_ptr<SharedArea>> SharedArea::Map(UniqueFd memory, int rank,
                                                      const AreaShape& shape) {
  std::unique_ptr<SharedArea> area(new SharedArea(std::move(memory), rank, shape));
  struct stat found{};
  const int seals = fcntl(area->memory(), F_GET_SEALS);
  if (fstat(area->memory(), &found) != 0 || seals < 0 || (seals & kSeals) != kSeals ||
      found.st_size != static_cast<off_t>(area->bytes_))
    return MakeError(ErrorCode::kInvalid,
                     "the memory that a peer has sent is not that of a group of " +
                         std::to_string(shape.size) + " ranks on this node (" +
                         std::to_string(found.st_size) + " bytes, seals " + std::to_string(seals) +
                         "): all ranks need the same version of troupe");
  TROUPE_TRY(area->MapAll());
  return area;
}

SharedArea::~SharedArea() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

std::byte* SharedArea::Contributed(int rank, std::uint64_t piece) const {
  return base_ + contributed_ +
         slot_bytes() * (static_cast<std::size_t>(rank) * slots() + piece % slots());
}

std::byte* SharedArea::Result(std::uint64_t piece) const {
  return base_ + results_ + shape_.result_bytes * (piece % slots());
}

Mailbox& SharedArea::mailbox(int from, int to) const {
  const auto index = static_cast<std::size_t>(from) * static_cast<std::size_t>(size()) +
                     static_cast<std::size_t>(to);
  return *reinterpret_cast<Mailbox*>(base_ + mailboxes_ +
                                     Up(sizeof(Mailbox) + mailbox_bytes_, kPage) * index);
}

void SharedArea::Ring(int peer) {
  RankLine& line = lines_[peer];
  if (line.sleepers.load() == 0) return;
  line.bell.fetch_add(1);
  syscall(SYS_futex, &line.bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void SharedArea::Ring() {
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank_) Ring(peer);
}

void SharedArea::Sleep(std::uint32_t heard, Duration most) {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(most);
  const timespec left{static_cast<time_t>(whole.count()),
                      static_cast<long>((most - whole).count())};
  syscall(SYS_futex, &mine().bell, FUTEX_WAIT, heard, most == Duration::max() ? nullptr : &left,
          nullptr, 0);
}

void SharedArea::Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void SharedArea::MarkGone(int rank_of_group) {
  gone_[static_cast<std::size_t>(rank_of_group)].store(true);
  any_gone_.store(true);
  WakeMine();
}

void SharedArea::Stop() {
  stopped_.store(true);
  WakeMine();
}

void SharedArea::WakeMine() {
  mine().bell.fetch_add(1);
  syscall(SYS_futex, &mine().bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace troupe::train
