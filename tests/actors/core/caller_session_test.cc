// Method: the two pure halves of a call session, joined by byte streams that are cut at any byte,
// again and again, with bytes of old connections still arriving; random calls, answers in and out
// of order, small and large. After every step the invariants RS-1 to RS-5, at the end that nothing
// is missing. Where the session ends for good, CallFates says what each call that is left is told,
// while bytes that are still on their way run more calls: CF-4, what was told NOT_SENT never ran,
// none ends twice, and every call ends.
#include "actors/core/session/caller_session.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/core/call/call_fates.h"
#include "actors/core/session/actor_session.h"
#include "runtime/base/random.h"

namespace troupe::actors {
namespace {

std::string CallFrame(std::uint64_t sequence, std::uint64_t ack, std::size_t body) {
  ByteBuffer frame;
  frame.Extend(kFrameHeadBytes);
  const std::string fill(body, 'c');
  frame.Append(fill.data(), fill.size());
  SealFrame(frame, kFlagNamed, sequence, ack);
  return std::string(frame.view());
}

/// A direction of a connection: bytes on their way.
struct Pipe {
  std::string bytes;
  std::string read;  // arrived, not a whole frame yet
};

/// A caller, an actor, and at most one connection between them that counts.
class Pair {
 public:
  Pair(std::uint64_t seed, bool waits) : random_(seed), caller_(waits) {
    if (!waits) Connect();
  }

  void Step() {
    switch (random_.Below(10)) {
      case 0:
      case 1:
        return Call();
      case 2:
      case 3:
        return CallerWrites(Some());
      case 4:
      case 5:
        return ActorReads(Some());
      case 6:
        return AnswerTo();
      case 7:
        return ActorWrites(Some());
      case 8:
        return CallerReads(Some());
      default:
        if (!connected_) return Connect();
        if (random_.Chance(60)) Cut();
    }
  }
  /// No more faults: everything that is left happens.
  void Settle() {
    for (int i = 0; i < 10'000 && answered_.size() < issued_; ++i) {
      if (!connected_) Connect();
      CallerWrites(1u << 20);
      ActorReads(1u << 20);
      while (!running_.empty()) AnswerTo();
      ActorWrites(1u << 20);
      CallerReads(1u << 20);
    }
  }
  void Check() const {
    // RS-4: what is kept is what was not acknowledged, and nothing is kept twice.
    ASSERT_LE(caller_.window().appended() - caller_.window().released(), issued_);
    ASSERT_LE(actor_->window().kept_bytes(), ActorSession::kKeptBytesMax + 4096);
  }
  bool ended() const { return ended_; }
  std::uint64_t issued() const { return issued_; }
  const std::vector<std::uint64_t>& ran() const { return ran_; }
  const std::vector<std::uint64_t>& given() const { return given_; }
  const std::vector<std::uint64_t>& answered() const { return answered_; }
  std::size_t caller_kept() const { return caller_.window().kept_bytes(); }
  std::size_t actor_kept() const { return actor_->window().kept_bytes(); }
  int resumed() const { return resumed_; }
  std::size_t under_way() const { return under_way_.size(); }

  void Call() {
    const std::size_t body = random_.Chance(50) ? 3000 : random_.Below(64);
    const std::uint64_t call = ++issued_;
    switch (fates_.Arrives(/*room=*/under_way_.size() < 1000)) {
      case CallFates::Arrival::kSend:
        caller_.window().Append(CallFrame(call, caller_.TakeAck(), body));
        under_way_[call] = caller_.window().end_offset();
        return;
      case CallFates::Arrival::kWait:
        under_way_[call] = CallFates::kNeverSent;
        return;
      case CallFates::Arrival::kTell:
        return Tell(call, fates_.OfNewCall());
    }
  }
  /// The session ends for good wherever it stands; what is on its way still arrives.
  void GiveUp() {
    if (fates_.End("cut for good", caller_.window().sent_offset())) caller_.window().Clear();
    ended_ = true;
    connected_ = false;
    if (random_.Chance(300)) Call();
    const bool judged = random_.Chance(300);
    if (judged) fates_.Judge(kFlagReply | kFlagTaskError, "dead");
    ASSERT_TRUE(fates_.Finish("no word came"));
    for (const auto& [call, end_offset] : under_way_) Tell(call, fates_.OfCall(end_offset));
    under_way_.clear();
    Call();
    if (!actor_knows_) Receive(&stale_, 1u << 30);
    Receive(&up_, 1u << 30);
  }
  void CheckFates() const {
    const std::set<std::uint64_t> ran(ran_.begin(), ran_.end());
    for (const auto& [call, sent] : told_) {
      ASSERT_TRUE(sent || !ran.contains(call)) << "call " << call << " was not sent, and ran";
    }
    for (const std::uint64_t call : answered_) ASSERT_FALSE(told_.contains(call)) << "CF-6";
    ASSERT_EQ(told_.size() + answered_.size() + under_way_.size(), issued_);
  }
  void Connect() {
    if (ended_) return;
    caller_.Connected(SessionId(7, ++ids_));
    up_ = down_ = Pipe();
    connected_ = true;
    actor_knows_ = false;
  }
  void Cut() {
    if (!connected_) return;
    connected_ = false;
    // Bytes the actor may still find on the connection before.
    if (actor_knows_) stale_ = std::exchange(up_, Pipe());
    actor_knows_ = false;
    if (!caller_.MayResume()) return GiveUp();
    caller_.Disconnected();
  }
  void CallerWrites(std::size_t most) { Write(caller_.window(), &up_, most, connected_); }
  void ActorWrites(std::size_t most) {
    Write(actor_->window(), &down_, most, connected_ && actor_knows_);
  }
  void ActorReads(std::size_t most) {
    // RS-5 has two sides: until the new connection is welcomed, what the one before brings counts.
    if (!actor_knows_ && random_.Chance(500)) return Receive(&stale_, most);
    if (connected_) Receive(&up_, most);
  }
  void AnswerTo() {
    if (running_.empty()) return;
    const std::size_t which = out_of_order_ ? random_.Below(running_.size()) : 0;
    const std::uint64_t sequence = running_[which];
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(which));
    ByteBuffer frame;
    frame.Extend(kFrameHeadBytes);
    const std::string fill(random_.Below(200), 'r');
    frame.Append(fill.data(), fill.size());
    actor_->Reply(frame, kFlagReply, sequence);
    given_.push_back(sequence);
  }
  void CallerReads(std::size_t most) {
    if (!connected_) return;
    Move(&down_, most);
    Frame frame;
    std::string why;
    while (ParseFrame(down_.read, CallLimits(), &frame, &why) == ParseOutcome::kFrame) {
      if ((frame.head.flags & kFlagControl) != 0) {
        const auto control = ParseControl(frame);
        ASSERT_TRUE(control.ok()) << MessageOf(control.status());
        const Status taken = caller_.Control(*control, frame.head.ack);
        ASSERT_TRUE(taken.ok()) << MessageOf(taken);
      } else {
        ASSERT_TRUE(caller_.Reply(frame.bytes));
        ASSERT_TRUE(caller_.Acknowledge(frame.head.ack));
        ASSERT_EQ(under_way_.erase(frame.head.sequence), 1u) << "an answer to a call that ended";
        answered_.push_back(frame.head.sequence);
      }
      down_.read.erase(0, frame.bytes);
    }
    if (caller_.AckDue()) caller_.AppendAck();
  }
  bool out_of_order_ = false;

 private:
  std::size_t Some() { return random_.Chance(100) ? 10'000 : random_.Below(300); }
  static void Move(Pipe* pipe, std::size_t most) {
    const std::size_t n = std::min(most, pipe->bytes.size());
    pipe->read.append(pipe->bytes, 0, n);
    pipe->bytes.erase(0, n);
  }
  static void Write(SendWindow& window, Pipe* pipe, std::size_t most, bool connected) {
    if (!connected) return;
    while (most != 0) {
      const std::string_view unsent = window.Unsent().substr(0, most);
      if (unsent.empty()) return;
      pipe->bytes.append(unsent);
      window.Sent(unsent.size());
      most -= unsent.size();
    }
  }
  void Receive(Pipe* pipe, std::size_t most) {
    Move(pipe, most);
    Frame frame;
    std::string why;
    while (ParseFrame(pipe->read, CallLimits(), &frame, &why) == ParseOutcome::kFrame) {
      if ((frame.head.flags & kFlagControl) != 0) {
        const auto control = ParseControl(frame);
        ASSERT_TRUE(control.ok()) << MessageOf(control.status());
        if (control->kind == ControlKind::kHello) {
          Greet(*control, frame.head.ack);
        } else {
          ASSERT_TRUE(actor_->Acknowledge(frame.head.ack));
        }
      } else {
        ASSERT_TRUE(actor_->TakeCall(frame.head.sequence, frame.head.ack, frame.bytes))
            << "RS-1: call " << frame.head.sequence << " after " << actor_->received();
        ran_.push_back(frame.head.sequence);
        running_.push_back(frame.head.sequence);
        if (actor_->AckDue()) actor_->AppendControl(ControlKind::kAck);
      }
      pipe->read.erase(0, frame.bytes);
    }
  }
  void Tell(std::uint64_t call, const CallFates::Fate& fate) {
    ASSERT_TRUE(told_.emplace(call, fate.sent).second) << "call " << call << " ends twice";
    if ((fate.flags & kFlagRuntimeError) == 0) return;  // the verdict
    const ErrorCode code = ReadRuntimeError(fate.body).code;
    ASSERT_EQ(code, fate.sent ? ErrorCode::kMaybeExecuted : ErrorCode::kNotSent);
  }
  void Greet(const CallControl& hello, std::uint64_t replies) {
    stale_ = Pipe();  // RS-5
    actor_knows_ = true;
    if (!hello.resumes) {
      ASSERT_TRUE(ran_.empty()) << "a second beginning after calls ran";
      session_ = hello.session;
      actor_ = std::make_unique<ActorSession>();  // a session begun before was never used
      actor_->AppendControl(ControlKind::kWelcome);
      return;
    }
    ASSERT_EQ(session_, hello.session);
    actor_->Disconnected();
    ASSERT_EQ(actor_->Resume(replies), SendWindow::Rewound::kOk);
    ++resumed_;
  }

  Prng random_;
  CallerSession caller_;
  CallFates fates_{"actor A(1)"};
  std::map<std::uint64_t, std::uint64_t> under_way_;  // call -> where its frame ends
  std::map<std::uint64_t, bool> told_;                // without an answer; whether it was sent
  std::unique_ptr<ActorSession> actor_ = std::make_unique<ActorSession>();
  Pipe up_, down_, stale_;
  bool connected_ = false;
  bool actor_knows_ = false;  // true once it has read the hello of this connection
  bool ended_ = false;
  std::optional<SessionId> session_;
  std::uint64_t ids_ = 0;
  std::uint64_t issued_ = 0;
  int resumed_ = 0;
  std::vector<std::uint64_t> running_, ran_, given_, answered_;
};

std::vector<std::uint64_t> UpTo(std::uint64_t n) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 1; i <= n; ++i) all.push_back(i);
  return all;
}

void RunMany(bool waits, bool out_of_order) {
  int resumed = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE(seed);
    Pair pair(seed, waits);
    pair.out_of_order_ = out_of_order;
    for (int i = 0; i < 600; ++i) {
      pair.Step();
      ASSERT_NO_FATAL_FAILURE(pair.Check());
      ASSERT_NO_FATAL_FAILURE(pair.CheckFates());
      if (::testing::Test::HasFatalFailure()) return;
    }
    if (!pair.ended() && seed % 3 == 0) pair.GiveUp();
    if (!pair.ended()) {
      pair.Settle();
      if (::testing::Test::HasFatalFailure()) return;
      ASSERT_EQ(pair.answered(), pair.given());          // RS-2, RS-3
      ASSERT_EQ(pair.answered().size(), pair.issued());  // RS-2
      ASSERT_LE(pair.caller_kept(), 64u);                // all is acknowledged, but an
    }  // acknowledgement itself
    ASSERT_EQ(pair.ran(), UpTo(pair.ran().size()));  // RS-1
    ASSERT_NO_FATAL_FAILURE(pair.CheckFates());
    if (::testing::Test::HasFatalFailure()) return;
    ASSERT_EQ(pair.under_way(), 0u) << "every call ends";
    resumed += pair.resumed();
  }
  EXPECT_GT(resumed, 400);
}

TEST(CallRunner, RS1_RS2_RS3_CF4_OverConnectionsThatAreCutAnywhere) { RunMany(true, false); }
TEST(CallRunner, RS1_RS2_RS3_CF4_WhenTheActorAnswersInAnyOrder) { RunMany(true, true); }
TEST(CallRunner, RS1_RS2_RS3_CF4_OnThisHostWithoutWaitingForTheFirstWelcome) {
  RunMany(false, false);
}

TEST(CallRunner, RS4_ACallerThatAcknowledgesNothingLosesTheOldestRepliesOnly) {
  ActorSession actor;
  const std::string block(1u << 20, 'b');
  for (std::uint64_t i = 1; i <= 100; ++i) {
    ASSERT_TRUE(actor.TakeCall(i, 0, 40));
    ByteBuffer frame;
    frame.Extend(kFrameHeadBytes);
    frame.Append(block.data(), block.size());
    actor.Reply(frame, kFlagReply, i);
    actor.window().Sent(actor.window().Unsent().size());
  }
  EXPECT_LE(actor.window().kept_bytes(), ActorSession::kKeptBytesMax);
  EXPECT_GT(actor.window().kept_bytes(), ActorSession::kKeptBytesMax / 2);
  actor.Disconnected();
  EXPECT_EQ(actor.Resume(0), SendWindow::Rewound::kGone);
  EXPECT_EQ(actor.Resume(actor.window().released()), SendWindow::Rewound::kOk);
}

TEST(CallRunner, RS4_WhatIsAnsweredWhileNobodyIsConnectedIsBoundedToo) {
  ActorSession actor;
  actor.Disconnected();
  const std::string block(1u << 20, 'b');
  for (std::uint64_t i = 1; i <= 100; ++i) {
    ByteBuffer frame;
    frame.Extend(kFrameHeadBytes);
    frame.Append(block.data(), block.size());
    actor.Reply(frame, kFlagReply, i);
  }
  EXPECT_LE(actor.window().kept_bytes(), ActorSession::kKeptBytesMax);
}

TEST(CallRunner, AnAcknowledgementIsDueAfterManyRepliesOrMuch) {
  CallerSession caller(true);
  caller.Connected(SessionId(1, 1));
  CallControl welcome;
  welcome.kind = ControlKind::kWelcome;
  ASSERT_TRUE(caller.Control(welcome, 0).ok());
  for (std::uint64_t i = 1; i < CallerSession::kAckReplies; ++i) EXPECT_TRUE(caller.Reply(64));
  EXPECT_FALSE(caller.AckDue());
  EXPECT_TRUE(caller.Reply(64));
  EXPECT_TRUE(caller.AckDue());
  EXPECT_EQ(caller.TakeAck(), CallerSession::kAckReplies);
  EXPECT_FALSE(caller.AckDue());
  EXPECT_TRUE(caller.Reply(CallerSession::kAckBytes));
  EXPECT_TRUE(caller.AckDue());
}

TEST(CallRunner, AReplyBeforeTheWelcomeOrALieIsRefused) {
  CallerSession caller(true);
  caller.Connected(SessionId(1, 1));
  EXPECT_FALSE(caller.Reply(64));
  caller.window().Append(CallFrame(1, 0, 8));
  EXPECT_FALSE(caller.Acknowledge(1)) << "held back until the welcome";
  CallControl control;
  control.kind = ControlKind::kWelcome;
  EXPECT_FALSE(caller.Control(control, 1).ok()) << "it received what was never sent";
  EXPECT_TRUE(caller.Control(control, 0).ok());
  EXPECT_FALSE(caller.Control(control, 0).ok()) << "a second welcome";
  control.kind = ControlKind::kHello;
  EXPECT_FALSE(caller.Control(control, 0).ok());
}

TEST(CallRunner, WhatTheOtherSideEndedIsNotResumed) {
  CallerSession caller(true);
  caller.Connected(SessionId(1, 1));
  EXPECT_TRUE(caller.MayResume());
  CallControl control;
  control.kind = ControlKind::kWelcome;
  ASSERT_TRUE(caller.Control(control, 0).ok());
  EXPECT_TRUE(caller.MayResume());
  control.kind = ControlKind::kEnd;
  ASSERT_TRUE(caller.Control(control, 0).ok());
  EXPECT_FALSE(caller.MayResume());
}

TEST(CallRunner, OnThisHostAnUnwelcomedSessionIsNotResumed) {
  CallerSession caller(false);
  caller.Connected(SessionId(1, 1));
  caller.window().Append(CallFrame(1, 0, 8));
  caller.window().Sent(caller.window().Unsent().size());
  EXPECT_FALSE(caller.MayResume());
}

}  // namespace
}  // namespace troupe::actors
