// Words on calls: a session is told of each as soon as it is read, and once, however often the
// connection looks ahead and although it comes to the word in its turn.
//
// Method: a connection over a socket pair, whose other end writes frames of a caller's session.
#include "actors/server/caller_connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/core/call/call_control.h"
#include "actors/server/call_server.h"
#include "tests/actors/server/connected_peer.h"

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

class CallerWordsTest : public ConnectedPeer {
 protected:
  void SetUp() override {
    ConnectedPeer::SetUp();
    peer_->session = std::make_unique<Noting>(cancelled_);
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

  CallLimits limits_;
  std::vector<std::uint64_t> cancelled_;
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
