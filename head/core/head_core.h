// HeadCore: everything the head decides, as a deterministic step function.
//
// (state, input, now) -> effects. No clock, thread, socket or disk in here: the shell (head/server)
// and the simulator (tests/sim) carry inputs in and effects out. View: the cluster.
//
// Durable before visible (S5): an effect's sends leave only after every event appended up to then
// is durable. The core holds them back itself and hands them out at Appended; heartbeat
// acknowledgements too, since a worker forgets what it sent before an acknowledged heartbeat. The
// shell's duties are: append the rows in order, as one batch; never reorder sends of one session;
// report Appended; stop for ever if an append fails. The queue is not gone over with every input
// but when PlanNow is handed in, once for all that came meanwhile.
//   HeadCore core(options, seams);
//   for (const Row& row : journal) core.Replay(row);  // a snapshot's events, then what followed it
//   Effects first = core.Start(now, wall_us);
//   Effects next = core.Handle(MessageFrom{session, relay, message}, now, wall_us);
#pragma once

#include <cstdint>
#include <deque>

#include "head/core/machine/io.h"
#include "head/core/machine/options.h"
#include "head/core/machine/seams.h"
#include "head/core/machine/state.h"
#include "head/core/machine/turn.h"

namespace troupe::head {

class HeadCore {
 public:
  HeadCore(CoreOptions options, Seams seams) : options_(std::move(options)), seams_(seams) {
    state_.users.self = options_.user;
  }
  HeadCore(const HeadCore&) = delete;
  HeadCore& operator=(const HeadCore&) = delete;

  /// Takes in one row of the journal, in order, before Start.
  void Replay(const Row& row);
  /// A head of this incarnation has been, which the journal need not know: the next is above it.
  /// Between Replay and Start.
  void NoteIncarnation(std::uint64_t seen);
  /// A new incarnation begins: everything journaled gets a full lease.
  Effects Start(Instant now, std::uint64_t wall_us);
  /// Takes in one input and returns what follows from it. Never blocks; cost is that of the reducer
  /// it reaches.
  Effects Handle(const Input& input, Instant now, std::uint64_t wall_us);

  /// For the shell's authentication and for checkers; changes only in Handle.
  const State& state() const { return state_; }
  const CoreOptions& options() const { return options_; }
  /// A turn to look at the state in, for functions that make views of it. It lives shorter than the
  /// next Handle; what is appended or sent in it is lost.
  Turn TurnToLook(Instant now, std::uint64_t wall_us) {
    return {state_, options_, seams_, now, wall_us};
  }
  /// Returns such a turn for a state that was made of records of the archive, on any thread.
  Turn TurnToLookAt(State& state, Instant now, std::uint64_t wall_us) const {
    return {state, options_, seams_, now, wall_us};
  }
  /// The listening address, known once the shell has bound it.
  void set_address(std::string address) { options_.address = std::move(address); }
  std::uint64_t last_sequence() const { return last_sequence_; }
  std::uint64_t durable_sequence() const { return durable_; }

 private:
  struct Held {
    std::uint64_t after = 0;  // leaves once this event is durable
    Instant since{};          // and has waited from then on
    std::variant<Send, Close> effect;
  };
  Effects Finish(Turn& turn);
  void ForgiveWait(Turn& turn);

  CoreOptions options_;
  Seams seams_;
  State state_;
  std::uint64_t last_sequence_ = 0;
  std::uint64_t durable_ = 0;
  std::deque<Held> held_;
  Instant forgiven_{};  // until when the waiting for the disk has extended leases
  std::optional<Instant> wake_at_;
  bool plan_asked_ = false;
  bool stopping_ = false;
};

}  // namespace troupe::head
