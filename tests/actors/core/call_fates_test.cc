// Method: each rule at its edges; then random calls, sends, ends and verdicts against a plain list
// of what each call was told. The session's own offsets are in caller_session_test.cc.
#include "actors/core/call/call_fates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "actors/core/call/call_frame.h"
#include "runtime/base/random.h"

namespace troupe::actors {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Arrival = CallFates::Arrival;

constexpr std::uint16_t kError = kFlagReply | kFlagRuntimeError;
constexpr std::uint16_t kVerdict = kFlagReply | kFlagTaskError;

ErrorCode CodeOf(const CallFates::Fate& fate) {
  EXPECT_EQ(fate.flags, kError);
  return ReadRuntimeError(fate.body).code;
}
std::string TextOf(const CallFates::Fate& fate) {
  return std::string(ReadRuntimeError(fate.body).text);
}

TEST(CallFates, CF1_FromOpenToEndedToOverAndNeverBack) {
  CallFates fates("actor A(1)");
  EXPECT_TRUE(fates.open());
  EXPECT_EQ(fates.Arrives(/*room=*/false), Arrival::kSend);
  EXPECT_EQ(fates.end_reason(), "");
  EXPECT_TRUE(fates.End("reset by peer", 100));
  EXPECT_FALSE(fates.open());
  EXPECT_TRUE(fates.undecided());
  EXPECT_EQ(fates.end_reason(), "the connection ended (reset by peer)");
  EXPECT_FALSE(fates.End("closed here", 500));
  EXPECT_EQ(fates.end_reason(), "the connection ended (reset by peer)");
  EXPECT_TRUE(fates.Finish("no word came"));
  EXPECT_FALSE(fates.undecided());
  EXPECT_FALSE(fates.End("closed here", 500));
  EXPECT_FALSE(fates.open());
  EXPECT_FALSE(fates.OfCall(101).sent) << "the first end's position counts";
}

TEST(CallFates, CF2_AfterTheEndCallsWaitAsFarAsThereIsRoom) {
  CallFates fates("actor A(1)");
  fates.End("reset by peer", 100);
  EXPECT_EQ(fates.Arrives(/*room=*/true), Arrival::kWait);
  EXPECT_EQ(fates.Arrives(/*room=*/false), Arrival::kTell);
  EXPECT_EQ(CodeOf(fates.OfNewCall()), ErrorCode::kNotSent);
  EXPECT_EQ(TextOf(fates.OfNewCall()), "actor A(1): the connection ended (reset by peer)");
}

TEST(CallFates, CF3_AVerdictIsWhatEveryCallIsTold) {
  CallFates fates("actor A(1)");
  fates.End("the actor is gone", 100);
  fates.Judge(kVerdict, "dead");
  ASSERT_TRUE(fates.Finish(""));
  for (const std::uint64_t at : {std::uint64_t{40}, std::uint64_t{140}, CallFates::kNeverSent}) {
    EXPECT_EQ(fates.OfCall(at).flags, kVerdict);
    EXPECT_EQ(fates.OfCall(at).body, "dead");
  }
  EXPECT_EQ(fates.Arrives(/*room=*/true), Arrival::kTell);
  EXPECT_EQ(fates.OfNewCall().flags, kVerdict);
  EXPECT_EQ(fates.OfNewCall().body, "dead");
}

TEST(CallFates, CF4_OfWhatWasTakenWholeItIsNotKnownAndTheRestNeverRan) {
  CallFates fates("actor A(1)");
  fates.End("reset by peer", 100);
  ASSERT_TRUE(fates.Finish("no word came"));
  EXPECT_EQ(CodeOf(fates.OfCall(40)), ErrorCode::kMaybeExecuted);
  EXPECT_EQ(CodeOf(fates.OfCall(100)), ErrorCode::kMaybeExecuted);
  EXPECT_EQ(TextOf(fates.OfCall(100)),
            "actor A(1): no word came; the call had been sent and may have run");
  EXPECT_EQ(CodeOf(fates.OfCall(101)), ErrorCode::kNotSent) << "its last byte stayed here";
  EXPECT_EQ(TextOf(fates.OfCall(101)), "actor A(1): no word came; the call had not been sent");
  EXPECT_EQ(CodeOf(fates.OfCall(CallFates::kNeverSent)), ErrorCode::kNotSent);
}

TEST(CallFates, CF4_WhereNothingWasWrittenNoCallMayHaveRun) {
  CallFates fates("actor A(1)");
  fates.End("connection refused", 0);
  ASSERT_TRUE(fates.Finish("connection refused"));
  EXPECT_EQ(CodeOf(fates.OfCall(kFrameHeadBytes)), ErrorCode::kNotSent);
}

TEST(CallFates, CF5_WithoutAVerdictLaterCallsWereNotSent) {
  CallFates fates("actor A(1)");
  fates.End("closed by this process", 100);
  ASSERT_TRUE(fates.Finish("its channel was closed here"));
  EXPECT_EQ(fates.Arrives(/*room=*/true), Arrival::kTell);
  EXPECT_EQ(CodeOf(fates.OfNewCall()), ErrorCode::kNotSent);
  EXPECT_EQ(TextOf(fates.OfNewCall()),
            "actor A(1): its channel was closed here; the call had not been sent");
}

TEST(CallFates, CF6_CallsAreToldOnceAndALateVerdictIsForLaterCalls) {
  CallFates fates("actor A(1)");
  fates.End("reset by peer", 100);
  EXPECT_TRUE(fates.Finish("no word came"));
  EXPECT_FALSE(fates.Finish("closed here"));
  EXPECT_THAT(TextOf(fates.OfNewCall()), HasSubstr("no word came"));
  fates.Judge(kVerdict, "dead");
  EXPECT_FALSE(fates.Finish(""));
  EXPECT_EQ(fates.OfNewCall().body, "dead");
  fates.Judge(kVerdict, "its creation failed");
  EXPECT_EQ(fates.OfNewCall().body, "its creation failed");
}

TEST(CallFates, CF7_WhetherItWasSentIsSaidBesideAVerdict) {
  CallFates fates("actor A(1)");
  fates.End("the actor is gone", 100);
  fates.Judge(kVerdict, "dead");
  fates.Finish("");
  EXPECT_TRUE(fates.OfCall(100).sent);
  EXPECT_FALSE(fates.OfCall(101).sent);
  EXPECT_FALSE(fates.OfNewCall().sent);
}

/// A channel's calls as a plain list: where each frame ends, and how often it was told what.
class Calls {
 public:
  explicit Calls(std::uint64_t seed) : random_(seed) {}

  void Step() {
    switch (random_.Below(12)) {
      case 0:
        if (random_.Chance(300)) End();
        return;
      case 1:
        if (random_.Chance(300)) Finish();
        return;
      case 2:
        if (random_.Chance(200)) Judge();
        return;
      case 3:
      case 4:
      case 5:
        taken_ += fates_.open() ? random_.Below(appended_ - taken_ + 1) : 0;
        return;
      default:
        return Make();
    }
  }
  void End() {
    if (fates_.End("cut", taken_)) ended_at_ = taken_;
  }
  void Judge() {
    if (!fates_.open()) fates_.Judge(kVerdict, verdict_ = "verdict " + std::to_string(++verdicts_));
  }
  void Finish() {
    if (fates_.open() || !fates_.Finish("no word")) return;
    for (auto& [call, end] : waiting_) Tell(call, end, fates_.OfCall(end));
    waiting_.clear();
  }
  void Check() const {
    for (const auto& [call, times] : told_) ASSERT_EQ(times, 1) << "call " << call << " ends twice";
    ASSERT_EQ(told_.size() + waiting_.size(), made_) << "every call waits, or has ended";
  }
  std::size_t left() const { return waiting_.size(); }

 private:
  void Make() {
    const std::uint64_t call = ++made_;
    switch (fates_.Arrives(waiting_.size() < kRoom)) {
      case Arrival::kSend:
        appended_ += 40 + random_.Below(100);
        waiting_[call] = appended_;
        return;
      case Arrival::kWait:
        ASSERT_LT(waiting_.size(), kRoom);
        waiting_[call] = CallFates::kNeverSent;
        return;
      case Arrival::kTell:
        return Tell(call, CallFates::kNeverSent, fates_.OfNewCall());
    }
  }
  void Tell(std::uint64_t call, std::uint64_t end, const CallFates::Fate& fate) {
    ++told_[call];
    const bool sent = end <= ended_at_;
    ASSERT_EQ(fate.sent, sent);
    if (!verdict_.empty()) {
      ASSERT_EQ(fate.flags, kVerdict);
      ASSERT_EQ(fate.body, verdict_);
      return;
    }
    ASSERT_EQ(CodeOf(fate), sent ? ErrorCode::kMaybeExecuted : ErrorCode::kNotSent);
    ASSERT_THAT(TextOf(fate), StartsWith("actor A(1): "));
  }

  static constexpr std::size_t kRoom = 20;
  Prng random_;
  CallFates fates_{"actor A(1)"};
  std::map<std::uint64_t, std::uint64_t> waiting_;  // call -> where its frame ends
  std::map<std::uint64_t, int> told_;
  std::uint64_t made_ = 0, appended_ = 0, taken_ = 0, ended_at_ = 0;
  std::string verdict_;
  int verdicts_ = 0;
};

TEST(CallFates, CF2_CF3_CF4_CF6_EveryCallEndsOnceAsItsPositionAndTheVerdictSay) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    Calls calls(seed);
    for (int i = 0; i < 120; ++i) {
      calls.Step();
      if (::testing::Test::HasFatalFailure()) return;
      ASSERT_NO_FATAL_FAILURE(calls.Check());
    }
    calls.End();
    calls.Finish();
    ASSERT_NO_FATAL_FAILURE(calls.Check());
    ASSERT_EQ(calls.left(), 0u);
  }
}

}  // namespace
}  // namespace troupe::actors
