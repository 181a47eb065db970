#include "actors/train/local/peer_watch.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "runtime/base/signals_blocked.h"

namespace troupe::train {

PeerWatch::PeerWatch(std::vector<PeerLink> links, const Clock& clock, Hooks hooks)
    : links_(std::move(links)),
      clock_(clock),
      hooks_(std::move(hooks)),
      end_(eventfd(0, EFD_CLOEXEC)) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { Run(); });
}

PeerWatch::~PeerWatch() {
  const std::uint64_t one = 1;
  while (write(end_.get(), &one, sizeof one) < 0) continue;
  thread_.join();
}

void PeerWatch::TellAll(FrameKind kind, std::string_view text) {
  for (auto& link : links_) link.Tell(kind, text);
}

std::map<int, std::string> PeerWatch::Ask(const std::vector<int>& peers, std::string_view text,
                                          Duration most) {
  const Instant until = clock_.Now() + most;
  {
    MutexLock lock(mutex_);
    answers_.clear();
  }
  std::size_t asked = 0;
  for (auto& link : links_)
    if (std::find(peers.begin(), peers.end(), link.peer()) != peers.end())
      asked += link.Tell(FrameKind::kAsks, text) ? 1 : 0;
  MutexLock lock(mutex_);
  while (answers_.size() < asked) {
    const Duration left = until - clock_.Now();
    if (left <= Duration::zero()) break;
    changed_.WaitFor(mutex_, left);
  }
  return answers_;
}

void PeerWatch::Run() {
  std::vector<bool> heard_all(links_.size());
  for (;;) {
    std::vector<pollfd> fds = {{end_.get(), POLLIN, 0}};
    for (std::size_t i = 0; i < links_.size(); ++i)
      fds.push_back({heard_all[i] ? -1 : links_[i].fd(), POLLIN, 0});
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[0].revents != 0) return;
    for (std::size_t i = 0; i < links_.size(); ++i)
      if (fds[i + 1].revents != 0) heard_all[i] = !Hear(links_[i]);
  }
}

bool PeerWatch::Hear(PeerLink& link) {
  for (;;) {
    const auto frame = link.Next();
    if (frame.ok() && frame->kind == FrameKind::kLeaves) {
      hooks_.on_gone(link, PeerFate::kLeft);
      return false;
    }
    if (frame.ok() && frame->kind == FrameKind::kAsks) {
      link.Tell(FrameKind::kAnswers, hooks_.on_asked(frame->text));
      continue;
    }
    if (frame.ok() && frame->kind == FrameKind::kAnswers) {
      MutexLock lock(mutex_);
      answers_[link.peer()] = frame->text;
      changed_.NotifyAll();
      continue;
    }
    if (frame.ok()) {
      hooks_.on_stopped(link.peer(), frame->text);
      return false;
    }
    if (ErrorCodeOf(frame.status()) == ErrorCode::kNotFound) return true;
    const bool is_silent = ErrorCodeOf(frame.status()) == ErrorCode::kTimeout;
    hooks_.on_gone(link, is_silent ? PeerFate::kSilent : PeerFate::kEnded);
    return false;
  }
}

}  // namespace troupe::train
