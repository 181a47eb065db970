// Asks the head's loop from the HTTP server's loop, so that neither waits for the other's thread.
//
// View: one head process, two loops. A question is a function that runs on the head's loop; its
// answer comes back as a value. The HTTP loop must be stopped before what the questions refer to
// is destroyed.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/async/task.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace troupe::head {

inline constexpr std::chrono::seconds kHeadAnswerLimit{5};

inline Status HeadDoesNotAnswer() {
  return MakeError(ErrorCode::kTimeout, "the head's loop has not answered for 5 s: it is held up");
}

/// Suspends until `question` has run on `head`. kTimeout after kHeadAnswerLimit.
template <class Answer>
async::Task<StatusOr<Answer>> AskHead(async::Executor head, std::function<Answer()> question) {
  struct Wait {
    explicit Wait(const async::Executor& executor) : timer(executor, kHeadAnswerLimit) {}
    async::asio::steady_timer timer;
    std::optional<Answer> answer;
  };
  const async::Executor own = co_await async::asio::this_coro::executor;
  auto wait = std::make_shared<Wait>(own);
  async::asio::post(head, [own, wait, question = std::move(question)]() mutable {
    async::asio::post(own, [wait = std::move(wait), answer = question()]() mutable {
      wait->answer = std::move(answer);
      wait->timer.cancel();
    });
  });
  co_await wait->timer.async_wait(async::kTuple);
  if (!wait->answer) co_return HeadDoesNotAnswer();
  co_return *std::move(wait->answer);
}

}  // namespace troupe::head
