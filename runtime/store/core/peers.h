// Pairs of processes: their control streams, lost connections, strikes and deaths.
//
// A closed connection counts for nothing. Without one for the resume window, while something
// depends on it, the pair is struck: each side ends what it shares with the other and refuses it
// from then on. Only this node's worker says that a process is dead.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/store/core/turn.h"

namespace troupe::store {

/// The record of a process; made, and watched, when it is first spoken of.
Peer& PeerOf(Turn& turn, const ProcessId& process);
/// Writes a frame of the pair's stream, or keeps it for the connection to come. Its number; 0 when
/// the peer is gone and the frame with it.
std::uint64_t Tell(Turn& turn, const ProcessId& process, ControlBody body);

enum class Greeting {
  kResumed,  // this connection is the pair's; what was not applied is sent again
  kFenced,   // a newer one is there already
  kRefused,  // the pair is struck, or the peer is dead: the other side is to learn that it is
             // struck
};
/// A connection is there; the other side's hello says how far it has applied our stream.
Greeting Connected(Turn& turn, const ProcessId& process, std::uint64_t connection,
                   std::uint64_t applied);
void Disconnected(Turn& turn, const ProcessId& process, std::uint64_t connection);
/// False: this connection does not count (any more), or its peer broke the rules and is struck.
bool OnFrame(Turn& turn, const ProcessId& process, std::uint64_t connection,
             std::uint64_t acknowledged, const ControlFrame& frame);
bool OnAck(Turn& turn, const ProcessId& process, std::uint64_t connection,
           std::uint64_t acknowledged);

void Strike(Turn& turn, const ProcessId& process, std::string_view why);
void Die(Turn& turn, const ProcessId& process, std::string_view cause);

/// Strikes and burials that are due.
void Expire(Turn& turn);
std::optional<Instant> NextDeadline(const State& state);

}  // namespace troupe::store
