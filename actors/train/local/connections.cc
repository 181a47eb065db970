#include "actors/train/local/connections.h"

#include <utility>

namespace troupe::train {

Connections::Connections(std::vector<Met> met, int group_size, SharedArea& area)
    : parts_(static_cast<std::size_t>(group_size)), mails_(parts_.size()) {
  const auto changed = [&area] { area.Nudge(); };
  std::vector<Stream*> streams;
  for (auto& each : met) {
    const auto rank = static_cast<std::size_t>(each.peer);
    if (each.channel == Channel::kParts) {
      parts_[rank] = std::make_unique<PartStream>(std::move(each.fd), waker_, changed);
      streams.push_back(parts_[rank].get());
    } else {
      mails_[rank] =
          std::make_unique<MailStream>(std::move(each.fd), area.mailbox_bytes(), waker_, changed);
      streams.push_back(mails_[rank].get());
    }
  }
  wire_ = std::make_unique<Wire>(std::move(streams), waker_);
}

void Connections::EndAll() { wire_->EndAll(); }

void Connections::End(int rank) {
  const auto at = static_cast<std::size_t>(rank);
  if (parts_[at]) parts_[at]->End();
  if (mails_[at]) mails_[at]->End();
}

}  // namespace troupe::train
