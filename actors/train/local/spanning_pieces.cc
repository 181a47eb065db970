#include "actors/train/local/spanning_pieces.h"

#include <algorithm>
#include <utility>

#include "actors/train/core/reduce.h"

namespace troupe::train {
namespace {

constexpr std::size_t kGatherBytesMin = 4 << 10;

}  // namespace

std::size_t ResultBytes(int group_size) {
  return std::max(kSpanningBytes, kGatherBytesMin * static_cast<std::size_t>(group_size));
}

SpanningPieces::SpanningPieces(SharedArea& area, const Places& places, Connections& connections,
                               const Clock& clock, Absent absent)
    : NodeCollectives(area, places, clock, std::move(absent)),
      connections_(connections),
      slots_(area.slots()) {
  // Parts of a piece are rounded up to 64 bytes each.
  const std::size_t bytes = kSpanningBytes + 64 * static_cast<std::size_t>(places_.nodes() + 1);
  for (auto& slot : slots_) {
    slot.heard = std::make_unique_for_overwrite<std::byte[]>(bytes);
    slot.mine = std::make_unique_for_overwrite<std::byte[]>(bytes);
  }
}

Status SpanningPieces::Run(const Operation& operation, std::uint64_t seq) {
  const Status status = NodeCollectives::Run(operation, seq);
  if (!status.ok()) connections_.EndAll();  // SP4; the group is at its end
  return status;
}

Status SpanningPieces::AwaitReceived(std::vector<Awaited>& parts) {
  for (const auto& part : parts) {
    const PartStream& stream = connections_.parts(part.peer);
    int lost = -1;
    const auto is_over = [&] {
      if (stream.received(part.ticket)) return true;
      lost = stream.ended() ? part.peer : LostPeer();
      return lost >= 0;
    };
    const auto woken = connections_.Await(is_over, clock_, until_);
    if (woken == Woken::kStopped) return Stopped();
    if (woken == Woken::kLate) return Late(part.peer);
    if (stream.received(part.ticket)) continue;
    if (const auto other = stream.other())
      return Differs(places_.rank(), note_, part.peer, other->work);
    return PeerGone(lost);
  }
  parts.clear();
  return absl::OkStatus();
}

Status SpanningPieces::AwaitSent(std::vector<Awaited>& parts) {
  for (const auto& part : parts) {
    const PartStream& stream = connections_.parts(part.peer);
    const auto woken = connections_.Await([&] { return stream.sent(part.ticket); }, clock_, until_);
    if (woken == Woken::kStopped) return Stopped();
    if (woken == Woken::kLate) return Late(part.peer);
  }
  parts.clear();
  return absl::OkStatus();
}

Status SpanningPieces::Combine(const Plan& plan, std::uint64_t piece) {
  const std::uint64_t number = next_ + piece;
  TROUPE_TRY(AwaitHere(&RankLine::posted, number + 1));
  note_.piece = number;
  TROUPE_TRY(CheckHere(number));
  if (number >= area_.slots())  // SP3
    TROUPE_TRY(AwaitHere(&RankLine::taken, number + 1 - area_.slots()));
  TROUPE_TRY(AwaitSent(SlotOf(number).sent));
  if (plan.combine) plan.combine(piece, number);
  return absl::OkStatus();
}

Status SpanningPieces::Sum(const Plan& plan, std::uint64_t piece) {
  const std::uint64_t number = next_ + piece;
  note_.piece = number;
  TROUPE_TRY(AwaitReceived(SlotOf(number).partials));
  if (plan.sum_overwrites) TROUPE_TRY(AwaitSent(SlotOf(number).sent));
  if (plan.sum) plan.sum(piece, number);
  return absl::OkStatus();
}

Status SpanningPieces::Finish(std::uint64_t piece) {
  const std::uint64_t number = next_ + piece;
  note_.piece = number;
  TROUPE_TRY(AwaitReceived(SlotOf(number).results));
  area_.mine().reduced.store(number + 1);
  area_.Ring();
  return absl::OkStatus();
}

Status SpanningPieces::Take(const Plan& plan, std::uint64_t piece) {
  const std::uint64_t number = next_ + piece;
  if (plan.take) {
    TROUPE_TRY(AwaitHere(&RankLine::reduced, number + 1));
    plan.take(piece, number);
  }
  area_.mine().taken.store(number + 1);
  area_.Ring();
  return absl::OkStatus();
}

Status SpanningPieces::Go(const Plan& plan) {
  BeginPieces(plan.pieces, static_cast<bool>(plan.take));
  constexpr std::uint64_t kSteps = 5;
  const auto is_due = [&plan](std::uint64_t step, std::uint64_t behind) {
    return step >= behind && step - behind < plan.pieces;
  };
  for (std::uint64_t step = 0; step < plan.pieces + kSteps - 1; ++step) {
    if (is_due(step, 0)) TROUPE_TRY(Post(plan.post, step));  // SP3
    if (is_due(step, 1)) TROUPE_TRY(Combine(plan, step - 1));
    if (is_due(step, 2)) TROUPE_TRY(Sum(plan, step - 2));
    if (is_due(step, 3)) TROUPE_TRY(Finish(step - 3));
    if (is_due(step, 4)) TROUPE_TRY(Take(plan, step - 4));
  }
  for (auto& slot : slots_) TROUPE_TRY(AwaitSent(slot.sent));  // SP4
  next_ += plan.pieces;
  return absl::OkStatus();
}

void SpanningPieces::Send(int peer, std::uint64_t number, Stage stage, const void* from,
                          std::size_t bytes) {
  note_.piece = number;
  const auto ticket = connections_.parts(peer).Send({note_, stage, 0, bytes}, from);
  SlotOf(number).sent.push_back({peer, ticket});
}

void SpanningPieces::Receive(int peer, std::uint64_t number, Stage stage, void* to,
                             std::size_t bytes) {
  note_.piece = number;
  const auto ticket = connections_.parts(peer).Receive({note_, stage, 0, bytes}, to);
  Slot& slot = SlotOf(number);
  (stage == Stage::kPartial ? slot.partials : slot.results).push_back({peer, ticket});
}

void SpanningPieces::ShowPresence(std::uint64_t number) {
  if (places_.place() != 0) return;
  for (int node = 0; node < places_.nodes(); ++node) {
    if (node == places_.node()) continue;
    Send(places_.leader_of(node), number, Stage::kPresence, nullptr, 0);
    Receive(places_.leader_of(node), number, Stage::kPresence, nullptr, 0);
  }
}

SpanningPieces::Share SpanningPieces::Cut(std::size_t bytes, int ways, int index) {
  const auto parts = static_cast<std::size_t>(ways);
  const std::size_t each = ((bytes + parts - 1) / parts + 63) / 64 * 64;
  const std::size_t from = std::min(each * static_cast<std::size_t>(index), bytes);
  return {from, std::min(each, bytes - from)};
}

void SpanningPieces::ReduceHere(const Operation& operation, std::uint64_t number,
                                std::size_t slot_at, const std::byte* mine, std::byte* into,
                                std::size_t bytes) {
  const ReduceOp op = operation.op == ReduceOp::kAvg ? ReduceOp::kSum : operation.op;
  std::vector<const void*> sources;
  for (int place = 0; place < area_.size(); ++place)
    sources.push_back(place == area_.rank() ? mine : area_.Contributed(place, number) + slot_at);
  ReducerOf(operation.type, op)(into, sources.data(), sources.size(),
                                bytes / WidthOf(operation.type), sources.size());
}

void SpanningPieces::ReduceNodes(const Operation& operation, std::uint64_t number,
                                 std::size_t apart, const std::byte* mine, std::byte* into,
                                 std::size_t bytes) {
  std::vector<const void*> sources;
  for (int node = 0; node < places_.nodes(); ++node)
    sources.push_back(node == places_.node()
                          ? mine
                          : SlotOf(number).heard.get() + apart * static_cast<std::size_t>(node));
  ReducerOf(operation.type, operation.op)(into, sources.data(), sources.size(),
                                          bytes / WidthOf(operation.type),
                                          static_cast<std::size_t>(places_.size()));
}

}  // namespace troupe::train
