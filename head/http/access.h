// Authentication of HTTP requests: by a token in the Authorization header, or by the client's
// certificate.
//
// View: one head process; runs on the HTTP server's loop and asks the head's loop for what it knows
// of tokens. Nothing of a request but its head has been read by then.
#pragma once

#include <functional>
#include <string>

#include "head/http/message.h"
#include "runtime/async/task.h"
#include "runtime/base/status.h"
#include "runtime/net/connection.h"
#include "runtime/net/credentials.h"
#include "runtime/net/session.h"

namespace troupe::head {

struct HttpCaller {
  wire::Role role = wire::Role::kNone;
  std::string id;  // the token's, or that of the certificate's subject
  TokenId token;   // by which it came, itself or for its certificate; nil: by none
};

/// Makes a certificate by which a worker knows somebody of this role, for as long as the token is
/// good. Any thread.
using MakeCallerCredentials =
    std::function<StatusOr<net::Credentials>(wire::Role role, const TokenId& token)>;

/// Authenticates the sender of a request. kJoinRefused or kInvalid: nobody that is let in (401),
/// and why; kTimeout: the head's loop is held up. `rules` belong to the loop of `head`; what they
/// refer to must outlive the calling loop's thread.
async::Task<StatusOr<HttpCaller>> AuthenticateHttp(const HttpRequest& request,
                                                   const net::PeerInfo& peer,
                                                   const net::SessionRules& rules,
                                                   async::Executor head, const Clock& clock);

}  // namespace troupe::head
