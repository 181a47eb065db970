// Words on calls: a session is told of each as soon as it is read, and once, however often the
// connection looks ahead and although it comes to the word in its turn.
//
// Method: a connection over a socket pair, whose other end writes frames of a caller's session.
#include "actors/server/caller_connection.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/core/call/call_control.h"
#include "actors/server/call_server.h"

namespace troupe::actors {
namespace {

/// Notes what it is told.
class Noting : public CallRunner {
 public:
  explicit Noting(std::vector<std::uint64_t>& cancelled) : cancelled_(cancelled) {}
  StatusOr<Ran> Run(const Frame& frame, CallerConnection& peer, ByteBuffer& reply,
                    std::uint16_t* flags) override {
    return MakeError(ErrorCode::kInternal, "no call is run here");
  }
  void Cancel(std::uint64_t sequence, bool recursive) override { cancelled_.push_back(sequence); }

 private:
  std::vector<std::uint64_t>& cancelled_;
};

class CallerWordsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_), 0);
    epoll_ = ::epoll_create1(0);
    wake_ = ::eventfd(0, EFD_NONBLOCK);
    peer_ = std::make_shared<CallerConnection>(CallStream(UnixStream(ends_[0])), 16, epoll_, wake_);
    peer_->session = std::make_unique<Noting>(cancelled_);
  }
  void TearDown() override {
    peer_->Close();
    peer_.reset();
    for (const int fd : {ends_[1], epoll_, wake_}) ::close(fd);
  }
  /// The caller cancels that call.
  void Write(std::uint64_t sequence) {
    CallControl control;
    control.sequence = sequence;
    control.count = 1;
    const std::string frame = ControlFrame(ControlKind::kCancel, control, 0);
    ASSERT_EQ(::send(ends_[1], frame.data(), frame.size(), 0), static_cast<ssize_t>(frame.size()));
  }
  /// The word that is next comes in its turn.
  void TakeOne() {
    Frame frame;
    std::string why;
    ASSERT_EQ(ParseFrame(peer_->in().view(), limits_, &frame, &why), ParseOutcome::kFrame) << why;
    const StatusOr<CallControl> control = ParseControl(frame);
    ASSERT_TRUE(control.ok()) << control.status();
    peer_->TakeWord(*control, frame.bytes);
  }

  int ends_[2] = {-1, -1};
  int epoll_ = -1, wake_ = -1;
  CallLimits limits_;
  std::vector<std::uint64_t> cancelled_;
  std::shared_ptr<CallerConnection> peer_;
};

using Numbers = std::vector<std::uint64_t>;

TEST_F(CallerWordsTest, AWordThatWasSeenAheadIsNotToldAgainInItsTurn) {
  Write(1);
  peer_->LookAhead(limits_, nullptr);
  EXPECT_EQ(cancelled_, Numbers({1}));
  peer_->ScanControls(limits_);
  TakeOne();
  EXPECT_EQ(cancelled_, Numbers({1}));
}

TEST_F(CallerWordsTest, ALaterWordTellsOfNoEarlierOneAgain) {
  Write(1);
  peer_->LookAhead(limits_, nullptr);
  Write(2);
  peer_->LookAhead(limits_, nullptr);
  EXPECT_EQ(cancelled_, Numbers({1, 2}));
  TakeOne();
  Write(3);
  peer_->LookAhead(limits_, nullptr);
  TakeOne();
  TakeOne();
  EXPECT_EQ(cancelled_, Numbers({1, 2, 3}));
}

TEST_F(CallerWordsTest, AWordThatWasNotSeenAheadIsToldInItsTurn) {
  Write(1);
  Write(2);
  ASSERT_EQ(peer_->Read(limits_).outcome, IoOutcome::kProgress);
  TakeOne();
  EXPECT_EQ(cancelled_, Numbers({1}));
  peer_->ScanControls(limits_);
  TakeOne();
  EXPECT_EQ(cancelled_, Numbers({1, 2}));
}

TEST_F(CallerWordsTest, WhatACallerSaysTwiceIsToldTwice) {
  Write(1);
  Write(1);
  peer_->LookAhead(limits_, nullptr);
  EXPECT_EQ(cancelled_, Numbers({1, 1}));
}

TEST_F(CallerWordsTest, WordsOfALostConnectionAreNotTakenForThoseOfTheNext) {
  Write(1);
  Write(2);
  peer_->LookAhead(limits_, nullptr);
  peer_->Detach();
  int next[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, next), 0);
  CallerConnection other(CallStream(UnixStream(next[0])), 17, epoll_, wake_);
  ASSERT_TRUE(peer_->Resume(other, 0));
  ::close(std::exchange(ends_[1], next[1]));
  Write(3);
  peer_->LookAhead(limits_, nullptr);
  EXPECT_EQ(cancelled_, Numbers({1, 2, 3}));
}

}  // namespace
}  // namespace troupe::actors
