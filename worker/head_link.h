// The session with the head: dialled for ever, with a certificate once there is one.
//
// View: one node; on the worker's loop. The first time a token proves the node (or, on the head's
// Unix socket, being the same user) and a certificate comes back, which is kept in `folder` (key
// and certificate 0600) and used from then on; it is renewed when two thirds of its life are over.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/async/task.h"
#include "runtime/base/time.h"
#include "runtime/net/open_session.h"
#include "runtime/wire/messages.h"
#include "worker/pulse.h"

namespace troupe::worker {

class HeadLink {
 public:
  static constexpr Duration kBeatEvery = std::chrono::seconds(1);

  struct Options {
    net::Address address;
    std::string folder;  // folder of node.key, node.crt and ca.crt
    std::optional<net::Token> token;
    wire::Hello hello;
  };
  struct Events {
    std::function<void(const wire::Welcome&)> up;
    std::function<void(wire::Message)> message;
    std::function<void(const Status&)> down;
    std::function<void(const net::Credentials&)> renewed;
  };
  /// `clock` must outlive the link.
  HeadLink(const Clock& clock, Options options, Events events);

  /// Uses what an earlier life stored; kNotFound when there is nothing.
  Status LoadStored();
  /// Dials once; for the first join, whose error the user wants to see.
  async::Task<Status> Connect();
  /// Receives until the session ends, dials again with a growing pause, for ever. After Connect().
  async::Task<void> Run();

  /// To be called about every kBeatEvery: the loop goes round. Where it does not, the head is told
  /// by a thread of its own that this worker is there (pulse.h).
  void Beat() {
    if (pulse_) pulse_->Beat();
  }

  void Send(const wire::Message& message);
  /// Ends the session; Run() dials again.
  void Drop(const Status& reason);
  /// Says goodbye and dials no more.
  async::Task<void> Leave();

  const net::Credentials& credentials() const { return *credentials_; }
  bool has_credentials() const { return credentials_.has_value(); }
  /// This node's address on the session; "127.0.0.1" on a Unix socket. After Connect().
  std::string LocalHost() const;
  const wire::Welcome& welcome() const { return welcome_; }
  /// Returns true if the certificate should be renewed now: two thirds of its life are over and the
  /// last attempt was not just before. A session that is dialled then renews it too.
  bool RenewalDue() const;
  /// Gets a new certificate in a short session of its own; the link's session goes on. The caller
  /// calls again when this failed and RenewalDue() says so.
  async::Task<void> Renew();

 private:
  async::Task<void> Receive();
  async::Task<StatusOr<net::OpenedSession>> Open(bool new_certificate);

  const Clock& clock_;
  const Options options_;
  const Events events_;
  std::optional<net::Credentials> credentials_;
  std::shared_ptr<net::Connection> connection_;
  wire::Welcome welcome_;
  std::unique_ptr<Pulse> pulse_;  // while Run() does
  bool leaving_ = false;
  bool renewing_ = false;
  Instant next_renewal_{};
};

}  // namespace troupe::worker
