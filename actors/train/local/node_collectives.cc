#include "actors/train/local/node_collectives.h"

#include <algorithm>

#include "actors/train/local/local_work.h"

namespace troupe::train {

Status NodeCollectives::Run(const Operation& operation, std::uint64_t seq) {
  note_ = NoteOf(operation, seq);
  most_ = operation.most;
  until_ = most_ > Duration::zero() ? clock_.Now() + most_ : Instant::max();
  return Dispatch(operation);
}

void NodeCollectives::BeginPieces(std::uint64_t pieces, bool takes) {
  end_ = next_ + pieces;
  takes_ = takes;
}

Status NodeCollectives::AwaitHere(std::atomic<std::uint64_t> RankLine::* counter,
                                  std::uint64_t least) {
  for (const int peer : places_.neighbours()) {
    if (peer == places_.rank()) continue;
    const auto& value = area_.line(places_.place_of(peer)).*counter;
    // A peer that is gone has counted what it has counted: who needs no more of it goes on.
    int lost = -1;
    const auto is_over = [&] {
      if (value.load() >= least) return true;
      lost = area_.gone(peer) ? peer : LostPeer();
      return lost >= 0;
    };
    const auto woken = area_.Await(is_over, clock_, until_);
    if (woken == Woken::kStopped) return Stopped();
    if (woken == Woken::kLate) return Late(peer);
    if (lost >= 0 && value.load() < least) return PeerGone(lost);
  }
  return absl::OkStatus();
}

int NodeCollectives::LostPeer() const {
  if (!area_.any_gone()) return -1;
  for (const int peer : places_.neighbours()) {
    const RankLine& line = area_.line(places_.place_of(peer));
    if (peer != places_.rank() && area_.gone(peer) &&
        (line.posted.load() < end_ || (takes_ && line.reduced.load() < end_)))
      return peer;
  }
  return -1;
}

Status NodeCollectives::Late(int peer) const {
  const std::string absent = absent_(next_);
  return MakeError(
      ErrorCode::kTimeout,
      Words(note_) + " was not done after " + SecondsText(most_) +
          ", counted from its beginning on rank " + std::to_string(places_.rank()) + ": " +
          (absent.empty() ? "rank " + std::to_string(peer) + " is behind in it" : absent));
}

Status NodeCollectives::CheckHere(std::uint64_t number) const {
  for (const int peer : places_.neighbours()) {
    if (peer == places_.rank()) continue;
    const PieceNote theirs = area_.line(places_.place_of(peer)).notes[number % area_.slots()];
    if (!SameWork(theirs, note_)) return Differs(places_.rank(), note_, peer, theirs);
  }
  return absl::OkStatus();
}

Status NodeCollectives::Post(const Step& post, std::uint64_t piece) {
  const std::uint64_t number = next_ + piece;
  if (number >= area_.slots())  // PI2, SP3
    TROUPE_TRY(AwaitHere(&RankLine::reduced, number + 1 - area_.slots()));
  if (post) post(piece, number);
  note_.piece = number;
  area_.mine().notes[number % area_.slots()] = note_;
  area_.mine().posted.store(number + 1);
  area_.Ring();
  return absl::OkStatus();
}

Status NodeCollectives::AllToAll(const Operation& operation, std::size_t section) {
  const std::size_t width = WidthOf(operation.type);
  const auto ranks = static_cast<std::size_t>(places_.size());
  std::vector<std::size_t> send(ranks, operation.count * width);
  std::vector<std::size_t> recv(send);
  if (operation.send_counts.empty())
    return Exchange(operation, send, recv, PiecesOf(send[0], section));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    send[rank] = operation.send_counts[rank] * width;
    recv[rank] = operation.recv_counts[rank] * width;
  }
  // All ranks' tables first: they tell how many pieces there are, and that both ends agree.
  std::vector<std::uint64_t> table(ranks * ranks);
  const Operation tables{.kind = Collective::kAllGather,
                         .send = send.data(),
                         .recv = table.data(),
                         .count = ranks,
                         .type = DataType::kUint64};
  TROUPE_TRY(AllGather(tables));
  TROUPE_TRY(CheckCounts(table, recv, me()));
  return Exchange(operation, send, recv,
                  PiecesOf(*std::max_element(table.begin(), table.end()), section));
}

}  // namespace troupe::train
