#include "head/core/machine/lived_time.h"

#include <algorithm>

namespace troupe::head {
namespace {

std::uint64_t Micros(Duration time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

void Note(Turn& turn, std::uint64_t lived_us) {
  wire::TimePassed passed;
  passed.lived_us = lived_us;
  passed.wall_us = turn.wall_us;
  turn.Append(passed);
  turn.state.lived_at = turn.now;
  if (lived_us > turn.options.retention_us)
    turn.archived_until_us = lived_us - turn.options.retention_us;
}

}  // namespace

std::uint64_t LivedUs(const State& state, Instant now) {
  return state.lived_us + (now > state.lived_at ? Micros(now - state.lived_at) : 0);
}

void BeginLivedTime(Turn& turn) {
  const std::uint64_t seen_us = turn.state.seen_wall_us;
  const std::uint64_t since_us =
      seen_us != 0 && turn.wall_us > seen_us ? turn.wall_us - seen_us : 0;
  Note(turn, turn.state.lived_us + std::min(since_us, Micros(kNoteEvery)));
}

void NoteLivedTime(Turn& turn) {
  if (turn.state.read_only || turn.now - turn.state.lived_at < kNoteEvery) return;
  Note(turn, LivedUs(turn.state, turn.now));
}

std::uint64_t LivedMark(const Turn& turn) { return LivedUs(turn.state, turn.now) + 1; }

std::uint64_t ExpiresUs(const State& state, const wire::TokenWritten& token, Instant now,
                        std::uint64_t wall_us) {
  if (token.revoked || token.created_lived_us == 0 || token.expires_us <= token.created_us)
    return token.expires_us;
  const std::uint64_t end_us = token.created_lived_us - 1 + (token.expires_us - token.created_us);
  const std::uint64_t lived_us = LivedUs(state, now);
  return lived_us >= end_us ? token.expires_us
                            : std::max(token.expires_us, wall_us + (end_us - lived_us));
}

}  // namespace troupe::head
