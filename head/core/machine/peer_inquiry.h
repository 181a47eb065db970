// Peers' answers about a silent node: a head that hears nothing of a node may itself be cut off
// (decision 19), so that others are asked whether the node answers them.
//
// Pure; view: the head's, of one node. A round at a time; answers of an earlier round count no
// more.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "runtime/base/ids.h"
#include "runtime/base/time.h"

namespace troupe::head {

class PeerInquiry {
 public:
  enum class Verdict : std::uint8_t {
    kNobodyAsked,
    kWaiting,    // an answer may still come
    kReached,    // at least one peer has had an answer of it
    kUnreached,  // every answer was that it does not answer; or none came in time
  };

  /// Another round. `question` tells its answers from those of earlier ones; never 0.
  void Ask(std::uint64_t question, std::set<NodeId> peers, Instant now);
  /// The node was heard: nothing is asked any more.
  void Close() { *this = PeerInquiry(); }
  bool open() const { return question_ != 0; }
  bool Awaits(std::uint64_t question, const NodeId& peer) const {
    return question == question_ && awaited_.count(peer) > 0;
  }
  /// The head itself was held up for that long, and read no answer.
  void Extend(Duration by) { asked_at_ += by; }
  /// An answer; one that was not asked for changes nothing.
  void Answer(std::uint64_t question, const NodeId& peer, bool reached);
  /// Peers have `limit` to answer.
  Verdict At(Instant now, Duration limit) const;
  Instant asked_at() const { return asked_at_; }
  /// Returns the peers that answered so.
  std::set<NodeId> WhoSaid(bool reached) const;

 private:
  std::uint64_t question_ = 0;
  Instant asked_at_{};
  std::set<NodeId> awaited_;
  std::map<NodeId, bool> answers_;
};

}  // namespace troupe::head
