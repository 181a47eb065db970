#include "worker/core/outbox.h"

namespace troupe::worker {

void Outbox::Post(wire::Message message, Effects* effects) {
  if (registered_) effects->push_back(ToHead{message});
  kept_.push_back(Kept{std::move(message), heartbeat_ + 1});
}

void Outbox::SendNow(wire::Message message, Effects* effects) const {
  if (registered_) effects->push_back(ToHead{std::move(message)});
}

void Outbox::OnRegistered(Effects* effects) {
  registered_ = true;
  for (Kept& each : kept_) {
    each.covered_by = heartbeat_ + 1;
    effects->push_back(ToHead{each.message});
  }
}

void Outbox::OnHeartbeatAck(std::uint64_t sequence) {
  while (!kept_.empty() && kept_.front().covered_by <= sequence) kept_.pop_front();
}

}  // namespace troupe::worker
