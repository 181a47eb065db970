#include "head/core/machine/peer_inquiry.h"

#include <algorithm>
#include <utility>

namespace troupe::head {

void PeerInquiry::Ask(std::uint64_t question, std::set<NodeId> peers, Instant now) {
  question_ = question;
  asked_at_ = now;
  awaited_ = std::move(peers);
  answers_.clear();
}

void PeerInquiry::Answer(std::uint64_t question, const NodeId& peer, bool reached) {
  if (!Awaits(question, peer)) return;
  awaited_.erase(peer);
  answers_[peer] = reached;
}

PeerInquiry::Verdict PeerInquiry::At(Instant now, Duration limit) const {
  if (awaited_.empty() && answers_.empty()) return Verdict::kNobodyAsked;
  const bool reached =
      std::any_of(answers_.begin(), answers_.end(), [](const auto& each) { return each.second; });
  if (reached) return Verdict::kReached;
  return awaited_.empty() || now - asked_at_ >= limit ? Verdict::kUnreached : Verdict::kWaiting;
}

std::set<NodeId> PeerInquiry::WhoSaid(bool reached) const {
  std::set<NodeId> peers;
  for (const auto& [peer, answer] : answers_) {
    if (answer == reached) peers.insert(peer);
  }
  return peers;
}

}  // namespace troupe::head
