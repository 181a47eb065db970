#include "head/server/http_callers.h"

#include <boost/asio/post.hpp>
#include <string>
#include <utility>

#include "runtime/wire/error_reply.h"

namespace troupe::head {
namespace {

constexpr std::uint64_t kRequest = 1;

wire::Message ErrorOf(ErrorCode code, const std::string& text) {
  wire::Message message;
  message.body = wire::ErrorReplyOf(MakeError(code, text));
  return message;
}

}  // namespace

void HttpCallers::Ask(CallerRequest request) {
  if (answers_.size() >= kMax) {
    request.answer(ErrorOf(ErrorCode::kTooLarge, "there are " + std::to_string(kMax) +
                                                     " requests already that change something: "
                                                     "try again in a moment"));
    return;
  }
  SessionOpened opened;
  opened.session = SessionId::Random(random_);
  opened.role = request.caller.role;
  opened.subject = SessionId::Random(random_);
  opened.token = request.caller.token;
  answers_[opened.session] = std::move(request.answer);
  feed_(opened);
  MessageFrom asked;
  asked.session = opened.session;
  asked.message = std::move(request.message);
  asked.message.id = kRequest;
  feed_(asked);
}

bool HttpCallers::Deliver(const Send& send) {
  const auto found = answers_.find(send.to.session);
  if (found == answers_.end()) return false;
  if (send.message.reply_to != kRequest) return true;  // news that nobody waits for
  found->second(send.message);
  found->second = [](const wire::Message&) {};
  // Not within the step of the reducer that has answered.
  async::asio::post(executor_, [this, session = found->first] { End(session); });
  return true;
}

void HttpCallers::End(const SessionId& session) {
  const auto found = answers_.find(session);
  if (found == answers_.end()) return;
  found->second(ErrorOf(ErrorCode::kConnection, "the head has ended the request's session"));
  answers_.erase(found);
  MessageFrom leaving;
  leaving.session = session;
  leaving.message.body = wire::Goodbye();
  feed_(leaving);
  feed_(SessionClosed{session});
}

}  // namespace troupe::head
