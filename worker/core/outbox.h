// Messages to the head that must not be lost with a session.
//
// Pure; view: one node. The session is ordered, so the acknowledgement of a heartbeat covers all
// that was sent before it: a message is kept until the first heartbeat after it is acknowledged,
// and sent again after a new registration. The head therefore may see one twice, never none.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "worker/core/effects.h"

namespace troupe::worker {

class Outbox {
 public:
  /// Keeps `message`, and sends it now when registered.
  void Post(wire::Message message, Effects* effects);
  /// Sends without keeping; dropped when not registered.
  void SendNow(wire::Message message, Effects* effects) const;

  void OnRegistered(Effects* effects);
  void OnDisconnected() { registered_ = false; }
  bool registered() const { return registered_; }

  /// The number of the next heartbeat.
  std::uint64_t NextHeartbeat() { return ++heartbeat_; }
  void OnHeartbeatAck(std::uint64_t sequence);
  std::size_t size() const { return kept_.size(); }

 private:
  struct Kept {
    wire::Message message;
    std::uint64_t covered_by;  // the acknowledgement of this heartbeat, or a later one
  };
  std::deque<Kept> kept_;
  std::uint64_t heartbeat_ = 0;
  bool registered_ = false;
};

}  // namespace troupe::worker
