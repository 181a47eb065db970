// Sessions of the reducer for requests that came by HTTP: one for each, until it is answered.
//
// View: one head process; on the head's loop. A session is a client's, by the token that the caller
// showed, so quotas, users and roles are as for any client. Nothing lasts that is not detached.
#pragma once

#include <cstddef>
#include <functional>
#include <map>

#include "head/core/machine/io.h"
#include "head/http/acts/caller_request.h"
#include "runtime/base/random.h"

namespace troupe::head {

class HttpCallers {
 public:
  static constexpr std::size_t kMax = 64;  // at a time

  /// `feed` hands an input to the reducer. References must outlive it.
  HttpCallers(async::Executor executor, Random& random, std::function<void(const Input&)> feed)
      : executor_(std::move(executor)), random_(random), feed_(std::move(feed)) {}

  void Ask(CallerRequest request);
  /// False: the session is none of these.
  bool Deliver(const Send& send);
  /// The reducer has closed a session: its request is not answered.
  void Close(const SessionId& session) { End(session); }

 private:
  void End(const SessionId& session);

  const async::Executor executor_;
  Random& random_;
  const std::function<void(const Input&)> feed_;
  std::map<SessionId, std::function<void(wire::Message)>> answers_;
};

}  // namespace troupe::head
