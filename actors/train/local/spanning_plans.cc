// The plans of SpanningPieces: what each collective does in a piece's steps.
#include <algorithm>
#include <utility>

#include "actors/train/local/spanning_pieces.h"

namespace troupe::train {
namespace {

constexpr std::size_t kOneStepBytes = 64 << 10;  // bytes that a node sends in one step

std::size_t Down(std::size_t bytes) { return bytes / 64 * 64; }

/// Bytes of an all-to-all's piece for each rank.
std::size_t ExchangedBytes(const Places& places) {
  return Down(kSpanningBytes / static_cast<std::size_t>(places.ranks_of_a_node_max()));
}

}  // namespace

Status SpanningPieces::Dispatch(const Operation& operation) {
  const std::size_t bytes = operation.count * WidthOf(operation.type);
  const auto others = static_cast<std::size_t>(places_.nodes() - 1);
  switch (operation.kind) {
    case Collective::kAllReduce:
    case Collective::kReduce:
      return bytes * others <= kOneStepBytes ? ReduceInOneStep(operation) : Reduce(operation);
    case Collective::kReduceScatter:
      return ReduceScatter(operation);
    case Collective::kAllGather:
      return AllGather(operation);
    case Collective::kGather:
      return Gather(operation);
    case Collective::kBroadcast:
      return Broadcast(operation);
    case Collective::kScatter:
      return Scatter(operation);
    case Collective::kAllToAll:
      return AllToAll(operation, ExchangedBytes(places_));
    case Collective::kBarrier: {
      Plan plan;
      plan.combine = [this](std::uint64_t, std::uint64_t number) { ShowPresence(number); };
      plan.take = [](std::uint64_t, std::uint64_t) {};
      return Go(plan);
    }
    case Collective::kSend:
    case Collective::kRecv:
      break;
  }
  return MakeError(ErrorCode::kInternal, "a send or receive among the collectives");
}

Status SpanningPieces::ReduceInOneStep(const Operation& operation) {
  const std::size_t bytes = operation.count * WidthOf(operation.type);
  const std::size_t apart = (bytes + 63) / 64 * 64;
  const bool all_get = operation.kind == Collective::kAllReduce;
  const bool gets = all_get || is_root(operation);
  const bool node_gets = all_get || places_.is_here(operation.root);
  const bool leads = places_.place() == 0;
  const auto partial = [&](std::uint64_t number) -> const std::byte* {
    return is_alone() ? In(operation) : SlotOf(number).mine.get();
  };
  Plan plan;
  plan.sum_overwrites = is_alone();
  plan.post = [&](std::uint64_t, std::uint64_t number) {
    if (!leads) Copy(Mine(number), In(operation), bytes);
  };
  plan.combine = [&](std::uint64_t, std::uint64_t number) {
    if (!leads) return;
    if (!is_alone())
      ReduceHere(operation, number, 0, In(operation), SlotOf(number).mine.get(), bytes);
    for (int node = 0; node < places_.nodes(); ++node) {
      if (node == places_.node()) continue;
      const int peer = places_.leader_of(node);
      Send(peer, number, Stage::kPartial, partial(number), bytes);
      Receive(peer, number, Stage::kPartial,
              SlotOf(number).heard.get() + apart * static_cast<std::size_t>(node), bytes);
    }
  };
  plan.sum = [&](std::uint64_t, std::uint64_t number) {
    if (leads && node_gets)
      ReduceNodes(operation, number, apart, partial(number),
                  is_alone() ? Out(operation) : area_.Result(number), bytes);
  };
  plan.take = [&](std::uint64_t, std::uint64_t number) {
    if (gets && !is_alone()) Copy(Out(operation), area_.Result(number), bytes);
  };
  return Go(plan);
}

Status SpanningPieces::Reduce(const Operation& operation) {
  const std::size_t total = operation.count * WidthOf(operation.type);
  const int rails = places_.rails(), nodes = places_.nodes(), here = places_.node();
  const bool all_get = operation.kind == Collective::kAllReduce;
  const bool gets = all_get || is_root(operation), is_rail = places_.place() < rails;
  const auto node_gets = [&](int node) {
    return all_get || node == places_.node_of(operation.root);
  };
  const std::size_t each = Down(kSpanningBytes / static_cast<std::size_t>(rails)) *
                           static_cast<std::size_t>(rails);  // rails of a piece
  const auto rail_of = [&](int node) {
    return places_.ranks_of(node)[static_cast<std::size_t>(places_.place())];
  };
  const auto bytes_of = [&](std::uint64_t piece) { return std::min(each, total - piece * each); };
  // The memory in which a piece's results are put together.
  const auto results = [&](std::uint64_t piece, std::uint64_t number) {
    if (!is_alone()) return area_.Result(number);
    return gets ? Out(operation) + piece * each : SlotOf(number).mine.get();
  };
  Plan plan;
  plan.pieces = PiecesOf(total, each);
  plan.post = [&](std::uint64_t piece, std::uint64_t number) {
    for (int rail = 0; !is_alone() && rail < rails; ++rail) {
      const Share share = Cut(bytes_of(piece), rails, rail);
      if (rail != places_.place())
        Copy(Mine(number) + share.at, In(operation) + piece * each + share.at, share.bytes);
    }
  };
  plan.combine = [&](std::uint64_t piece, std::uint64_t number) {
    if (!is_rail) return;
    const Share share = Cut(bytes_of(piece), rails, places_.place());
    const std::byte* partial = In(operation) + piece * each + share.at;
    if (!is_alone()) {
      std::byte* const into = area_.Result(number) + share.at;
      ReduceHere(operation, number, share.at, partial, into, share.bytes);
      partial = into;
    }
    const std::size_t apart = Cut(share.bytes, nodes, 0).bytes;
    const Share own = Cut(share.bytes, nodes, here);
    for (int node = 0; node < nodes; ++node) {
      if (node == here) continue;
      const Share part = Cut(share.bytes, nodes, node);
      Send(rail_of(node), number, Stage::kPartial, partial + part.at, part.bytes);
      Receive(rail_of(node), number, Stage::kPartial,
              SlotOf(number).heard.get() + apart * static_cast<std::size_t>(node), own.bytes);
    }
  };
  plan.sum = [&](std::uint64_t piece, std::uint64_t number) {
    if (!is_rail) return;
    const Share share = Cut(bytes_of(piece), rails, places_.place());
    const std::size_t apart = Cut(share.bytes, nodes, 0).bytes;
    const Share own = Cut(share.bytes, nodes, here);
    std::byte* const result = results(piece, number) + share.at;
    const std::byte* const partial = is_alone() ? In(operation) + piece * each + share.at : result;
    ReduceNodes(operation, number, apart, partial + own.at, result + own.at, own.bytes);
    for (int node = 0; node < nodes; ++node) {
      if (node == here) continue;
      const Share part = Cut(share.bytes, nodes, node);
      if (node_gets(node)) Send(rail_of(node), number, Stage::kResult, result + own.at, own.bytes);
      if (node_gets(here))
        Receive(rail_of(node), number, Stage::kResult, result + part.at, part.bytes);
    }
  };
  plan.take = [&](std::uint64_t piece, std::uint64_t number) {
    if (gets && !is_alone())
      Copy(Out(operation) + piece * each, area_.Result(number), bytes_of(piece));
  };
  return Go(plan);
}

Status SpanningPieces::ReduceScatter(const Operation& operation) {
  const std::size_t block = operation.count * WidthOf(operation.type);
  const std::size_t section = Down(kSpanningBytes / static_cast<std::size_t>(places_.size()));
  const auto at_of = [&](int rank, std::uint64_t piece) {
    return block * static_cast<std::size_t>(rank) + piece * section;
  };
  const auto bytes_of = [&](std::uint64_t piece) {
    return std::min(section, block - piece * section);
  };
  /// This node's part of what a rank gets.
  const auto partial = [&](int rank, std::uint64_t piece, std::uint64_t number) {
    return is_alone() ? In(operation) + at_of(rank, piece)
                      : SlotOf(number).mine.get() + section * static_cast<std::size_t>(rank);
  };
  Plan plan;
  plan.pieces = PiecesOf(block, section);
  plan.post = [&](std::uint64_t piece, std::uint64_t number) {
    for (int rank = 0; rank < places_.size(); ++rank)
      if (places_.Serving(places_.node(), rank) != places_.rank())
        Copy(Mine(number) + section * static_cast<std::size_t>(rank),
             In(operation) + at_of(rank, piece), bytes_of(piece));
  };
  plan.combine = [&](std::uint64_t piece, std::uint64_t number) {
    const std::size_t bytes = bytes_of(piece);
    for (int rank = 0; rank < places_.size(); ++rank) {
      if (places_.Serving(places_.node(), rank) != places_.rank()) continue;
      const std::size_t in_slot = section * static_cast<std::size_t>(rank);
      if (!is_alone())
        ReduceHere(operation, number, in_slot, In(operation) + at_of(rank, piece),
                   SlotOf(number).mine.get() + in_slot, bytes);
      if (!places_.is_here(rank))
        Send(rank, number, Stage::kPartial, partial(rank, piece, number), bytes);
    }
    for (int node = 0; node < places_.nodes(); ++node)
      if (node != places_.node())
        Receive(places_.Serving(node, places_.rank()), number, Stage::kPartial,
                SlotOf(number).heard.get() + section * static_cast<std::size_t>(node), bytes);
  };
  plan.sum = [&](std::uint64_t piece, std::uint64_t number) {
    ReduceNodes(operation, number, section, partial(places_.rank(), piece, number),
                Out(operation) + piece * section, bytes_of(piece));
  };
  return Go(plan);
}

Status SpanningPieces::AllGather(const Operation& operation) {
  const std::size_t block = operation.count * WidthOf(operation.type);
  const std::size_t each = std::min(
      kSpanningBytes, Down(ResultBytes(places_.size()) / static_cast<std::size_t>(places_.size())));
  const auto bytes_of = [&](std::uint64_t piece) { return std::min(each, block - piece * each); };
  const auto out = [&](int rank, std::uint64_t piece) {
    return Out(operation) + block * static_cast<std::size_t>(rank) + piece * each;
  };
  const auto result = [&](int rank, std::uint64_t number) {
    return area_.Result(number) + each * static_cast<std::size_t>(rank);
  };
  Plan plan;
  plan.pieces = PiecesOf(block, each);
  plan.post = [&](std::uint64_t piece, std::uint64_t number) {
    const std::byte* const mine = In(operation) + piece * each;
    if (!is_alone()) Copy(Mine(number), mine, bytes_of(piece));
    Copy(out(places_.rank(), piece), mine, bytes_of(piece));
  };
  plan.combine = [&](std::uint64_t piece, std::uint64_t number) {
    const std::size_t bytes = bytes_of(piece);
    for (int node = 0; node < places_.nodes(); ++node)
      if (node != places_.node())
        Send(places_.Serving(node, places_.rank()), number, Stage::kData,
             In(operation) + piece * each, bytes);
    for (int rank = 0; rank < places_.size(); ++rank) {
      if (places_.is_here(rank)) {
        if (rank != places_.rank())
          Copy(out(rank, piece), area_.Contributed(places_.place_of(rank), number), bytes);
      } else if (places_.Serving(places_.node(), rank) == places_.rank()) {
        Receive(rank, number, Stage::kData, is_alone() ? out(rank, piece) : result(rank, number),
                bytes);
      }
    }
  };
  plan.take = [&](std::uint64_t piece, std::uint64_t number) {
    for (int rank = 0; !is_alone() && rank < places_.size(); ++rank)
      if (!places_.is_here(rank)) Copy(out(rank, piece), result(rank, number), bytes_of(piece));
  };
  return Go(plan);
}

Status SpanningPieces::Gather(const Operation& operation) {
  const std::size_t block = operation.count * WidthOf(operation.type);
  const bool gets = is_root(operation), root_is_here = places_.is_here(operation.root);
  const auto bytes_of = [&](std::uint64_t piece) {
    return std::min(kSpanningBytes, block - piece * kSpanningBytes);
  };
  const auto out = [&](int rank, std::uint64_t piece) {
    return Out(operation) + block * static_cast<std::size_t>(rank) + piece * kSpanningBytes;
  };
  Plan plan;
  plan.pieces = PiecesOf(block, kSpanningBytes);
  plan.post = [&](std::uint64_t piece, std::uint64_t number) {
    const std::byte* const mine = In(operation) + piece * kSpanningBytes;
    if (gets)
      Copy(out(places_.rank(), piece), mine, bytes_of(piece));
    else if (root_is_here)
      Copy(Mine(number), mine, bytes_of(piece));
  };
  plan.combine = [&](std::uint64_t piece, std::uint64_t number) {
    if (piece == 0) ShowPresence(number);
    if (piece == 0 && !root_is_here)
      Send(operation.root, number, Stage::kData, In(operation), block);
    for (int rank = 0; gets && rank < places_.size(); ++rank) {
      if (rank == places_.rank()) continue;
      if (places_.is_here(rank))
        Copy(out(rank, piece), area_.Contributed(places_.place_of(rank), number), bytes_of(piece));
      else if (piece == 0)
        Receive(rank, number, Stage::kData, out(rank, 0), block);
    }
  };
  return Go(plan);
}

Status SpanningPieces::Broadcast(const Operation& operation) {
  const std::size_t total = operation.count * WidthOf(operation.type);
  const bool gives = is_root(operation);
  const int root_node = places_.node_of(operation.root);
  const Route route = BroadcastRoute(root_node, places_.node(), places_.nodes(), total);
  const auto leader = [&](int node) {
    return node == root_node ? operation.root : places_.leader_of(node);
  };
  const bool leads = leader(places_.node()) == places_.rank();
  const auto bytes_of = [&](std::uint64_t piece) {
    return std::min(kSpanningBytes, total - piece * kSpanningBytes);
  };
  const auto out = [&](std::uint64_t piece) { return Out(operation) + piece * kSpanningBytes; };
  const auto go_on = [&](std::uint64_t piece, std::uint64_t number, const std::byte* from) {
    for (const int node : route.to)
      Send(leader(node), number, Stage::kPartial, from, bytes_of(piece));
  };
  const auto landing = [&](std::uint64_t piece, std::uint64_t number) {
    return is_alone() ? out(piece) : area_.Result(number);
  };
  Plan plan;
  plan.pieces = PiecesOf(total, kSpanningBytes);
  plan.combine = [&](std::uint64_t piece, std::uint64_t number) {
    const std::byte* const mine = In(operation) + piece * kSpanningBytes;
    if (piece == 0) ShowPresence(number);
    if (gives) {
      Copy(landing(piece, number), mine, bytes_of(piece));
      go_on(piece, number, mine);
      Copy(out(piece), mine, bytes_of(piece));
    } else if (leads) {
      Receive(leader(route.from), number, Stage::kPartial, landing(piece, number), bytes_of(piece));
    }
  };
  plan.sum = [&](std::uint64_t piece, std::uint64_t number) {
    if (leads && !gives) go_on(piece, number, landing(piece, number));
  };
  plan.take = [&](std::uint64_t piece, std::uint64_t number) {
    if (!gives && !is_alone()) Copy(out(piece), area_.Result(number), bytes_of(piece));
  };
  return Go(plan);
}

Status SpanningPieces::Scatter(const Operation& operation) {
  const std::size_t block = operation.count * WidthOf(operation.type);
  const std::size_t section =
      Down(kSpanningBytes / static_cast<std::size_t>(places_.ranks_of_a_node_max()));
  const bool gives = is_root(operation), root_is_here = places_.is_here(operation.root);
  const auto bytes_of = [&](std::uint64_t piece) {
    return std::min(section, block - piece * section);
  };
  const auto in = [&](int rank, std::uint64_t piece) {
    return In(operation) + block * static_cast<std::size_t>(rank) + piece * section;
  };
  const auto in_slot = [&](int rank) {
    return section * static_cast<std::size_t>(places_.place_of(rank));
  };
  Plan plan;
  plan.pieces = PiecesOf(block, section);
  plan.post = [&](std::uint64_t piece, std::uint64_t number) {
    if (!gives) return;
    for (const int rank : places_.neighbours())
      Copy(rank == places_.rank() ? Out(operation) + piece * section : Mine(number) + in_slot(rank),
           in(rank, piece), bytes_of(piece));
  };
  plan.combine = [&](std::uint64_t piece, std::uint64_t number) {
    if (piece == 0) {
      ShowPresence(number);
      for (int rank = 0; gives && rank < places_.size(); ++rank)
        if (!places_.is_here(rank)) Send(rank, number, Stage::kData, in(rank, 0), block);
      if (!root_is_here) Receive(operation.root, number, Stage::kData, Out(operation), block);
    }
    if (root_is_here && !gives)
      Copy(Out(operation) + piece * section,
           area_.Contributed(places_.place_of(operation.root), number) + in_slot(places_.rank()),
           bytes_of(piece));
  };
  return Go(plan);
}

Status SpanningPieces::Exchange(const Operation& operation, const std::vector<std::size_t>& send,
                                const std::vector<std::size_t>& recv, std::size_t pieces) {
  const std::size_t section = ExchangedBytes(places_);
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  std::size_t sent = 0, got = 0;
  for (std::size_t rank = 0; rank < send.size(); ++rank) {
    from.push_back(In(operation) + sent);
    to.push_back(Out(operation) + got);
    sent += send[rank];
    got += recv[rank];
  }
  const auto part = [&](std::uint64_t piece, std::size_t bytes) {
    const std::size_t at = std::min(piece * section, bytes);
    return Share{at, std::min(section, bytes - at)};
  };
  Plan plan;
  plan.pieces = pieces;
  plan.post = [&](std::uint64_t piece, std::uint64_t number) {
    for (const int rank : places_.neighbours()) {
      const auto index = static_cast<std::size_t>(rank);
      const auto [at, bytes] = part(piece, send[index]);
      if (rank == places_.rank())
        Copy(to[index] + at, from[index] + at, bytes);
      else
        Copy(Mine(number) + section * static_cast<std::size_t>(places_.place_of(rank)),
             from[index] + at, bytes);
    }
  };
  plan.combine = [&](std::uint64_t piece, std::uint64_t number) {
    for (int rank = 0; rank < places_.size(); ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      if (places_.is_here(rank)) {
        const auto [at, bytes] = part(piece, recv[index]);
        if (rank != places_.rank())
          Copy(to[index] + at,
               area_.Contributed(places_.place_of(rank), number) +
                   section * static_cast<std::size_t>(area_.rank()),
               bytes);
      } else if (piece == 0) {
        Send(rank, number, Stage::kData, from[index], send[index]);
        Receive(rank, number, Stage::kData, to[index], recv[index]);
      }
    }
  };
  return Go(plan);
}

}  // namespace troupe::train
