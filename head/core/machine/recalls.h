// Requests that wait for records of the archive, by who made them.
//
// A peer leaves no more than kRecallsMax waiting, with kRecallBytesMax of attachments; what a
// session waits for ends with it.
//
// Pure; a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "head/core/machine/io.h"

namespace troupe::head {

class Recalls {
 public:
  static constexpr std::size_t kRecallsMax = 256;
  static constexpr std::size_t kRecallBytesMax = 64u << 20;

  /// The ticket of one that waits from now on; nullopt: this session leaves too many waiting.
  std::optional<std::uint64_t> Add(const MessageFrom& request) {
    Own& own = waiting_[request.session];
    const std::size_t bytes = own.bytes + request.message.attachment.size();
    if (own.requests.size() >= kRecallsMax || bytes > kRecallBytesMax) return std::nullopt;
    own.requests.emplace(++last_, request);
    own.bytes = bytes;
    return last_;
  }
  std::optional<MessageFrom> Take(const SessionId& session, std::uint64_t ticket) {
    const auto own = waiting_.find(session);
    if (own == waiting_.end()) return std::nullopt;
    const auto found = own->second.requests.find(ticket);
    if (found == own->second.requests.end()) return std::nullopt;
    std::optional<MessageFrom> request = std::move(found->second);
    own->second.requests.erase(found);
    own->second.bytes -= request->message.attachment.size();
    if (own->second.requests.empty()) waiting_.erase(own);
    return request;
  }
  void Drop(const SessionId& session) { waiting_.erase(session); }

 private:
  struct Own {
    std::map<std::uint64_t, MessageFrom> requests;
    std::size_t bytes = 0;
  };
  std::uint64_t last_ = 0;
  std::map<SessionId, Own> waiting_;
};

}  // namespace troupe::head
