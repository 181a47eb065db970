// Requests that wait for records of the archive, by who made them.
//
// A peer leaves no more than kRecallsMax waiting; what a session waits for ends with it.
//
// Pure; a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "head/core/io.h"

namespace troupe::head {

class Recalls {
 public:
  static constexpr std::size_t kRecallsMax = 256;

  /// The ticket of one that waits from now on; nullopt: this session leaves too many waiting.
  std::optional<std::uint64_t> Add(const MessageFrom& request) {
    std::map<std::uint64_t, MessageFrom>& own = waiting_[request.session];
    if (own.size() >= kRecallsMax) return std::nullopt;
    own.emplace(++last_, request);
    return last_;
  }
  std::optional<MessageFrom> Take(const SessionId& session, std::uint64_t ticket) {
    const auto own = waiting_.find(session);
    if (own == waiting_.end()) return std::nullopt;
    const auto found = own->second.find(ticket);
    if (found == own->second.end()) return std::nullopt;
    std::optional<MessageFrom> request = std::move(found->second);
    own->second.erase(found);
    if (own->second.empty()) waiting_.erase(own);
    return request;
  }
  void Drop(const SessionId& session) { waiting_.erase(session); }

 private:
  std::uint64_t last_ = 0;
  std::map<SessionId, std::map<std::uint64_t, MessageFrom>> waiting_;
};

}  // namespace troupe::head
