// The call sessions an actor knows, and for how long it keeps those whose connection is gone. Pure.
//
//   SE-1  A session is found by its id and by who began it; to everybody else it does not exist.
//   SE-2  A detached session is kept for kKept, at most kDetachedMax of them and kDetachedBytesMax
//         bytes in all when another is added; the oldest go first, and the newest is never refused.
//   SE-3  An id is in use at most once.
//
// T is a pointer-like handle of the session; what Expire returns is no longer known here.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/time.h"

namespace troupe::actors {

template <class T>
class SessionTable {
 public:
  static constexpr std::chrono::minutes kKept{10};  // from the end of the connection
  static constexpr std::size_t kDetachedMax = 256;
  static constexpr std::size_t kDetachedBytesMax = 64u << 20;

  /// False: there is one of that id.
  bool Begin(const SessionId& id, std::string who, T session) {
    return sessions_.emplace(id, Entry{std::move(who), std::move(session), std::nullopt}).second;
  }
  /// nullptr: not known, or somebody else's.
  T* Find(const SessionId& id, const std::string& who) {
    const auto found = sessions_.find(id);
    return found == sessions_.end() || found->second.who != who ? nullptr : &found->second.session;
  }
  void Detach(const SessionId& id, Instant now) {
    const auto found = sessions_.find(id);
    if (found == sessions_.end() || found->second.since) return;
    found->second.since = now;
    detached_.emplace(now, id);
  }
  void Attach(const SessionId& id) {
    const auto found = sessions_.find(id);
    if (found != sessions_.end()) Forget(id, found->second);
  }
  void End(const SessionId& id) {
    const auto found = sessions_.find(id);
    if (found == sessions_.end()) return;
    Forget(id, found->second);
    sessions_.erase(found);
  }
  /// Takes out what is over a bound; `bytes` says what one session holds.
  std::vector<T> Expire(Instant now, const std::function<std::size_t(const T&)>& bytes) {
    std::size_t total = 0;
    for (const auto& [since, id] : detached_) total += bytes(sessions_.at(id).session);
    std::vector<T> gone;
    while (!detached_.empty()) {
      const auto [since, id] = *detached_.begin();
      const auto entry = sessions_.find(id);
      const std::size_t held = bytes(entry->second.session);
      const bool crowded =
          detached_.size() > kDetachedMax || (total > kDetachedBytesMax && detached_.size() > 1);
      if (now - since < kKept && !crowded) break;
      total -= held;
      gone.push_back(std::move(entry->second.session));
      detached_.erase(detached_.begin());
      sessions_.erase(entry);
    }
    return gone;
  }
  /// When the oldest detached one is over its time.
  std::optional<Instant> next_expiry() const {
    if (detached_.empty()) return std::nullopt;
    return detached_.begin()->first + kKept;
  }
  std::vector<T> TakeAll() {
    std::vector<T> all;
    for (auto& [id, entry] : sessions_) all.push_back(std::move(entry.session));
    sessions_.clear();
    detached_.clear();
    return all;
  }
  std::size_t size() const { return sessions_.size(); }
  std::size_t detached() const { return detached_.size(); }

 private:
  struct Entry {
    std::string who;
    T session;
    std::optional<Instant> since;  // detached
  };
  void Forget(const SessionId& id, Entry& entry) {
    if (entry.since) detached_.erase({*entry.since, id});
    entry.since.reset();
  }

  std::map<SessionId, Entry> sessions_;
  std::set<std::pair<Instant, SessionId>> detached_;
};

}  // namespace troupe::actors
