#include "actors/train/local/connections.h"

#include <poll.h>

#include <algorithm>
#include <utility>

namespace troupe::train {

Connections::Connections(std::vector<Met> met, int group_size, SharedArea& area, int stop_fd)
    : area_(area),
      stop_fd_(stop_fd),
      parts_(static_cast<std::size_t>(group_size)),
      mails_(parts_.size()) {
  const auto changed = [&area] { area.Nudge(); };
  std::vector<Stream*> streams;
  for (auto& each : met) {
    const auto rank = static_cast<std::size_t>(each.peer);
    if (each.channel == Channel::kParts) {
      const bool is_alone = area.size() == 1;
      parts_[rank] =
          std::make_unique<PartStream>(std::move(each.fd), is_alone ? nullptr : &waker_, changed);
      if (!is_alone) streams.push_back(parts_[rank].get());
    } else {
      mails_[rank] =
          std::make_unique<MailStream>(std::move(each.fd), area.mailbox_bytes(), waker_, changed);
      streams.push_back(mails_[rank].get());
    }
  }
  wire_ = std::make_unique<Wire>(std::move(streams), waker_);
}

void Connections::EndAll() {
  for (int rank = 0; rank < static_cast<int>(parts_.size()); ++rank) End(rank);
}

void Connections::MoveWithin(Duration most) {
  std::vector<pollfd> fds = {{stop_fd_, POLLIN, 0}};
  std::vector<PartStream*> polled;
  for (const auto& each : parts_) {
    const short wants = each ? each->Wants() : short{0};
    if (wants == 0) continue;
    fds.push_back({each->fd(), wants, 0});
    polled.push_back(each.get());
  }
  const auto within = std::clamp<std::int64_t>(Millis(most) + 1, 0, 1 << 30);
  if (poll(fds.data(), fds.size(), static_cast<int>(within)) <= 0) return;
  for (std::size_t i = 0; i < polled.size(); ++i)
    if (fds[i + 1].revents != 0) polled[i]->Move();
}

void Connections::End(int rank) {
  const auto at = static_cast<std::size_t>(rank);
  if (parts_[at]) parts_[at]->End();
  if (mails_[at]) mails_[at]->End();
}

}  // namespace troupe::train
