// Memory that the ranks of one node share, and how they wait in it for each other.
//
// A memfd: no name anywhere, nothing of /dev/shm's limits, and gone with the last process that has
// it, however that ended. Its size is sealed, so that no peer can take pages away from under
// another, and the pages that collectives use are reserved when it is made.
//
//   +--------+----------------------+---------------------------------+---------------------------+
//   | header | a line per rank      | what ranks contribute           | results of a piece        |
//   |        | counters, bell       | `slots` pieces for each rank    | `slots` of them           |
//   +--------+----------------------+---------------------------------+---------------------------+
//   | mailboxes: a ring of bytes for each ordered pair of ranks, paged in by their first use
//
// A rank writes its own line, slots, part of the results and outgoing mailboxes and reads all
// others'. Ranks are numbered by their places on the node here, but for `gone`. Counters
// only grow; nothing read from a peer is used as a length or an address before it was compared.
// Waiting: a rank sleeps on the bell of its own line, which peers ring after they have counted on
// (they see that it sleeps), and which Stop rings from any thread. A killed peer leaves nothing
// locked.
//
// Thread-safe as said at each function.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/base/unique_fd.h"

namespace troupe::train {

inline constexpr std::size_t kSlotsMax = 4;
inline constexpr std::size_t kPieceBytes = 512 << 10;
inline constexpr std::size_t kSpanningBytes = 1 << 20;  // a piece's, of a group on several nodes
inline constexpr int kRanksOfNodeMax = 512;

/// A rank's operation in one piece, which its peers compare with theirs.
struct PieceNote {
  std::uint64_t piece = 0;  // number of the piece in the group's life
  std::uint64_t seq = 0;    // the operation's
  std::uint64_t count = 0;
  std::int32_t kind = 0, type = 0, op = 0, root = 0;
};

/// The shared state of a rank; fields that others wait for are on cache lines of their own.
struct RankLine {
  alignas(64) std::atomic<std::uint64_t> posted;   // pieces contributed
  alignas(64) std::atomic<std::uint64_t> reduced;  // pieces read of all, and their results written
  alignas(64) std::atomic<std::uint64_t> taken;    // results read of all
  alignas(64) std::atomic<std::uint32_t> bell;
  std::atomic<std::uint32_t> sleepers;
  alignas(64) PieceNote notes[kSlotsMax];
};

/// A ring of bytes from one rank to another: the sender counts `written`, the receiver `read`.
struct Mailbox {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> read;
  alignas(64) std::byte bytes[1];
};

enum class Woken { kReady, kStopped, kLate };

/// How an area is cut, the same on all ranks of a node.
struct AreaShape {
  int size = 1;                   // ranks of the node
  int group_size = 1;             // ranks of all nodes
  std::size_t slots = 2;          // pieces of a rank that are under way, kSlotsMax at most
  std::size_t section_bytes = 0;  // a rank's share of a piece; a multiple of 64
  std::size_t slot_bytes = 0;  // size of a rank's contribution to a piece
  std::size_t result_bytes = 0;  // size of a piece's result

  /// A group on one node: a section for each rank.
  static AreaShape OfOneNode(int size);
  /// A node among several: whole pieces, which the plan divides; nothing where a rank is alone
  /// on its node.
  static AreaShape OfSeveralNodes(int size, int group_size, std::size_t result_bytes);
};

class SharedArea {
 public:
  /// A new one. kTooLarge: no memory for it. Blocks while its pages are reserved.
  static StatusOr<std::unique_ptr<SharedArea>> Make(int rank, const AreaShape& shape);
  /// The area behind a descriptor that a peer has sent. kInvalid: it is none of this size, or its
  /// size could change.
  static StatusOr<std::unique_ptr<SharedArea>> Map(UniqueFd memory, int rank,
                                                   const AreaShape& shape);
  ~SharedArea();
  SharedArea(const SharedArea&) = delete;
  SharedArea& operator=(const SharedArea&) = delete;

  int rank() const { return rank_; }
  int size() const { return shape_.size; }
  /// To be sent to the other ranks of the node.
  int memory() const { return memory_.get(); }

  RankLine& line(int rank) const { return lines_[rank]; }
  RankLine& mine() const { return lines_[rank_]; }
  std::size_t slots() const { return shape_.slots; }
  std::size_t section_bytes() const { return shape_.section_bytes; }
  std::size_t slot_bytes() const { return shape_.slot_bytes; }
  std::byte* Contributed(int rank, std::uint64_t piece) const;
  std::byte* Result(std::uint64_t piece) const;
  Mailbox& mailbox(int from, int to) const;
  std::size_t mailbox_bytes() const { return mailbox_bytes_; }

  /// Wakes the peers that sleep: something of mine has changed. Any thread.
  void Ring();
  /// Wakes one.
  void Ring(int peer);
  /// Has the waits of this process look again. Any thread.
  void Nudge() { Ring(rank_); }
  /// Blocks until `ready()`, which only reads. Any thread.
  template <class Ready>
  Woken Await(const Ready& ready, const Clock& clock, Instant until) {
    for (int look = 0; look < kLooks; ++look) {
      if (stopped()) return Woken::kStopped;
      if (ready()) return Woken::kReady;
      Pause();
    }
    for (;;) {
      const std::uint32_t heard = mine().bell.load();
      mine().sleepers.fetch_add(1);
      const bool is_ready = ready();
      const Duration left = until == Instant::max() ? Duration::max() : until - clock.Now();
      if (!is_ready && !stopped() && left > Duration::zero()) Sleep(heard, left);
      mine().sleepers.fetch_sub(1);
      if (stopped()) return Woken::kStopped;
      if (is_ready) return Woken::kReady;
      if (left <= Duration::zero()) return Woken::kLate;
    }
  }
  /// Ends all waits of this process in it, for ever; returns at once. Any thread.
  void Stop();
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }
  /// Notes that the process of that rank of the group counts on no more; wakes who waits for it.
  /// Any thread.
  void MarkGone(int rank_of_group);
  bool any_gone() const { return any_gone_.load(); }
  bool gone(int rank_of_group) const {
    return gone_[static_cast<std::size_t>(rank_of_group)].load();
  }

 private:
  SharedArea(UniqueFd memory, int rank, const AreaShape& shape);
  Status MapAll();
  void Sleep(std::uint32_t heard, Duration most);
  void WakeMine();
  static void Pause();
  static constexpr int kLooks = 200;  // some microseconds: most peers are as far as this one

  const UniqueFd memory_;
  const int rank_;
  const AreaShape shape_;
  const std::size_t mailbox_bytes_;
  std::size_t bytes_ = 0, contributed_ = 0, results_ = 0,
              mailboxes_ = 0;  // all, and where they begin
  std::byte* base_ = nullptr;
  RankLine* lines_ = nullptr;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> any_gone_{false};
  const std::unique_ptr<std::atomic<bool>[]> gone_;
};

}  // namespace troupe::train
