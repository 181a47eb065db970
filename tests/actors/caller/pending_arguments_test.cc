// Method: answers that the test fills itself, and a codec that appends their plain bytes and notes
// from which size on it was told to name them.
#include "actors/caller/pending_arguments.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "actors/bulk/bulk_session.h"
#include "actors/caller/reactor.h"

namespace troupe::actors {
namespace {

using Came = PendingArguments::Came;
using Filled = PendingArguments::Filled;
using Place = PendingTarget::Place;

class SizedValues : public ArgumentCodec {
 public:
  bool AppendAnswer(const Answer& answer, std::size_t named_from, std::string* values,
                    Handles*) const override {
    named_from_.push_back(named_from);
    values->append(answer.bytes());
    return !answer.bytes().empty();
  }
  std::optional<std::string> ForRemote(std::string_view values, int, bool*) const override {
    return std::string(values);
  }
  mutable std::vector<std::size_t> named_from_;
};

AnswerRef Answered(std::string_view bytes, std::uint16_t flags = kFlagReply) {
  AnswerRef answer(Answer::New(CallReactor::Current().NextLocalId()));
  answer->Fill(flags, bytes);
  return answer;
}

/// Arguments at these places.
PendingArguments At(const std::vector<std::pair<std::size_t, Answer*>>& places) {
  std::vector<ArgumentToCome> to_come;
  for (const auto& [at, answer] : places) to_come.push_back({at, AnswerRef::Another(answer)});
  return PendingArguments(std::move(to_come));
}

TEST(PendingArguments, NothingToComeIsEmptyAndMissesNothing) {
  const PendingArguments none;
  EXPECT_TRUE(none.empty());
  EXPECT_FALSE(none.missing());
  EXPECT_TRUE(none.Answers().empty());
}

TEST(PendingArguments, AnAnswerCountsOncePerPlaceItIsFor) {
  const AnswerRef one = Answered("1");
  const AnswerRef two = Answered("2");
  PendingArguments arguments = At({{0, one.get()}, {1, two.get()}, {2, one.get()}});
  ASSERT_EQ(arguments.Answers().size(), 3u);
  EXPECT_EQ(arguments.Note(*one), Came::kOthersMissing);
  EXPECT_EQ(arguments.Note(*one), Came::kOthersMissing);
  EXPECT_TRUE(arguments.missing());
  EXPECT_EQ(arguments.Note(*two), Came::kAll);
  EXPECT_FALSE(arguments.missing());
  EXPECT_FALSE(arguments.empty());
}

TEST(PendingArguments, AnErrorIsTheCallsAnswerWhateverIsMissing) {
  const AnswerRef good = Answered("1");
  const AnswerRef bad = Answered("no", kFlagReply | kFlagTaskError);
  PendingArguments arguments = At({{0, good.get()}, {0, bad.get()}});
  EXPECT_EQ(arguments.Note(*bad), Came::kFailed);
  EXPECT_EQ(FlagsOfFailedArgument(*bad), kFlagReply | kFlagTaskError | kFlagOfArgument);
}

TEST(PendingArguments, ValuesStandWhereTheyBelong) {
  const AnswerRef one = Answered("one");
  const AnswerRef two = Answered("two");
  PendingArguments arguments = At({{1, one.get()}, {1, two.get()}, {3, one.get()}});
  const SizedValues values;
  std::string encoded = "abc";
  Handles held;
  EXPECT_EQ(arguments.FillIn(Place::kHere, 0, values, &encoded, &held), Filled::kGood);
  EXPECT_EQ(encoded, "aonetwobcone");
  EXPECT_TRUE(arguments.empty());
}

TEST(PendingArguments, WhereTheReceiverIsSaysFromWhichSizeOnAValueIsNamed) {
  const AnswerRef value = Answered("v");
  const struct {
    Place place;
    std::size_t named_from;
  } cases[] = {{Place::kHere, 0},
               {Place::kRemote, BulkSession::kFromBytes},
               {Place::kUnknown, RoomBeside(3)}};
  for (const auto& each : cases) {
    PendingArguments arguments = At({{2, value.get()}});
    const SizedValues values;
    std::string encoded = "abc";
    Handles held;
    arguments.FillIn(each.place, 0, values, &encoded, &held);
    EXPECT_EQ(values.named_from_, std::vector<std::size_t>{each.named_from});
  }
}

TEST(PendingArguments, WhatNoFrameHoldsIsTooLargeWithWhatStandsBesideIt) {
  const std::string large(CallLimits().frame_bytes_max - 8, 'x');
  const AnswerRef value = Answered(large);
  for (const std::size_t beside : {std::size_t{0}, std::size_t{16}}) {
    PendingArguments arguments = At({{0, value.get()}});
    const SizedValues values;
    std::string encoded = "abc";
    Handles held;
    EXPECT_EQ(arguments.FillIn(Place::kHere, beside, values, &encoded, &held),
              beside == 0 ? Filled::kGood : Filled::kTooLarge);
    EXPECT_EQ(encoded.size(), large.size() + 3);
  }
}

TEST(PendingArguments, AnAnswerWithoutAValueIsSaidToBeNone) {
  const AnswerRef nothing = Answered("");
  const AnswerRef value = Answered("v");
  PendingArguments arguments = At({{0, nothing.get()}, {0, value.get()}});
  const SizedValues values;
  std::string encoded;
  Handles held;
  EXPECT_EQ(arguments.FillIn(Place::kHere, 0, values, &encoded, &held), Filled::kNoValue);
}

class Keeper : public ArgumentKeeper {
 public:
  void ArgumentHere(std::uint64_t number, const Answer& answer) override {
    const std::lock_guard lock(mutex_);
    here_.emplace_back(number, answer.bytes());
    changed_.notify_all();
  }
  std::vector<std::pair<std::uint64_t, std::string>> WaitFor(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return here_.size() >= count; });
    return here_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<std::uint64_t, std::string>> here_;
};

TEST(PendingArguments, TheKeeperIsToldOncePerPlaceAlsoOfWhatWasThere) {
  CallReactor& reactor = CallReactor::Current();
  const auto keeper = std::make_shared<Keeper>();
  const AnswerRef there(Answer::New(reactor.NextLocalId()));
  const AnswerRef later(Answer::New(reactor.NextLocalId()));
  reactor.Complete(there.get(), kFlagReply, "there");
  PendingArguments arguments = At({{0, later.get()}, {0, there.get()}, {0, later.get()}});
  AwaitArguments(keeper, 7, arguments.Answers());
  using Here = std::pair<std::uint64_t, std::string>;
  EXPECT_EQ(keeper->WaitFor(1), std::vector<Here>{Here(7, "there")});
  reactor.Complete(later.get(), kFlagReply, "later");
  EXPECT_EQ(keeper->WaitFor(3), (std::vector<Here>{{7, "there"}, {7, "later"}, {7, "later"}}));
}

}  // namespace
}  // namespace troupe::actors
