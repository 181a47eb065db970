// The control channel of a driver, of the CLI, and of a rank or actor process to its worker.
//
// View: one process. Thread-safe: any thread may ask; answers are matched by id. One background
// thread with one io_context does the I/O; it is started by Connect or Adopt, never at import, and
// needs no Python lock. Request and NextPush block the calling thread until their deadline, and
// call its poll hook every 50 ms (Python runs its signal handlers there; an error from it ends the
// wait). When the connection is lost, every pending and later call ends with kConnection, naming
// the peer. A client connected with a `return_limit` comes back instead: it dials the same address
// as the same client (redial.h), sends again what was not answered, in order, and time away does
// not count against a request's limit. The few requests that may not be repeated (wire/repeat.h)
// end with kUnknownOutcome. NextPush then gives an ErrorReply (lost) and, once back, the new
// Welcome: what was watched must be watched again. A peer that says Goodbye is not dialled again.
// In a forked child the object is inert. What the peer sends unasked is queued for NextPush, or
// handed to a callback of its kind; a program that lets 64 MiB pile up is disconnected. Example:
//   TROUPE_ASSIGN(auto client, ControlClient::Connect(std::move(options)));
//   TROUPE_ASSIGN(wire::Message reply, client->Request(std::move(message), 30s));
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/base/unique_fd.h"
#include "runtime/client/polled_wait.h"
#include "runtime/client/push_queue.h"
#include "runtime/net/open_session.h"
#include "runtime/wire/messages.h"

namespace troupe::client {

/// Runs on the client's thread: short, and without calling back into the client's waits.
using PushCallback = std::function<void(const wire::Message&)>;
/// By kind, a name of wire::kBodyNames.
using PushCallbacks = std::map<std::string, PushCallback>;

class ControlClient {
 public:
  /// Dials and joins; blocks until options.limit at most. Errors are OpenSession's. `return_limit`:
  /// how long a lost connection is sought again, counted from its loss; zero: not at all.
  static StatusOr<std::shared_ptr<ControlClient>> Connect(net::OpenOptions options,
                                                          const PollHook& poll = {},
                                                          Duration return_limit = Duration::zero());
  /// Over an inherited Unix stream socket; `peer` is how errors call the other side. Pushes of the
  /// kinds named in `callbacks` go to them, from the first one on, and are not queued. kInvalid:
  /// there is no such kind.
  static StatusOr<std::shared_ptr<ControlClient>> Adopt(UniqueFd fd, std::string peer,
                                                        PushCallbacks callbacks = {});
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  /// Sends `message` with a new id and waits for its answer, `limit` at most (nullopt: for ever).
  /// An ErrorReply becomes its Status. After kTimeout a late answer is dropped.
  StatusOr<wire::Message> Request(wire::Message message, std::optional<Duration> limit,
                                  const PollHook& poll = {});
  /// Sends `message` as Request does, sent again after a return like it, and does not wait. An
  /// answer is dropped; what went wrong comes as a push, an ErrorReply with `asked`. False:
  /// kAskedMax (request_table.h) are not answered yet, and it is not sent.
  StatusOr<bool> Ask(wire::Message message);
  /// Queues `message` as it is (one-way, or an answer with reply_to); does not wait. While the peer
  /// is away it is dropped.
  Status Send(wire::Message message);
  /// The oldest push, or nullopt when none came within `limit` (nullopt: for ever). Pushes that
  /// came before a lost connection are given out first.
  StatusOr<std::optional<Push>> NextPush(std::optional<Duration> limit, const PollHook& poll = {});

  /// The Welcome and, if a key was given, the credentials it brought; empty when adopted.
  const net::Joined& joined() const;
  /// How errors call the peer.
  const std::string& peer() const;
  /// Ok while connected or coming back; then why not.
  Status status() const;
  /// Sends what is queued (half a second at most) and closes. Idempotent; also done by the
  /// destructor.
  void Close();

 private:
  class Impl;
  explicit ControlClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::client
