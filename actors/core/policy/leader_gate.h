// Election of the thread that does the I/O of a process: one waiting thread leads, the others
// follow. Pure: the caller holds a mutex around every method, and wakes threads in the sink it
// passes (bound statically).
//
//   LG-1  At most one member leads.
//   LG-2  When a leader leaves and members follow, one of them is promoted in the same step.
//   LG-3  A follower that withdraws after it was promoted passes the lead on; none is lost.
//   LG-4  Followers are promoted in the order in which they queued.
//   LG-5  turns() changes whenever the lead changes hands, so that an observer who sees the same
//         number twice, and the gate vacant, knows that nobody led in between.
#pragma once

#include <cstdint>

namespace troupe::actors {

/// A thread's node on its own stack, with which it takes part; intrusive, so that queuing allocates
/// nothing.
class GateMember {
 public:
  bool queued() const { return queued_; }

 private:
  friend class LeaderGate;
  GateMember* before_ = nullptr;
  GateMember* after_ = nullptr;
  bool queued_ = false;
};

class LeaderGate {
 public:
  bool vacant() const { return leader_ == nullptr; }
  bool Leads(const GateMember& member) const { return leader_ == &member; }
  std::uint64_t turns() const { return turns_; }
  /// Counts as a turn: a thread did I/O of its own without leading (it flushed while issuing).
  void NoteActivity() { ++turns_; }

  /// Takes a vacant gate.
  bool TryLead(GateMember& member) {
    if (leader_ != nullptr) return false;
    leader_ = &member;
    ++turns_;
    return true;
  }
  /// Joins the end of the queue. Only when another leads.
  void Follow(GateMember& member) {
    member.queued_ = true;
    member.before_ = last_;
    member.after_ = nullptr;
    (last_ != nullptr ? last_->after_ : first_) = &member;
    last_ = &member;
  }
  /// The leader or a follower goes. `sink.Promote(GateMember&)` is called for who leads next.
  /// Returns true when the gate is vacant afterwards because of this.
  template <class Sink>
  bool Leave(GateMember& member, Sink&& sink) {
    if (member.queued_) Unlink(member);
    if (leader_ != &member) return false;
    ++turns_;
    leader_ = first_;
    if (leader_ == nullptr) return true;
    Unlink(*leader_);
    sink.Promote(*leader_);
    return false;
  }

 private:
  void Unlink(GateMember& member) {
    (member.before_ != nullptr ? member.before_->after_ : first_) = member.after_;
    (member.after_ != nullptr ? member.after_->before_ : last_) = member.before_;
    member.before_ = member.after_ = nullptr;
    member.queued_ = false;
  }

  GateMember* leader_ = nullptr;
  GateMember* first_ = nullptr;
  GateMember* last_ = nullptr;
  std::uint64_t turns_ = 0;
};

}  // namespace troupe::actors
