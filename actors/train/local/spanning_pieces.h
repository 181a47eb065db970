// Collectives of a group that spans several nodes: piece by piece, within a node through its shared
// memory and between nodes through a connection of each two ranks that exchange something.
//
// An all-reduce's piece is divided among the rails (places.h), a rail's share among the nodes. A
// rank of a rail puts together what its node's ranks have of the share, sends each other node's
// part to that node's rank of the rail, puts together the nodes' parts of its own and sends the
// result to the others: as many bytes as a ring between nodes takes, in two steps instead of two
// for each node, and always in the order of the nodes. Where a rank is alone on its node nothing is
// copied: parts go from the caller's memory and results into it. What is small goes in one step:
// each node sends all it has to all others.
//
//   SP1  All ranks of the group go through the same pieces in the same order, numbered through its
//        life, and cut operations alike, however many ranks their nodes have.
//   SP2  Numbers are put together in the order of ranks within a node, then in the order of nodes:
//        the same bits on every rank, in every run. Averages divide once, at the end.
//   SP3  A node's memory is written again only when all ranks of the node have read it and what
//        was sent from it has gone.
//   SP4  Nothing of the caller's memory is touched after Run has returned; every part that is sent
//        to a rank in an operation is received in it.
//   SP5  Who finds a rank of any node in another operation says so: ranks of one node show what
//        they do, and of nodes that exchange nothing the first ranks tell each other.
//
// A piece goes through five steps, each a step behind the one before, so that what waits for the
// network is computed beside: post, combine, sum, finish, take.
//
// Belongs to the thread that runs the group's operations.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/train/local/connections.h"
#include "actors/train/local/node_collectives.h"

namespace troupe::train {

/// Bytes of room for a rank's part of an all-gather's piece, over all ranks.
std::size_t ResultBytes(int group_size);

class SpanningPieces final : public NodeCollectives {
 public:
  /// All must outlive it.
  SpanningPieces(SharedArea& area, const Places& places, Connections& connections,
                 const Clock& clock, Absent absent);

  Status Run(const Operation& operation, std::uint64_t seq) override;

 private:
  struct Plan {
    std::uint64_t pieces = 1;
    Step post;                    // my part into my slot
    Step combine;                 // the node's ranks have posted: what goes to other nodes
    Step sum;  // runs when the partial for `combine` is there
    Step take;                    // all results are there
    bool sum_overwrites = false;  // output of `combine`: it must be sent before `sum`
  };
  struct Awaited {
    int peer;
    PartStream::Ticket ticket;
  };
  struct Share {
    std::size_t at, bytes;
  };
  /// The outstanding transfers of a piece.
  struct Slot {
    std::vector<Awaited> partials, results, sent;
    std::unique_ptr<std::byte[]> heard, mine;  // partials of other nodes, and of this one
  };

  Status Dispatch(const Operation& operation) override;
  Status Go(const Plan& plan);
  Status Combine(const Plan& plan, std::uint64_t piece);
  Status Sum(const Plan& plan, std::uint64_t piece);
  Status Finish(std::uint64_t piece);
  Status Take(const Plan& plan, std::uint64_t piece);
  Status AwaitReceived(std::vector<Awaited>& parts);
  Status AwaitSent(std::vector<Awaited>& parts);

  void Send(int peer, std::uint64_t number, Stage stage, const void* from, std::size_t bytes);
  /// Awaited before `sum` where it is partial, else before `take`.
  void Receive(int peer, std::uint64_t number, Stage stage, void* to, std::size_t bytes);
  /// The first ranks of all nodes tell each other what they are in (SP5).
  void ShowPresence(std::uint64_t number);
  /// Returns one of `ways` parts of so many bytes, all but the last of one size, a multiple of 64.
  static Share Cut(std::size_t bytes, int ways, int index);
  void ReduceHere(const Operation& operation, std::uint64_t number, std::size_t slot_at,
                  const std::byte* mine, std::byte* into, std::size_t bytes);
  void ReduceNodes(const Operation& operation, std::uint64_t number, std::size_t apart,
                   const std::byte* mine, std::byte* into, std::size_t bytes);

  Status Reduce(const Operation& operation);
  Status ReduceInOneStep(const Operation& operation);
  Status ReduceScatter(const Operation& operation);
  Status AllGather(const Operation& operation) override;
  Status Gather(const Operation& operation);
  Status Broadcast(const Operation& operation);
  Status Scatter(const Operation& operation);
  Status Exchange(const Operation& operation, const std::vector<std::size_t>& send,
                  const std::vector<std::size_t>& recv, std::size_t pieces) override;

  bool is_alone() const { return area_.size() == 1; }
  bool is_root(const Operation& operation) const { return operation.root == places_.rank(); }
  Slot& SlotOf(std::uint64_t number) { return slots_[number % area_.slots()]; }

  Connections& connections_;
  std::vector<Slot> slots_;
};

}  // namespace troupe::train
