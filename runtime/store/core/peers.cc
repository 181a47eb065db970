#include "runtime/store/core/peers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/store/core/borrowed.h"
#include "runtime/store/core/loans.h"
#include "runtime/store/core/owned.h"

namespace troupe::store {
namespace {

bool BorrowsFrom(const State& state, const ProcessId& owner) {
  const BorrowedObjects::OfOwner* const objects = state.borrowed.Of(owner);
  return objects != nullptr && std::any_of(objects->begin(), objects->end(), [](const auto& each) {
           return each.second.state != RefState::kDead;
         });
}

bool AtStake(const State& state, const ProcessId& process, const Peer& peer) {
  return !peer.stream.kept().empty() || !peer.loans_open.empty() || !peer.borrows.empty() ||
         BorrowsFrom(state, process);
}

// Ends all that others shared with a process that nobody can hear of any more: as a lender, an
// owner and a maker.
void EndShared(Turn& turn, const ProcessId& process, std::string_view cause) {
  VoidLoansTo(turn, process);
  ForgetLender(turn, process);
  LoseOwner(turn, process, cause);
  OrphanSlotsOf(turn, process);
}

void Forget(Turn& turn, const ProcessId& process, bool taint) {
  RemoveBorrower(turn, process, taint);
  PeerOf(turn, process).loans_open.clear();
}

struct Apply {
  Turn& turn;
  const ProcessId& from;

  void operator()(const Hold& message) const { OnHold(turn, from, message); }
  void operator()(const HoldOk& message) const { OnHoldOk(turn, from, message); }
  void operator()(const Gone& message) const { OnGone(turn, from, message); }
  void operator()(const Changed& message) const { OnChanged(turn, from, message); }
  void operator()(const Settle& message) const { EndLoan(turn, from, message.loan, message.clean); }
  void operator()(const Recall& message) const { OnRecall(turn, from, message); }
  void operator()(const Drop& message) const { OnDrop(turn, from, message); }
  void operator()(const Withdraw& message) const { OnWithdraw(turn, from, message); }
  void operator()(const Free& message) const {
    turn.effects.push_back(FreeSlot{from, message.slot, message.generation, message.clean});
  }
};

}  // namespace

Peer& PeerOf(Turn& turn, const ProcessId& process) {
  const auto [at, fresh] = turn.state.peers.try_emplace(process);
  if (fresh) turn.effects.push_back(Watch{process});
  return at->second;
}

std::uint64_t Tell(Turn& turn, const ProcessId& process, ControlBody body) {
  Peer& peer = PeerOf(turn, process);
  if (!peer.Reachable()) return 0;
  const ControlFrame& frame = peer.stream.Push(std::move(body));
  if (peer.connected) {
    turn.effects.push_back(SendFrame{process, frame});
  } else if (!peer.unreachable_since) {
    peer.unreachable_since = turn.now;
    turn.effects.push_back(Connect{process});
  }
  if (peer.stream.kept().size() == turn.state.options.frames_kept_max) {
    turn.strikes.emplace_back(process, "it acknowledges nothing");
  }
  return frame.n;
}

Greeting Connected(Turn& turn, const ProcessId& process, std::uint64_t connection,
                   std::uint64_t applied) {
  Peer& peer = PeerOf(turn, process);
  if (!peer.Reachable()) return Greeting::kRefused;
  if (connection <= peer.connection) return Greeting::kFenced;
  if (applied < peer.stream.acknowledged() || !peer.stream.Acknowledge(applied)) {
    turn.strikes.emplace_back(process,
                              "what it says it received was never sent, or is long forgotten");
    return Greeting::kRefused;
  }
  DropsAcknowledged(turn, process, applied);
  peer.connection = connection;
  peer.connected = true;
  peer.unreachable_since.reset();
  if (Is(Mutant::kNoResend)) return Greeting::kResumed;
  for (const ControlFrame& frame : peer.stream.kept()) {
    turn.effects.push_back(SendFrame{process, frame});
  }
  return Greeting::kResumed;
}

void Disconnected(Turn& turn, const ProcessId& process, std::uint64_t connection) {
  Peer& peer = PeerOf(turn, process);
  if (!peer.connected || peer.connection != connection) return;
  peer.connected = false;
  if (!peer.Reachable()) return;
  peer.unreachable_since = turn.now;
  if (AtStake(turn.state, process, peer)) turn.effects.push_back(Connect{process});
  if (Is(Mutant::kEofReleases)) Forget(turn, process, /*taint=*/false);
}

bool OnAck(Turn& turn, const ProcessId& process, std::uint64_t connection,
           std::uint64_t acknowledged) {
  Peer& peer = PeerOf(turn, process);
  const bool current = peer.connected && peer.connection == connection;
  if (peer.struck || (!current && !Is(Mutant::kDupDrop))) return false;
  if (!peer.stream.Acknowledge(acknowledged)) {
    turn.strikes.emplace_back(process, "it acknowledges what was never sent");
    return false;
  }
  DropsAcknowledged(turn, process, acknowledged);
  return true;
}

bool OnFrame(Turn& turn, const ProcessId& process, std::uint64_t connection,
             std::uint64_t acknowledged, const ControlFrame& frame) {
  if (!OnAck(turn, process, connection, acknowledged)) return false;
  switch (PeerOf(turn, process).stream.Take(frame.n)) {
    case ControlStream::Taken::kGap:
      if (Is(Mutant::kNoResend)) return true;
      turn.strikes.emplace_back(process, "it leaves gaps in the numbers of its frames");
      return false;
    case ControlStream::Taken::kRepeat:
      break;
    case ControlStream::Taken::kApply:
      std::visit(Apply{turn, process}, frame.body);
      break;
  }
  turn.effects.push_back(SendAck{process});
  return true;
}

void Strike(Turn& turn, const ProcessId& process, std::string_view why) {
  Peer& peer = PeerOf(turn, process);
  if (!peer.Reachable()) return;
  peer.struck = true;
  peer.connected = false;
  peer.unreachable_since.reset();
  peer.cause = "process " + process.Short() + " is unreachable: " + std::string(why);
  peer.stream = ControlStream();
  peer.drops.clear();
  EndShared(turn, process, peer.cause);
  Forget(turn, process, /*taint=*/!Is(Mutant::kTimeoutForgets));
  turn.effects.push_back(OwnerLost{process, /*dead=*/false});
  turn.effects.push_back(Refuse{process, peer.cause});
}

void Die(Turn& turn, const ProcessId& process, std::string_view cause) {
  const auto found = turn.state.peers.find(process);
  if (found == turn.state.peers.end() || found->second.dead_since) return;
  Peer& peer = found->second;
  const bool struck = peer.struck;
  peer.dead_since = turn.now;
  peer.unreachable_since.reset();
  if (!struck) peer.cause = std::string(cause);
  EndShared(turn, process, peer.cause);
  turn.effects.push_back(OwnerLost{process, /*dead=*/true});
}

void Expire(Turn& turn) {
  const Options& options = turn.state.options;
  std::vector<ProcessId> buried;
  for (auto& [process, peer] : turn.state.peers) {
    if (peer.dead_since) {
      if (*peer.dead_since + options.burial_delay <= turn.now) buried.push_back(process);
    } else if (peer.unreachable_since &&
               *peer.unreachable_since + options.resume_window <= turn.now) {
      peer.unreachable_since.reset();
      if (AtStake(turn.state, process, peer)) {
        turn.strikes.emplace_back(process,
                                  "no connection to it for " +
                                      std::to_string(Millis(options.resume_window) / 1000) + " s");
      }
    }
  }
  for (const ProcessId& process : buried) {
    if (!Is(Mutant::kNoBorrowerVerdict))
      Forget(turn, process, /*taint=*/!Is(Mutant::kDeathReleases));
    turn.state.peers.erase(process);
    turn.effects.push_back(Unwatch{process});
  }
}

std::optional<Instant> NextDeadline(const State& state) {
  std::optional<Instant> next;
  for (const auto& [process, peer] : state.peers) {
    std::optional<Instant> due;
    if (peer.dead_since) {
      due = *peer.dead_since + state.options.burial_delay;
    } else if (peer.unreachable_since) {
      due = *peer.unreachable_since + state.options.resume_window;
    }
    if (due && (!next || *due < *next)) next = due;
  }
  return next;
}

}  // namespace troupe::store
