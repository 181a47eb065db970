// A ControlClient on one end of a Unix socketpair, and on the other a server of the test: one
// coroutine on a thread of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <utility>

#include "runtime/async/loop_thread.h"
#include "runtime/async/scope.h"
#include "runtime/client/control_client.h"
#include "runtime/net/connection.h"

namespace troupe::client {

class PairedClientTest : public ::testing::Test {
 protected:
  using Server = std::function<async::Task<void>(std::shared_ptr<net::Connection>)>;

  /// Connects `client_` to `serve`, which is called once, on the server's thread; callbacks as for
  /// Adopt.
  void Pair(Server serve, PushCallbacks callbacks = {}) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    async::asio::post(server_.executor(), [this, theirs = ends[1], serve = std::move(serve)] {
      scope_ = std::make_unique<async::Scope>(server_.executor(), "server");
      auto connection = *net::AdoptUnixSocket(server_.executor(), UniqueFd(theirs), "the client");
      scope_->Spawn("serve", serve(std::move(connection)));
    });
    client_ = *ControlClient::Adopt(UniqueFd(ends[0]), "the worker", std::move(callbacks));
  }
  void TearDown() override {
    client_.reset();
    server_.Stop();
  }

  async::LoopThread server_{"server"};
  std::unique_ptr<async::Scope> scope_;
  std::shared_ptr<ControlClient> client_;
};

}  // namespace troupe::client
