// A request to the reducer in the name of whoever asks by HTTP, and its answer.
//
// View: one head process, two loops. The head opens a session for it (head/server/http_callers.h):
// roles, ownership, quotas and users are those of a client that came by the same token.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "head/http/access.h"
#include "runtime/async/task.h"
#include "runtime/base/status.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

/// Longer than AskHead's: an answer waits for the journal.
inline constexpr std::chrono::seconds kCallerAnswerLimit{10};

struct CallerRequest {
  HttpCaller caller;
  wire::Message message;
  std::function<void(wire::Message)> answer;  // on the head's loop, once or never
};
/// Runs on the head's loop.
using AskAs = std::function<void(CallerRequest)>;

/// The answer to `body`. kTimeout: it did not come in time, and may have been done; an ErrorReply
/// is its Status.
inline async::Task<StatusOr<wire::Message>> AskAsCaller(async::Executor head, AskAs ask,
                                                        HttpCaller caller, wire::Body body,
                                                        std::string attachment = {}) {
  struct Wait {
    explicit Wait(const async::Executor& executor) : timer(executor, kCallerAnswerLimit) {}
    async::asio::steady_timer timer;
    std::optional<wire::Message> answer;
  };
  const async::Executor own = co_await async::asio::this_coro::executor;
  auto wait = std::make_shared<Wait>(own);
  CallerRequest request;
  request.caller = std::move(caller);
  request.message.body = std::move(body);
  request.message.attachment = std::move(attachment);
  request.answer = [own, wait](wire::Message answer) mutable {
    async::asio::post(own, [wait, answer = std::move(answer)]() mutable {
      wait->answer = std::move(answer);
      wait->timer.cancel();
    });
  };
  async::asio::post(head, [ask = std::move(ask), request = std::move(request)]() mutable {
    ask(std::move(request));
  });
  co_await wait->timer.async_wait(async::kTuple);
  if (!wait->answer) {
    co_return MakeError(ErrorCode::kTimeout,
                        "the head has not answered for 10 s: it may have been done, or be done "
                        "yet");
  }
  if (const auto* error = wire::GetIf<wire::ErrorReply>(&wait->answer->body))
    co_return MakeError(static_cast<ErrorCode>(error->code), error->text);
  co_return *std::move(wait->answer);
}

}  // namespace troupe::head
