// Collectives among the ranks of a node, piece by piece through the memory that they share.
//
//   PI1  Every rank goes through the same pieces in the same order, numbered through the group's
//        life; who finds a peer in another operation says so, and nothing is computed.
//   PI2  A slot is written again only when all peers have read what was in it.
//   PI3  Results are put together in the order of the ranks, whoever does it: the same bits on
//        every rank, in every run.
//   PI4  Nothing of the caller's memory is touched after Run has returned.
//
// An all-reduce costs each rank, of n: (n - 1) / n of its bytes copied in, 1 / n of all ranks'
// read and reduced, (n - 1) / n copied out. Small ones go in one round: each reads all.
//
// Belongs to the thread that runs the group's operations.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "actors/train/local/collectives.h"

namespace troupe::train {

class Pieces final : public Collectives {
 public:
  /// Both must outlive it.
  Pieces(SharedArea& area, const Clock& clock) : area_(area), clock_(clock) {}

  Status Run(const Operation& operation, std::uint64_t seq) override;

 private:
  using Step = std::function<void(std::uint64_t piece, std::uint64_t number)>;
  /// What happens in each of an operation's pieces; `number` is its place in the group's life.
  struct Plan {
    std::uint64_t pieces = 1;
    Step post;     // my part into my slot
    Step combine;  // all ranks' parts are there
    Step take;     // all ranks' results are there; empty: `combine` has done all
  };

  Status Go(const Plan& plan);
  Status Post(const Plan& plan, std::uint64_t piece);
  Status Combine(const Plan& plan, std::uint64_t piece);
  Status Take(const Plan& plan, std::uint64_t piece);
  Status AwaitPeers(std::atomic<std::uint64_t> RankLine::* counter, std::uint64_t least);
  /// A peer that is gone without what this operation will need of it; -1: none.
  int LostPeer() const;
  Status Late(int peer) const;
  Status CheckPeers(std::uint64_t number) const;

  Status ReduceInOneRound(const Operation& operation);
  Status Reduce(const Operation& operation);
  Status ReduceScatter(const Operation& operation);
  Status Gather(const Operation& operation);
  Status Broadcast(const Operation& operation);
  Status Scatter(const Operation& operation);
  Status AllToAll(const Operation& operation);
  Status Exchange(const Operation& operation, const std::vector<std::size_t>& send,
                  const std::vector<std::size_t>& recv, std::size_t pieces);

  std::size_t ranks() const { return static_cast<std::size_t>(area_.size()); }
  std::size_t me() const { return static_cast<std::size_t>(area_.rank()); }
  const std::byte* Peer(std::size_t rank, std::uint64_t number) const {
    return area_.Contributed(static_cast<int>(rank), number);
  }
  std::byte* Mine(std::uint64_t number) const { return area_.Contributed(area_.rank(), number); }

  SharedArea& area_;
  const Clock& clock_;
  Instant until_ = Instant::max();  // the operation's time is over then
  Duration most_{};
  std::uint64_t next_ = 0;  // the number of the next piece
  std::uint64_t end_ = 0;   // the number after the operation's last
  bool takes_ = false;      // its results come of all ranks
  PieceNote note_;          // the operation that runs
};

}  // namespace troupe::train
