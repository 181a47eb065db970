// The rules of runtime/client/request_table.h by their numbers; and random lives of a client:
// requests of every kind, answers, losses and returns, each request ending exactly once.
#include "runtime/client/request_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::client {
namespace {

using Id = RequestTable::Id;
using namespace std::chrono_literals;

constexpr RequestTable::Time kStart{1000s};

wire::Message Read(const std::string& text = "a read") {
  wire::Message message;
  wire::Ok body;
  body.text = text;
  message.body = body;
  return message;
}
wire::Message Write() {  // has no name of its own
  wire::Message message;
  message.body = wire::CreateToken();
  return message;
}
std::vector<Id> IdsOf(const std::vector<RequestTable::Outgoing>& outgoing) {
  std::vector<Id> ids;
  for (const RequestTable::Outgoing& each : outgoing) ids.push_back(each.id);
  return ids;
}

TEST(RequestTable, RT1_AnAnswerFindsItsRequestByTheIdOnceAndNobodyElses) {
  RequestTable table;
  table.Connected(kStart);
  const Id first = table.Add(Read(), std::nullopt, kStart);
  const Id second = table.Add(Read(), std::nullopt, kStart);
  EXPECT_EQ(first, 2u);
  EXPECT_EQ(second, 3u);
  EXPECT_FALSE(table.Answer(second, Read("its answer")));
  EXPECT_FALSE(table.Answer(second, Read("another one")));
  EXPECT_FALSE(table.Answer(99, Read()));
  EXPECT_TRUE(table.Answered(second) && !table.Answered(first));
  const auto answer = table.Forget(second);
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_EQ(wire::Get<wire::Ok>((*answer)->body).text, "its answer");
  EXPECT_FALSE(table.Forget(first)) << "its caller gave up";
  EXPECT_FALSE(table.Answer(first, Read())) << "late";
}

TEST(RequestTable, RT2_WhatIsNotAnsweredIsSentAgainInOrderAndFirst) {
  RequestTable table;
  table.Connected(kStart);
  const Id first = table.Add(Read(), std::nullopt, kStart);
  const Id second = table.Add(Read(), std::nullopt, kStart);
  ASSERT_TRUE(table.AddUnwaited(Read()));
  EXPECT_EQ(table.unsent(), 3u);
  const std::vector<RequestTable::Outgoing> sent = table.TakeUnsent();
  EXPECT_EQ(IdsOf(sent), (std::vector<Id>{first, second, 4}));
  EXPECT_EQ(sent[0].message->id, first);
  EXPECT_TRUE(table.TakeUnsent().empty()) << "once over each connection";
  table.Answer(first, Read());
  std::vector<Id> answered;
  EXPECT_TRUE(table.Lost("head", kStart, answered).empty());
  const Id fourth = table.Add(Read(), std::nullopt, kStart);
  EXPECT_TRUE(table.TakeUnsent().empty()) << "there is no connection";
  const Id fifth = table.Add(Read(), std::nullopt, kStart);
  table.Forget(fourth);
  table.Connected(kStart);
  EXPECT_EQ(IdsOf(table.TakeUnsent()), (std::vector<Id>{second, 4, fifth}));
}

TEST(RequestTable, RT3_WhatWasSentAndMayNotBeRepeatedEndsAsUnknown) {
  RequestTable table;
  table.Connected(kStart);
  const Id sent = table.Add(Write(), std::nullopt, kStart);
  const Id read = table.Add(Read(), std::nullopt, kStart);
  const Id answered_before = table.Add(Write(), std::nullopt, kStart);
  ASSERT_TRUE(table.AddUnwaited(Write()));
  table.TakeUnsent();
  table.Answer(answered_before, Read());
  const Id unsent = table.Add(Write(), std::nullopt, kStart);
  std::vector<Id> answered;
  const std::vector<RequestTable::Refusal> refusals = table.Lost("the head", kStart, answered);
  EXPECT_EQ(answered, std::vector<Id>{sent});
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(ErrorCodeOf(refusals[0].why), ErrorCode::kUnknownOutcome);
  EXPECT_TRUE(wire::Holds<wire::CreateToken>(refusals[0].asked->body));
  const auto answer = table.Forget(sent);
  EXPECT_EQ(ErrorCodeOf(answer->status()), ErrorCode::kUnknownOutcome);
  EXPECT_EQ(MessageOf(answer->status()),
            "the connection to the head was lost before CreateToken was answered: whether it "
            "took effect is not known");
  EXPECT_TRUE(table.Forget(answered_before)->ok());
  table.Connected(kStart);
  EXPECT_EQ(IdsOf(table.TakeUnsent()), (std::vector<Id>{read, unsent})) << "it was never sent";
}

TEST(RequestTable, RT4_OfThoseThatNobodyWaitsForARefusalIsToldAndTheirNumberIsLimited) {
  RequestTable table;
  table.Connected(kStart);
  ASSERT_TRUE(table.AddUnwaited(Read("this")));
  for (std::size_t i = 1; i < kAskedMax; ++i) ASSERT_TRUE(table.AddUnwaited(Read()));
  EXPECT_FALSE(table.AddUnwaited(Read()));
  EXPECT_NE(table.Add(Read(), std::nullopt, kStart), 0u) << "who waits is not of that number";
  const auto refusal = table.Answer(2, MakeError(ErrorCode::kNotFound, "no such actor"));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(MessageOf(refusal->why), "no such actor");
  EXPECT_EQ(wire::Get<wire::Ok>(refusal->asked->body).text, "this");
  EXPECT_FALSE(table.Answer(2, MakeError(ErrorCode::kNotFound, "again"))) << "RT-1";
  EXPECT_TRUE(table.AddUnwaited(Read()));
  EXPECT_FALSE(table.AddUnwaited(Read()));
  EXPECT_FALSE(table.Answer(3, Read())) << "nobody wants to know";
  EXPECT_TRUE(table.AddUnwaited(Read()));
}

TEST(RequestTable, RT5_TimeAwayDoesNotCount) {
  RequestTable table;
  table.Connected(kStart);
  const Id endless = table.Add(Read(), std::nullopt, kStart);
  EXPECT_FALSE(table.Deadline(endless, kStart));
  const Id before = table.Add(Read(), 10s, kStart);
  EXPECT_EQ(table.Deadline(before, kStart + 3s), kStart + 10s);
  std::vector<Id> answered;
  table.Lost("head", kStart + 4s, answered);
  EXPECT_FALSE(table.Deadline(before, kStart + 1000s)) << "no end while there is no connection";
  const Id during = table.Add(Read(), 10s, kStart + 24s);
  table.Connected(kStart + 34s);
  EXPECT_EQ(table.Deadline(before, kStart + 35s), kStart + 40s) << "30 s of it were away";
  EXPECT_EQ(table.Deadline(during, kStart + 35s), kStart + 44s) << "10 s of it were";
  table.Lost("head", kStart + 36s, answered);
  table.Connected(kStart + 37s);
  EXPECT_EQ(table.Deadline(before, kStart + 38s), kStart + 41s);
  const Id after = table.Add(Read(), 10s, kStart + 38s);
  EXPECT_EQ(table.Deadline(after, kStart + 38s), kStart + 48s);
}

TEST(RequestTable, RT6_TheEndAnswersAllWithTheFirstReason) {
  RequestTable table;
  table.Connected(kStart);
  const Id answered = table.Add(Read(), std::nullopt, kStart);
  const Id waiting = table.Add(Read(), std::nullopt, kStart);
  table.Answer(answered, Read());
  EXPECT_TRUE(table.ended().ok());
  table.End(MakeError(ErrorCode::kConnection, "closed here"));
  table.End(MakeError(ErrorCode::kConnection, "closed there"));
  EXPECT_EQ(MessageOf(table.ended()), "closed here");
  EXPECT_TRUE(table.Forget(answered)->ok());
  EXPECT_EQ(MessageOf(table.Forget(waiting)->status()), "closed here");
  EXPECT_TRUE(table.TakeUnsent().empty());
}

/// A client's life: a peer that may answer, or never; connections that end anywhere.
class ClientLife {
 public:
  explicit ClientLife(unsigned seed) : random_(seed) { table_.Connected(now_); }

  void Step() {
    now_ += 1s;
    switch (random_() % 6) {
      case 0:
      case 1:
        return Ask();
      case 2:
        return Send();
      case 3:
        if (!heard_.empty()) table_.Answer(heard_[random_() % heard_.size()], Read());
        return;
      case 4:
        return random_() % 4 == 0 ? Change() : void();
      default:
        return Look();
    }
  }
  /// The last connection lives long enough for all answers.
  void Settle() {
    if (!connected_) Change();
    Send();
    for (const auto& [id, repeatable] : waiting_) {
      ASSERT_TRUE(table_.Answered(id) || sent_.count(id) == 1) << "lost on the way: " << id;
      table_.Answer(id, Read());
    }
    Look();
    EXPECT_TRUE(waiting_.empty());
  }

 private:
  void Ask() {
    const bool repeatable = random_() % 3 != 0;
    const Id id = table_.Add(repeatable ? Read() : Write(), std::nullopt, now_);
    ASSERT_TRUE(waiting_.emplace(id, repeatable).second) << "RT-1";
  }
  void Send() {
    const std::vector<Id> ids = IdsOf(table_.TakeUnsent());
    ASSERT_TRUE(connected_ || ids.empty());
    for (const Id id : ids) {
      ASSERT_TRUE(heard_.empty() || id > heard_.back()) << "RT-2";
      ASSERT_TRUE(waiting_.count(id) == 0 || waiting_[id] || sent_.count(id) == 0) << "RT-3";
      heard_.push_back(id);
      sent_.insert(id);
    }
  }
  /// The connection is lost, or there is another one.
  void Change() {
    heard_.clear();
    connected_ = !connected_;
    if (connected_) return table_.Connected(now_);
    std::vector<Id> answered;
    ASSERT_TRUE(table_.Lost("head", now_, answered).empty());
    for (const Id id : answered) ASSERT_TRUE(sent_.count(id) == 1 && !waiting_.at(id)) << "RT-3";
  }
  /// Threads look whether their answers came.
  void Look() {
    for (auto each = waiting_.begin(); each != waiting_.end();) {
      if (!table_.Answered(each->first)) {
        ++each;
        continue;
      }
      ASSERT_TRUE(table_.Forget(each->first).has_value());
      each = waiting_.erase(each);
    }
  }

  std::mt19937 random_;
  RequestTable table_;
  RequestTable::Time now_ = kStart;
  std::map<Id, bool> waiting_;  // and whether it may be repeated
  std::vector<Id> heard_;       // over this connection, by the peer
  std::set<Id> sent_;           // over any
  bool connected_ = true;
};

TEST(RequestTable, RT1_RT2_RT3_WhateverHappensEachRequestEndsOnce) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    ClientLife life(seed);
    for (int step = 0; step < 500 && !HasFatalFailure(); ++step) life.Step();
    life.Settle();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace troupe::client
