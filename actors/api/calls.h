// A call of an actor by C++ values: its frame, its answer, the wait for it.
#pragma once

#include <troupe/ref.h>

#include <memory>
#include <string>
#include <utility>

#include "actors/api/actor_link.h"
#include "actors/slots/answer.h"

namespace troupe {

/// The state that a Ref holds.
class RefState {
 public:
  RefState(actors::AnswerRef answer, std::shared_ptr<actors::Channel> channel, std::string method)
      : answer_(std::move(answer)), channel_(std::move(channel)), method_(std::move(method)) {}
  actors::Answer& answer() const { return *answer_; }
  actors::Channel& channel() const { return *channel_; }
  /// "add() of actor Counter(1a2b3c4d)"
  std::string Name() const { return method_ + "() of " + channel_->description(); }

 private:
  const actors::AnswerRef answer_;
  const std::shared_ptr<actors::Channel> channel_;
  const std::string method_;
};

namespace api {

/// Makes the call; blocks while its channel is full. `keeps` lives until its answer is there.
/// Errors: an argument that cannot be sent.
StatusOr<std::shared_ptr<RefState>> IssueCall(ActorLink& link, const std::string& method,
                                              const Value::List& arguments,
                                              std::shared_ptr<void> keeps);

/// When a wait of now is over.
Instant DeadlineOf(const Timeout& timeout);

}  // namespace api
}  // namespace troupe
