// Connections to the head: ordered while they live, cut anywhere when they end.
//
// A connection has two ends that learn of its end at different times; a new one may be open before
// the head has seen the old one close. A partition holds both directions or one; what is in flight
// when a connection is reset arrives as a prefix. Duplicates repeat whole messages: every message
// of the protocol is idempotent, so none may matter.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "runtime/wire/messages.h"
#include "tests/sim/fault_plan.h"
#include "tests/sim/sim_loop.h"

namespace troupe::sim {

/// A connection as one end sees it.
struct EndPoint {
  std::function<void(wire::Message)> on_message;
  std::function<void()> on_closed;
};

class Link : public std::enable_shared_from_this<Link> {
 public:
  Link(SimLoop& loop, const FaultPlan& plan) : loop_(loop), plan_(plan) {}

  void Open(EndPoint head, EndPoint peer) {
    head_ = std::move(head);
    peer_ = std::move(peer);
    open_ = true;
  }
  void ToHead(wire::Message message) { Carry(std::move(message), to_head_, head_); }
  void ToPeer(wire::Message message) { Carry(std::move(message), to_peer_, peer_); }

  /// Ends it: what arrives before an end learns of it is a prefix of what was sent.
  void Reset() {
    if (!open_) return;
    open_ = false;
    Cut(to_head_, head_);
    Cut(to_peer_, peer_);
  }
  void Hold(Instant until, bool to_head, bool to_peer) {
    if (to_head) to_head_.held_until = std::max(to_head_.held_until, until);
    if (to_peer) to_peer_.held_until = std::max(to_peer_.held_until, until);
  }
  bool open() const { return open_; }

 private:
  struct Direction {
    Instant last{};  // delivery of the latest message: order is kept
    Instant cut = Instant::max();
    Instant held_until{};
  };
  Duration Latency() { return loop_.Between(std::chrono::microseconds(50), plan_.latency_most); }

  void Carry(wire::Message message, Direction& direction, EndPoint& to) {
    if (!open_) return;
    const bool twice = loop_.random().Chance(plan_.duplicate_permille) &&
                       !wire::Holds<wire::RegisterNode>(message.body);
    if (twice) Deliver(message, direction, to);
    Deliver(std::move(message), direction, to);
  }
  void Deliver(wire::Message message, Direction& direction, EndPoint& to) {
    direction.last = std::max(
        {direction.last + Duration(1), loop_.Now() + Latency(), direction.held_until + Latency()});
    auto self = shared_from_this();
    loop_.At(direction.last, "message", [self, &direction, &to, m = std::move(message)]() mutable {
      if (self->loop_.Now() < direction.cut && to.on_message) to.on_message(std::move(m));
    });
  }
  void Cut(Direction& direction, EndPoint& to) {
    direction.cut = loop_.Now() + Latency() / 2;
    auto self = shared_from_this();
    // A half-open connection is noticed late.
    const Duration noticed =
        loop_.random().Chance(200) ? std::chrono::milliseconds(1500) : Duration{};
    loop_.At(direction.cut + noticed + Latency(), "closed", [self, &to] {
      if (to.on_closed) to.on_closed();
      to = EndPoint();
    });
  }

  SimLoop& loop_;
  const FaultPlan& plan_;
  EndPoint head_;
  EndPoint peer_;
  Direction to_head_;
  Direction to_peer_;
  bool open_ = false;
};

}  // namespace troupe::sim
