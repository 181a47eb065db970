// A connection from the HTTP server to one worker, in the name of whoever asks by HTTP.
//
// View: one head process; on the HTTP server's loop, so that what a worker answers never passes the
// reducer. The worker sees the caller's role, and its token: what that role may not ask is refused
// there, and a token that is revoked ends the connection there, too.
#pragma once

#include <cstdint>
#include <memory>

#include "head/http/access.h"
#include "runtime/async/task.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/net/connection.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

class WorkerLink {
 public:
  explicit WorkerLink(std::shared_ptr<net::Connection> connection)
      : connection_(std::move(connection)) {}
  ~WorkerLink() { Close(); }
  WorkerLink(const WorkerLink&) = delete;
  WorkerLink& operator=(const WorkerLink&) = delete;

  /// The answer to `body`, an ErrorReply as its Status. One question at a time.
  async::Task<StatusOr<wire::Message>> Ask(wire::Body body, Duration limit);
  /// Ends a question that waits.
  void Close();

 private:
  const std::shared_ptr<net::Connection> connection_;
  std::uint64_t next_id_ = 2;  // 1 was the Hello's
};

/// kConnection, kTimeout: the worker cannot be reached. `clock` must outlive the link.
async::Task<StatusOr<std::shared_ptr<WorkerLink>>> DialWorker(wire::NodeInfo node,
                                                              HttpCaller caller,
                                                              MakeCallerCredentials credentials,
                                                              const Clock& clock);

}  // namespace troupe::head
