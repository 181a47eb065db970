// Method: frames of items into the table, with a store that answers what the test says, and keeps
// what is to be run once the memory is here.
#include "actors/caller/item_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "actors/caller/reactor.h"
#include "actors/core/call/result_body.h"

namespace troupe::actors {
namespace {

using Lost = ObservedAnswer::Lost;
using Took = ObjectStore::Took;

constexpr std::uint64_t kChannel = 7;
constexpr std::uint64_t kCall = 3;

class Observer : public CallObserver {
 public:
  void Answered(std::uint64_t channel_id, std::vector<ObservedAnswer> answers, bool) override {
    EXPECT_EQ(channel_id, kChannel);
    for (ObservedAnswer& answer : answers) told.push_back(std::move(answer));
  }
  std::vector<ObservedAnswer> told;
};

std::shared_ptr<ItemStream> Stream() {
  return std::make_shared<ItemStream>(ItemStream::kOpen,
                                      [] { return CallReactor::Current().NextLocalId(); });
}

Frame Item(std::uint16_t flags, std::string_view body) {
  Frame frame;
  frame.head.flags = kFlagReply | kFlagItem | flags;
  frame.head.sequence = kCall;
  frame.body = body;
  return frame;
}

std::string InMemory() {
  ResultBody body;
  body.kind = ResultBody::kRemote;
  body.bytes = 1000;
  return std::string(reinterpret_cast<const char*>(&body), sizeof body);
}

/// A table, the stream of its one call, and the memory that is to come.
class ItemTableTest : public ::testing::Test {
 protected:
  bool Take(ItemTable& table, const Frame& frame, bool under_way = true) {
    const auto take = [this](Answer* slot, std::string_view, bool wanted, ObjectStore::Then then) {
      wanted_.push_back(wanted);
      slots_.push_back(slot);
      then_.push_back(std::move(then));
      return takes_;
    };
    return table.Take(frame, under_way, take, &finished_, &why_);
  }
  /// The memory of the oldest item is here, or (`lost`) never will be.
  void Arrive(bool lost = false) {
    ByteBuffer body;
    if (lost) AppendRuntimeError(body, kResultLost, "its process is gone");
    slots_.front()->Fill(lost ? kFlagReply | kFlagRuntimeError : kFlagReply, body.view());
    if (then_.front().run != nullptr) then_.front().run->Run();
    then_.erase(then_.begin());
    slots_.erase(slots_.begin());
  }

  std::shared_ptr<Observer> observer_ = std::make_shared<Observer>();
  std::shared_ptr<ItemStream> stream_ = Stream();
  Took takes_ = Took::kLater;
  std::vector<bool> wanted_;
  std::vector<Answer*> slots_;
  std::vector<ObjectStore::Then> then_;
  AnswerList finished_;
  std::string why_;
};

TEST_F(ItemTableTest, AnItemFillsItsCallsStreamAndNoOther) {
  ItemTable table(kChannel, nullptr);
  EXPECT_TRUE(table.empty());
  EXPECT_FALSE(Take(table, Item(0, "one")));
  EXPECT_EQ(why_, "an item for call 3, which expects none");
  table.Add(kCall, nullptr);
  EXPECT_TRUE(table.empty());
  table.Add(kCall, std::shared_ptr(stream_));
  EXPECT_FALSE(Take(table, Item(0, "one"), /*under_way=*/false)) << "its answer came before";
  EXPECT_TRUE(Take(table, Item(0, "one")));
  EXPECT_EQ(AnswerRef(stream_->Front())->bytes(), "one");
  table.End(kCall, kFlagReply, "", &finished_);
  EXPECT_TRUE(table.empty());
}

TEST_F(ItemTableTest, AResultThatNamesNoMemoryIsRefused) {
  ItemTable table(kChannel, nullptr);
  table.Add(kCall, std::shared_ptr(stream_));
  EXPECT_FALSE(Take(table, Item(kFlagObjects, "short")));
  EXPECT_EQ(why_, kBadResult);
  takes_ = Took::kBad;
  why_.clear();
  const std::string body = InMemory();
  EXPECT_FALSE(Take(table, Item(kFlagObjects, body)));
  EXPECT_EQ(why_, kBadResult);
}

TEST_F(ItemTableTest, WhatNobodyWantsIsTakenToBeGivenBack) {
  ItemTable table(kChannel, nullptr);
  table.Add(kCall, std::shared_ptr(stream_));
  stream_->End(kFlagReply, "", &finished_);
  takes_ = Took::kDone;
  const std::string body = InMemory();
  EXPECT_TRUE(Take(table, Item(kFlagObjects, body)));
  EXPECT_EQ(wanted_, std::vector<bool>{false});
}

TEST_F(ItemTableTest, AnObserverHearsOfTheEndWhenTheLastItemIsHere) {
  ItemTable table(kChannel, observer_);
  table.Add(kCall, std::shared_ptr(stream_));
  const std::string body = InMemory();
  ASSERT_TRUE(Take(table, Item(kFlagObjects, body)));
  ASSERT_TRUE(Take(table, Item(kFlagObjects, body)));
  EXPECT_TRUE(table.arriving());
  AnswerRef answer(Answer::New(1));
  Answer* const given = answer.get();
  EXPECT_FALSE(table.AfterItems(kCall, answer));
  EXPECT_EQ(answer, nullptr) << "it is told of later";
  EXPECT_TRUE(table.empty());
  EXPECT_FALSE(table.arriving());
  Arrive();
  EXPECT_TRUE(observer_->told.empty());
  Arrive();
  ASSERT_EQ(observer_->told.size(), 1u);
  EXPECT_EQ(observer_->told[0].slot.get(), given);
  EXPECT_EQ(observer_->told[0].lost, Lost::kNo);
}

TEST_F(ItemTableTest, AnObserverHearsAtOnceOfACallWhoseItemsAreHere) {
  ItemTable table(kChannel, observer_);
  table.Add(kCall, std::shared_ptr(stream_));
  AnswerRef answer(Answer::New(1));
  EXPECT_EQ(table.AfterItems(kCall, answer), Lost::kNo);
  const std::string body = InMemory();
  ASSERT_TRUE(Take(table, Item(kFlagObjects, body)));
  Arrive();
  EXPECT_EQ(table.AfterItems(kCall, answer), Lost::kNo);
  EXPECT_NE(answer, nullptr);
}

TEST_F(ItemTableTest, AnItemThatIsLostOnItsWayMakesItsCallOneThatMayHaveRun) {
  for (const bool before_the_end : {true, false}) {
    ItemTable table(kChannel, observer_);
    stream_ = Stream();
    table.Add(kCall, std::shared_ptr(stream_));
    const std::string body = InMemory();
    ASSERT_TRUE(Take(table, Item(kFlagObjects, body)));
    AnswerRef answer(Answer::New(1));
    if (before_the_end) {
      Arrive(/*lost=*/true);
      EXPECT_EQ(table.AfterItems(kCall, answer), Lost::kMaybeExecuted);
      continue;
    }
    EXPECT_FALSE(table.AfterItems(kCall, answer));
    Arrive(/*lost=*/true);
    ASSERT_EQ(observer_->told.size(), 1u);
    EXPECT_EQ(observer_->told[0].lost, Lost::kMaybeExecuted);
  }
}

}  // namespace
}  // namespace troupe::actors
