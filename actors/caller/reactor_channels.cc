// The channels a reactor reads: who is watched, who has frames that nobody has written yet.
#include <absl/strings/str_format.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "actors/caller/channel.h"
#include "actors/caller/reactor.h"

namespace troupe::actors {

Status CallReactor::Add(const std::shared_ptr<Channel>& channel) {
  MutexLock lock(mutex_);
  if (channel->fd() >= 0) TROUPE_TRY(Watch(*channel));  // else once it has a connection
  channels_.emplace(channel->id(), channel);
  StartBackgroundLocked();
  return absl::OkStatus();
}

Status CallReactor::Watch(Channel& channel) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = channel.id();
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, channel.fd(), &event) == 0) return absl::OkStatus();
  return MakeError(ErrorCode::kConnection, absl::StrFormat("%s: cannot watch its connection: %s",
                                                           channel.description(), strerror(errno)));
}

void CallReactor::Expect(bool more) {
  MutexLock lock(mutex_);
  if (more) {
    ++futures_waiting_;
    WakeBackgroundLocked(true);
  } else {
    --futures_waiting_;
  }
}

void CallReactor::Remove(std::uint64_t channel_id) {
  std::shared_ptr<Channel> last;  // runs its destructor after the lock is released
  MutexLock lock(mutex_);
  const auto found = channels_.find(channel_id);
  if (found == channels_.end()) return;
  last = std::move(found->second);
  channels_.erase(found);
}

void CallReactor::Unwatch(Channel& channel) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, channel.fd(), nullptr);
}

void CallReactor::WatchWrites(Channel& channel, bool on) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  if (on) event.events |= EPOLLOUT;
  event.data.u64 = channel.id();
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, channel.fd(), &event);
}

std::shared_ptr<Channel> CallReactor::Find(std::uint64_t channel_id) {
  MutexLock lock(mutex_);
  const auto found = channels_.find(channel_id);
  return found == channels_.end() ? nullptr : found->second;
}

void CallReactor::CancelStartedBy(std::uint64_t call) {
  if (call == 0) return;
  std::vector<std::shared_ptr<Channel>> channels;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, channel] : channels_) channels.push_back(channel);
  }
  for (const std::shared_ptr<Channel>& channel : channels) channel->CancelStartedBy(call);
}

void CallReactor::MarkStranded(std::uint64_t channel_id) {
  MutexLock lock(mutex_);
  stranded_.push_back(channel_id);
  stranded_count_.store(stranded_.size(), std::memory_order_relaxed);
  WakeBackgroundLocked(false);
}

std::vector<std::shared_ptr<Channel>> CallReactor::TakeStranded() {
  std::vector<std::shared_ptr<Channel>> channels;
  MutexLock lock(mutex_);
  for (const std::uint64_t id : stranded_) {
    const auto found = channels_.find(id);
    if (found != channels_.end()) channels.push_back(found->second);
  }
  stranded_.clear();
  stranded_count_.store(0, std::memory_order_relaxed);
  gate_.NoteActivity();
  return channels;
}

void CallReactor::FlushStranded() {
  for (const std::shared_ptr<Channel>& channel : TakeStranded()) channel->Flush();
}

void CallReactor::Drain(Channel& channel) {
  GateMember self;
  {
    MutexLock lock(mutex_);
    if (!gate_.TryLead(self)) return;
  }
  for (int i = 0; i < 16 && channel.Read(); ++i) {
  }
  MutexLock lock(mutex_);
  LeaveLocked(self);
}

}  // namespace troupe::actors
