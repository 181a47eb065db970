// A fixture: an actor's end of a caller's connection, over a socket pair whose other end the test
// reads and writes.
#pragma once

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "actors/server/caller_connection.h"

namespace troupe::actors {

class ConnectedPeer : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_), 0);
    epoll_ = ::epoll_create1(0);
    wake_ = ::eventfd(0, EFD_NONBLOCK);
    peer_ = std::make_shared<CallerConnection>(CallStream(UnixStream(ends_[0])), 16, epoll_, wake_);
  }
  void TearDown() override {
    peer_->Close();
    peer_.reset();
    for (const int fd : {ends_[1], epoll_, wake_}) ::close(fd);
  }

  int ends_[2] = {-1, -1};  // the peer's, which it closes; the test's
  int epoll_ = -1;
  int wake_ = -1;
  std::shared_ptr<CallerConnection> peer_;
};

}  // namespace troupe::actors
