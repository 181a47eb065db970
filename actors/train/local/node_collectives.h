// The common work of both kinds of collectives over memory with the ranks of their node, piece by
// piece: they show each other what they are in, wait for each other, and find who is gone, late or
// elsewhere. Pieces (pieces.h) do no more than that, SpanningPieces (spanning_pieces.h) go to other
// nodes too.
//
// Pieces are numbered through the group's life, on all ranks alike. Belongs to the thread that runs
// the group's operations.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "actors/train/core/places.h"
#include "actors/train/local/collectives.h"

namespace troupe::train {

class NodeCollectives : public Collectives {
 public:
  /// Names the ranks that have not come to the piece of this number, on any node; "" if all have.
  using Absent = std::function<std::string(std::uint64_t number)>;

  Status Run(const Operation& operation, std::uint64_t seq) override;

 protected:
  /// Something that happens in a piece of an operation; `number` is its place in the group's life.
  using Step = std::function<void(std::uint64_t piece, std::uint64_t number)>;

  /// All must outlive it.
  NodeCollectives(SharedArea& area, const Places& places, const Clock& clock, Absent absent)
      : area_(area), places_(places), clock_(clock), absent_(std::move(absent)) {}

  virtual Status Dispatch(const Operation& operation) = 0;
  virtual Status AllGather(const Operation& operation) = 0;
  /// `send` and `recv`: bytes to and from each rank, of which a piece takes a section.
  virtual Status Exchange(const Operation& operation, const std::vector<std::size_t>& send,
                          const std::vector<std::size_t>& recv, std::size_t pieces) = 0;

  /// Exchange() of what all ranks have to send; unequal counts are shown to all first, and
  /// checked.
  Status AllToAll(const Operation& operation, std::size_t section);
  /// An operation of so many pieces begins. `takes`: its results come of all ranks of the node.
  void BeginPieces(std::uint64_t pieces, bool takes);
  /// My part into my slot, once all ranks of the node have read what was in it.
  Status Post(const Step& post, std::uint64_t piece);
  /// Until all ranks of the node have counted so far; kConnection where one is gone before that.
  Status AwaitHere(std::atomic<std::uint64_t> RankLine::* counter, std::uint64_t least);
  /// kInvalid where a rank of the node is in another operation.
  Status CheckHere(std::uint64_t number) const;
  /// A peer of this node that is gone without what this operation will need of it; -1: none.
  int LostPeer() const;
  Status Late(int peer) const;

  std::size_t me() const { return static_cast<std::size_t>(places_.rank()); }
  std::byte* Mine(std::uint64_t number) const { return area_.Contributed(area_.rank(), number); }

  SharedArea& area_;
  const Places& places_;
  const Clock& clock_;
  Instant until_ = Instant::max();  // the operation's time is over then
  std::uint64_t next_ = 0;          // the number of the next piece
  PieceNote note_;                  // the operation that runs

 private:
  const Absent absent_;
  Duration most_{};
  std::uint64_t end_ = 0;  // the number after the operation's last piece
  bool takes_ = false;
};

}  // namespace troupe::train
