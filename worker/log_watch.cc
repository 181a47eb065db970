#include "worker/log_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <cstring>
#include <utility>

#include "runtime/os/text.h"

namespace troupe::worker {

struct LogWatch::Waiter::Signal {
  explicit Signal(const async::Executor& executor) : timer(executor) {}
  void Set() {
    changed = true;
    timer.cancel();
  }
  async::asio::steady_timer timer;
  bool changed = false;
};

StatusOr<std::unique_ptr<LogWatch>> LogWatch::Open(const async::Executor& executor) {
  UniqueFd fd(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!fd.valid()) return os::SystemError("inotify");
  return std::unique_ptr<LogWatch>(new LogWatch(executor, std::move(fd)));
}

LogWatch::LogWatch(const async::Executor& executor, UniqueFd fd)
    : executor_(executor), fd_(std::move(fd)) {
  readable_ = std::make_unique<async::FdWatch>(executor_, fd_.get(), [this] { Readable(); });
}

void LogWatch::Readable() {
  alignas(inotify_event) char buffer[4096];
  ssize_t got;
  while ((got = read(fd_.get(), buffer, sizeof buffer)) > 0) {
    for (ssize_t at = 0; at < got;) {
      inotify_event event;
      std::memcpy(&event, buffer + at, sizeof event);
      at += static_cast<ssize_t>(sizeof event + event.len);
      const auto found = waiters_.find(event.wd);
      if (found == waiters_.end()) continue;
      for (Waiter* waiter : found->second) waiter->Note(event.wd);
    }
  }
}

void LogWatch::WakeAll() {
  for (const auto& [descriptor, waiters] : waiters_) {
    for (Waiter* waiter : waiters) waiter->signal_->Set();
  }
}

void LogWatch::WakeAbsent() {
  const auto found = waiters_.find(-1);
  if (found == waiters_.end()) return;
  const std::set<Waiter*> waiters = found->second;
  for (Waiter* waiter : waiters) waiter->LookForAbsent();
}

LogWatch::Waiter::Waiter(LogWatch& watch, std::vector<std::string> paths)
    : watch_(watch), paths_(std::move(paths)), signal_(std::make_shared<Signal>(watch.executor_)) {
  for (std::size_t i = 0; i < paths_.size(); ++i) Watch(i);
  if (paths_.empty()) watched_[-1];  // known to WakeAll all the same
  for (const auto& [descriptor, places] : watched_) watch_.waiters_[descriptor].insert(this);
}

LogWatch::Waiter::~Waiter() {
  for (const auto& [descriptor, places] : watched_) {
    const auto found = watch_.waiters_.find(descriptor);
    found->second.erase(this);
    if (!found->second.empty()) continue;
    watch_.waiters_.erase(found);
    if (descriptor >= 0) inotify_rm_watch(watch_.fd_.get(), descriptor);
  }
}

void LogWatch::Waiter::Watch(std::size_t path) {
  const int descriptor = inotify_add_watch(watch_.fd_.get(), paths_[path].c_str(), IN_MODIFY);
  watched_[std::max(descriptor, -1)].push_back(path);
}

void LogWatch::Waiter::LookForAbsent() {
  const std::vector<std::size_t> absent = std::exchange(watched_[-1], {});
  const std::size_t before = watched_.size();
  for (const std::size_t path : absent) Watch(path);
  if (watched_.size() == before) return;
  for (const std::size_t path : absent) changed_.insert(path);
  for (const auto& [descriptor, places] : watched_) watch_.waiters_[descriptor].insert(this);
  signal_->Set();
}

void LogWatch::Waiter::Note(int descriptor) {
  const auto places = watched_.find(descriptor);
  if (places != watched_.end()) changed_.insert(places->second.begin(), places->second.end());
  signal_->Set();
}

std::vector<std::size_t> LogWatch::Waiter::Take() {
  const std::set<std::size_t> changed = std::exchange(changed_, {});
  return {changed.begin(), changed.end()};
}

void LogWatch::Waiter::Wake() { signal_->Set(); }

async::Task<void> LogWatch::Waiter::Changed(Duration limit) {
  const std::shared_ptr<Signal> signal = signal_;
  if (!std::exchange(signal->changed, false)) {
    signal->timer.expires_after(limit);
    co_await signal->timer.async_wait(async::kTuple);
    signal->changed = false;
  }
}

}  // namespace troupe::worker
