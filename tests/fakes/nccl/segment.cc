#include "tests/fakes/nccl/segment.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

#include "tests/fakes/nccl/settings.h"

namespace troupe::fakes {
namespace {

constexpr std::size_t kHeaderBytes = (sizeof(SharedHeader) + 4095) / 4096 * 4096;
constexpr long kLookAgainNs = 2'000'000;  // a death changes no word

void SleepOn(std::atomic<std::uint32_t>& word, std::uint32_t seen, bool look_again) {
  const timespec most{0, kLookAgainNs};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, look_again ? &most : nullptr, nullptr, 0);
}

bool Ended(const UniqueFd& process) {
  if (!process.valid()) return true;
  pollfd poll_fd{process.get(), POLLIN, 0};
  return poll(&poll_fd, 1, 0) > 0;
}

}  // namespace

std::size_t SegmentBytes(int size) {
  const auto ranks = static_cast<std::size_t>(size);
  return kHeaderBytes + ranks * kPieceBytes + ranks * ranks * kMailBytes;
}

Segment::Segment(SharedHeader* header, int rank, int size)
    : header_(header),
      data_(reinterpret_cast<char*>(header) + kHeaderBytes),
      rank_(rank),
      size_(size) {}

std::unique_ptr<Segment> Segment::Map(UniqueFd fd, int rank, int size) {
  void* at = mmap(nullptr, SegmentBytes(size), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return nullptr;
  return std::unique_ptr<Segment>(new Segment(static_cast<SharedHeader*>(at), rank, size));
}

Segment::~Segment() { munmap(header_, SegmentBytes(size_)); }

char* Segment::mail(int from, int to) {
  const auto ranks = static_cast<std::size_t>(size_);
  const auto index = static_cast<std::size_t>(from) * ranks + static_cast<std::size_t>(to);
  return data_ + ranks * kPieceBytes + index * kMailBytes;
}

void Segment::WatchPeers() {
  for (int rank = 0; rank < size_; ++rank)
    processes_.emplace_back(static_cast<int>(syscall(SYS_pidfd_open, of(rank).pid.load(), 0)));
}

int Segment::FirstLost() {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    const auto state = of(rank).state.load();
    if (state == RankState::kAborted) return rank;
    if (state != RankState::kDestroyed && static_cast<std::size_t>(rank) < processes_.size() &&
        Ended(processes_[static_cast<std::size_t>(rank)]))
      return rank;
  }
  return -1;
}

void Segment::Changed() {
  header_->change.fetch_add(1);
  syscall(SYS_futex, &header_->change, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

End Segment::Wait(const std::function<bool()>& done, const std::atomic<bool>& stop,
                  bool watch_deaths) {
  for (;;) {
    const auto seen = header_->change.load();
    if (stop) return End::kStopped;
    if (done()) return End::kDone;
    if (watch_deaths && FirstLost() >= 0) return End::kPeerGone;
    SleepOn(header_->change, seen, watch_deaths);
  }
}

}  // namespace troupe::fakes
