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
#include <vector>

#include "actors/train/local/node_collectives.h"

namespace troupe::train {

class Pieces final : public NodeCollectives {
 public:
  /// All must outlive it.
  Pieces(SharedArea& area, const Places& places, const Clock& clock, Absent absent)
      : NodeCollectives(area, places, clock, std::move(absent)) {}

 private:
  /// The steps of each of an operation's pieces.
  struct Plan {
    std::uint64_t pieces = 1;
    Step post;     // my part into my slot
    Step combine;  // all ranks' parts are there
    Step take;     // all ranks' results are there; empty: `combine` has done all
  };

  Status Dispatch(const Operation& operation) override;
  Status Go(const Plan& plan);
  Status Combine(const Plan& plan, std::uint64_t piece);
  Status Take(const Plan& plan, std::uint64_t piece);

  Status ReduceInOneRound(const Operation& operation);
  Status Reduce(const Operation& operation);
  Status ReduceScatter(const Operation& operation);
  Status Gather(const Operation& operation);
  Status Broadcast(const Operation& operation);
  Status Scatter(const Operation& operation);
  Status AllGather(const Operation& operation) override { return Gather(operation); }
  Status Exchange(const Operation& operation, const std::vector<std::size_t>& send,
                  const std::vector<std::size_t>& recv, std::size_t pieces) override;

  std::size_t ranks() const { return static_cast<std::size_t>(area_.size()); }
  const std::byte* Peer(std::size_t rank, std::uint64_t number) const {
    return area_.Contributed(static_cast<int>(rank), number);
  }
};

}  // namespace troupe::train
