// Method: items, ends and takes in the orders in which they can meet; slots are looked at directly.
#include "actors/slots/item_stream.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "actors/core/call/call_frame.h"

namespace troupe::actors {
namespace {

constexpr std::uint16_t kItem = kFlagReply | kFlagItem;
constexpr std::uint16_t kError = kFlagReply | kFlagRuntimeError;

ItemStream::NextId Counting() {
  return [next = std::uint64_t{0}]() mutable { return ++next; };
}

TEST(ItemStream, IS1_ValuesFillTheirSlotsInOrder) {
  ItemStream items(2, Counting());
  AnswerList finished;
  const AnswerRef first(items.At(0)), second(items.At(1));
  items.Put(kItem, "one", &finished);
  EXPECT_TRUE(first.get()->done());
  EXPECT_FALSE(second.get()->done());
  items.Put(kItem, "two", &finished);
  items.Put(kItem, "three", &finished);  // nobody asked for it
  items.End(kFlagReply, "", &finished);
  EXPECT_EQ(first.get()->bytes(), "one");
  EXPECT_EQ(second.get()->bytes(), "two");
  EXPECT_NE(first.get()->id(), second.get()->id());
  EXPECT_TRUE(finished.empty());  // nobody waited
}

TEST(ItemStream, IS1_AnItemThatIsFilledInElsewhereHasItsPlaceAndItsSize) {
  ItemStream items(ItemStream::kOpen, Counting());
  AnswerList finished;
  Answer* later = nullptr;
  const auto keep = [&](Answer* slot) {
    later = slot;
    return false;
  };
  EXPECT_TRUE(items.PutBy(1000, keep, &finished));
  items.Put(kItem, "two", &finished);
  const AnswerRef first(items.Front());
  EXPECT_EQ(first.get(), later);
  EXPECT_FALSE(first.get()->done());
  EXPECT_FALSE(items.Pop());
  later->Fill(kItem, "name");
  items.Arrived(later, &finished);
  EXPECT_TRUE(items.Pop());
  EXPECT_EQ(AnswerRef(items.Front()).get()->bytes(), "two");
  EXPECT_EQ(items.taken().bytes, 1000u);
}

TEST(ItemStream, IS3_WhatWasGivenBeforeIsNotAskedForAgain) {
  ItemStream items(2, Counting());
  AnswerList finished;
  items.Put(kItem, "one", &finished);
  items.Again();
  bool asked = false;
  const auto fill = [&](Answer*) { return asked = true; };
  EXPECT_FALSE(items.PutBy(1, fill, &finished));
  EXPECT_FALSE(asked);
  EXPECT_TRUE(items.PutBy(1, fill, &finished));
  EXPECT_FALSE(items.PutBy(1, fill, &finished));  // a third one
}

/// Adds one value and one that is on its way; returns the slot of the latter.
Answer* PutTwo(ItemStream& items, AnswerList* finished) {
  Answer* later = nullptr;
  items.Put(kItem, "one", finished);
  items.PutBy(
      1000,
      [&](Answer* slot) {
        later = slot;
        return false;
      },
      finished);
  return later;
}

TEST(ItemStream, IS5_AnItemThatWasLostComesFromTheCallThatIsMadeAgain) {
  for (const std::uint32_t count : {2u, ItemStream::kOpen}) {
    ItemStream items(count, Counting());
    AnswerList finished;
    Answer* const later = PutTwo(items, &finished);
    if (count == ItemStream::kOpen) {
      EXPECT_TRUE(items.Pop());
    }
    later->Fill(kError, "lost");
    items.Lost(later, &finished);
    EXPECT_FALSE(later->done());
    items.Again();
    items.Put(kItem, "one", &finished);
    items.Put(kItem, "two", &finished);
    EXPECT_TRUE(later->done());
    EXPECT_EQ(later->bytes(), "two");
    items.End(kFlagReply, "", &finished);
    EXPECT_EQ(later->bytes(), "two");
  }
}

TEST(ItemStream, IS5_AnItemThatWasLostIsAnErrorAtTheEnd) {
  for (const std::uint32_t count : {2u, ItemStream::kOpen}) {
    for (const bool ended_before : {false, true}) {
      ItemStream items(count, Counting());
      AnswerList finished;
      Answer* const later = PutTwo(items, &finished);
      if (ended_before) items.End(kFlagReply, "", &finished);
      later->Fill(kError, "lost");
      items.Lost(later, &finished);
      EXPECT_EQ(later->done(), ended_before);
      items.End(kFlagReply, "", &finished);
      EXPECT_TRUE(later->done());
      EXPECT_EQ(later->bytes(), "lost");
    }
  }
}

TEST(ItemStream, IS2_AnErrorIsTheAnswerOfAllThatAreMissing) {
  ItemStream items(3, Counting());
  AnswerList finished;
  items.Put(kItem, "one", &finished);
  items.End(kError, "why", &finished);
  items.End(kError, "later", &finished);
  EXPECT_EQ(AnswerRef(items.At(0)).get()->bytes(), "one");
  for (int i : {1, 2}) {
    const AnswerRef slot(items.At(static_cast<std::size_t>(i)));
    EXPECT_EQ(slot.get()->flags(), kError);
    EXPECT_EQ(slot.get()->bytes(), "why");
  }
}

TEST(ItemStream, IS2_AnEndWithoutAllValuesIsAnError) {
  ItemStream items(1, Counting());
  AnswerList finished;
  items.End(kFlagReply, "", &finished);
  EXPECT_EQ(AnswerRef(items.At(0)).get()->flags(), kError);
}

TEST(ItemStream, IS3_AStreamsFrontIsThereBeforeItsItem) {
  ItemStream items(ItemStream::kOpen, Counting());
  AnswerList finished;
  const AnswerRef front(items.Front());
  EXPECT_FALSE(items.Pop());
  ASSERT_TRUE(front.get()->Watch());  // somebody waits
  items.Put(kItem, "one", &finished);
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].get(), front.get());
  items.Put(kItem, "two", &finished);
  EXPECT_TRUE(items.Pop());
  EXPECT_EQ(AnswerRef(items.Front()).get()->bytes(), "two");
  EXPECT_TRUE(items.Pop());
  EXPECT_FALSE(AnswerRef(items.Front()).get()->done());
  EXPECT_EQ(items.taken().items, 2u);
  EXPECT_EQ(items.taken().bytes, 6u);
}

TEST(ItemStream, IS2_AStreamsErrorIsItsLastItemThenTheEnd) {
  ItemStream items(ItemStream::kOpen, Counting());
  AnswerList finished;
  items.Put(kItem, "one", &finished);
  items.End(kError, "why", &finished);
  items.Put(kItem, "late", &finished);
  EXPECT_TRUE(items.Pop());
  EXPECT_EQ(AnswerRef(items.Front()).get()->bytes(), "why");
  EXPECT_TRUE(items.Pop());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(AnswerRef(items.Front()).get()->flags(), kFlagReply | kFlagEnd);
    EXPECT_FALSE(items.Pop());
  }
}

}  // namespace
}  // namespace troupe::actors
