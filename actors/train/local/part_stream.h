// The parts of tensors that two ranks on different nodes exchange in a collective, in an order that
// both know: each is a note and its bytes, and goes from one's memory into the other's.
//
//   note: PieceNote, stage u32, zero u32, bytes u64; in the byte order of both, which is the same
//
//   WI1  Nothing is taken but what is asked for: as many bytes, of the operation, piece and stage
//        that come next. What comes instead is noted, and nothing more is read.
//   WI2  Parts arrive in the order in which they were sent. A connection that has ended has
//        delivered all that came before; what a dead peer is not told is nobody's loss.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <deque>
#include <functional>
#include <optional>

#include "actors/train/local/shared_area.h"
#include "actors/train/local/wire.h"
#include "runtime/base/mutex.h"

namespace troupe::train {

enum class Stage : std::uint32_t { kPresence = 1, kPartial = 2, kResult = 3, kData = 4 };

struct PartNote {
  PieceNote work;
  Stage stage = Stage::kData;
  std::uint32_t zero = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(PartNote) == 56);

class PartStream final : public Stream {
 public:
  /// The number of a part that is sent, or received, through the stream's life.
  using Ticket = std::uint64_t;
  /// `changed` is called when something was sent or received, or has ended. `waker`: of the thread
  /// that moves what cannot be moved at once; null where whoever waits does. What is given must
  /// outlive it.
  PartStream(UniqueFd fd, Waker* waker, std::function<void()> changed)
      : fd_(std::move(fd)), waker_(waker), changed_(std::move(changed)) {}

  /// The memory is read, or written, until the ticket is done or the stream ended.
  Ticket Send(const PartNote& note, const void* from);
  Ticket Receive(const PartNote& expected, void* to);
  bool sent(Ticket ticket) const { return sent_.load() >= ticket; }
  bool received(Ticket ticket) const { return received_.load() >= ticket; }
  /// Nothing more comes.
  bool ended() const { return ended_.load(); }
  /// The note that came in place of the one asked for.
  std::optional<PartNote> other() const;

  int fd() const override { return fd_.get(); }
  short Wants() override;
  void Move() override;
  void End() override;

 private:
  struct Part {
    PartNote note;
    std::byte* memory;
    std::size_t moved = 0;  // the note's bytes included
  };
  void MoveOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MoveIn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeAt(std::size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Took(std::size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const UniqueFd fd_;
  Waker* const waker_;
  const std::function<void()> changed_;
  std::atomic<Ticket> sent_{0}, received_{0};
  std::atomic<bool> ended_{false};
  mutable Mutex mutex_;
  std::deque<Part> out_ ABSL_GUARDED_BY(mutex_), in_ ABSL_GUARDED_BY(mutex_);
  PartNote heard_ ABSL_GUARDED_BY(mutex_);  // the note of `in_`'s first, as far as it has come
  std::optional<PartNote> other_ ABSL_GUARDED_BY(mutex_);
  Ticket sends_ ABSL_GUARDED_BY(mutex_) = 0, receives_ ABSL_GUARDED_BY(mutex_) = 0;
  short polled_ ABSL_GUARDED_BY(mutex_) = 0;  // events that the wire's thread waits for
  std::size_t wakes_at_ ABSL_GUARDED_BY(mutex_) =
      1;  // the socket can be read from so many bytes on
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe::train
