// The rules of actors/core/remote/bulk_exchange.h by their numbers, word by word: one exchange,
// and what the other end might say to it.
#include "actors/core/remote/bulk_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "tests/actors/core/bulk_words.h"

namespace troupe::actors {
namespace {

using What = BulkExchange::Order::What;
using Refs = BulkExchange::Refs;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kBegin{seconds(1000)};

store::ObjectId Value(std::uint64_t number) { return {ProcessId(1, 1), number}; }

BulkFrame ReadOf(const store::ObjectId& id, std::uint64_t offset = 0,
                 std::uint64_t bytes = kBulkPartBytes) {
  BulkFrame read = WordOf(BulkWord::kRead, id, offset);
  read.bytes = bytes;
  return read;
}

BulkFrame PartFor(const BulkFrame& ask, std::uint64_t total) {
  BulkFrame part = ask;
  part.word = BulkWord::kPart;
  part.total = total;
  part.bytes = std::min(ask.bytes, total - ask.offset);
  return part;
}

/// Returns its first words, before answers.
std::deque<BulkFrame> Words(BulkExchange& exchange) {
  std::string out;
  exchange.AppendWords(out);
  return FramesOf(out);
}

std::deque<BulkFrame> Asks(BulkExchange& exchange) {
  std::string out;
  exchange.AppendAsks(out);
  return FramesOf(out);
}

/// Answers about results in this round, and which ones were released with them.
struct Dropped {
  bool settled = false;
  std::deque<BulkFrame> words;
  std::vector<store::ObjectId> released;
};
Dropped Drop(BulkExchange& exchange, std::uint64_t round) {
  Dropped dropped;
  std::string out;
  dropped.settled = exchange.AppendDropped(round, out, dropped.released);
  dropped.words = FramesOf(out);
  return dropped;
}

TEST(BulkExchange, BX1_WhatIsGivenTwiceIsTakenBackTwice) {
  BulkExchange exchange;
  EXPECT_FALSE(exchange.Gives(Value(1)));
  exchange.Give(Value(1));
  exchange.Give(Value(1));
  exchange.TakeBack(Value(1));
  EXPECT_TRUE(exchange.Gives(Value(1)));
  exchange.TakeBack(Value(1));
  EXPECT_FALSE(exchange.Gives(Value(1)));
  exchange.TakeBack(Value(1));  // says nobody
  EXPECT_FALSE(exchange.WantsLink({}));
}

TEST(BulkExchange, BX1_AResultIsGivenWithWhatLiesInsideItUntilItIsTaken) {
  BulkExchange exchange;
  exchange.Linked({}, kBegin);
  exchange.Give(Value(3));
  exchange.GiveResult(Value(1), {Value(2), Value(3)});
  exchange.GiveResult(Value(4), {Value(2)});
  EXPECT_TRUE(exchange.Gives(Value(1)) && exchange.Gives(Value(2)) && exchange.AwaitsTaker());
  ASSERT_TRUE(exchange.Take(WordOf(BulkWord::kTaken, Value(1))).ok());
  EXPECT_TRUE(exchange.Gives(Value(1))) << "until it is answered";
  const Dropped dropped = Drop(exchange, 7);
  EXPECT_TRUE(dropped.settled);
  EXPECT_EQ(dropped.released, std::vector<store::ObjectId>{Value(1)});
  EXPECT_EQ(dropped.words.at(0).word, BulkWord::kDropped);
  EXPECT_FALSE(exchange.Gives(Value(1)));
  EXPECT_TRUE(exchange.Gives(Value(2))) << "it lies in the other one too";
  EXPECT_TRUE(exchange.Gives(Value(3))) << "it was given besides";
  exchange.WithdrawResult(Value(4));
  EXPECT_FALSE(exchange.Gives(Value(2)) || exchange.Gives(Value(4)) || exchange.AwaitsTaker());
}

TEST(BulkExchange, BX2_WhatIsNotGivenIsSaidInTheSecondRoundAfterTheQuestion) {
  BulkExchange exchange;
  ASSERT_TRUE(exchange.Take(ReadOf(Value(1))).ok());
  EXPECT_FALSE(exchange.SettleRead(/*lent=*/false, 10));
  EXPECT_FALSE(exchange.SettleRead(false, 11));
  EXPECT_TRUE(exchange.SettleRead(false, 12));
  EXPECT_EQ(exchange.first_read(), nullptr);
  ASSERT_TRUE(exchange.Take(ReadOf(Value(1))).ok());
  EXPECT_FALSE(exchange.SettleRead(false, 12)) << "another question, with a doubt of its own";
  exchange.Give(Value(1));
  EXPECT_TRUE(exchange.SettleRead(false, 13));
  ASSERT_TRUE(exchange.Take(ReadOf(Value(2))).ok());
  EXPECT_TRUE(exchange.SettleRead(/*lent=*/true, 13)) << "as a reference";
}

TEST(BulkExchange, BX2_AResultTakenBeforeTheWordOfItIsDropped) {
  BulkExchange exchange;
  ASSERT_TRUE(exchange.Take(WordOf(BulkWord::kTaken, Value(1))).ok());
  ASSERT_TRUE(exchange.Take(WordOf(BulkWord::kTaken, Value(2))).ok());
  EXPECT_FALSE(Drop(exchange, 1).settled);
  exchange.GiveResult(Value(1), {});
  const Dropped late = Drop(exchange, 2);
  EXPECT_FALSE(late.settled) << "the second one is in doubt now";
  EXPECT_EQ(late.released, std::vector<store::ObjectId>{Value(1)});
  const Dropped never = Drop(exchange, 4);
  EXPECT_TRUE(never.settled && never.released.empty());
  EXPECT_EQ(never.words.at(0).id, Value(2))
      << "who says so is answered, also of what there never was";
}

TEST(BulkExchange, BX3_WhatWasTakenIsSaidOnEachLinkUntilItIsAnswered) {
  BulkExchange exchange;
  exchange.Took(Value(1));
  EXPECT_TRUE(exchange.WantsLink({}));
  std::string hello;
  BulkFrame first;
  first.session = SessionId(1, 1);
  AppendBulkFrame(hello, first);
  exchange.Linked(hello, kBegin);
  exchange.Took(Value(2));
  std::deque<BulkFrame> words = Words(exchange);
  ASSERT_EQ(words.size(), 3u);
  EXPECT_EQ(words[0].word, BulkWord::kHello);
  EXPECT_EQ(words[1].id, Value(1));
  EXPECT_EQ(words[2].id, Value(2));
  ASSERT_TRUE(exchange.Take(WordOf(BulkWord::kDropped, Value(1))).ok());
  exchange.Unlinked(kBegin);
  exchange.Linked({}, kBegin);
  words = Words(exchange);
  ASSERT_EQ(words.size(), 1u);
  EXPECT_EQ(words[0].id, Value(2));
  ASSERT_TRUE(exchange.Take(WordOf(BulkWord::kDropped, Value(2))).ok());
  EXPECT_FALSE(exchange.WantsLink({}));
}

TEST(BulkExchange, BX4_WhatWaitsToBeAnsweredIsLimited) {
  BulkExchange exchange;
  exchange.Linked({}, kBegin);
  EXPECT_FALSE(exchange.Take(BulkFrame()).ok()) << "a second hello";
  for (std::size_t i = 0; i < BulkExchange::kReadsMax; ++i)
    ASSERT_TRUE(exchange.Take(ReadOf(Value(1))).ok());
  EXPECT_FALSE(exchange.Take(ReadOf(Value(1))).ok());
  std::size_t said = 0;
  while (exchange.Take(WordOf(BulkWord::kTaken, Value(said))).ok()) ++said;
  EXPECT_EQ(said, BulkExchange::kWordsMax / kBulkFrameBytes);
  exchange.Unlinked(kBegin);
  exchange.Linked({}, kBegin);
  EXPECT_TRUE(exchange.Take(ReadOf(Value(1))).ok())
      << "what was asked on the other link is forgotten";
  EXPECT_TRUE(exchange.Take(WordOf(BulkWord::kTaken, Value(1))).ok());
}

TEST(BulkExchange, BX5_APullEndsWithItsLastByteOrWithGoneOrACancel) {
  BulkExchange exchange;
  exchange.Linked({}, kBegin);
  const BulkExchange::PullId whole = exchange.BeginPull(Value(1), false, {}, kBegin);
  const BulkExchange::PullId gone = exchange.BeginPull(Value(2), false, {}, kBegin);
  const BulkExchange::PullId cancelled = exchange.BeginPull(Value(3), false, {}, kBegin);
  const std::deque<BulkFrame> asks = Asks(exchange);
  ASSERT_EQ(asks.size(), 3u);
  const auto part = exchange.Take(PartFor(asks[0], 100));
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->what, What::kPart);
  EXPECT_EQ(part->part.pull, whole);
  EXPECT_EQ(exchange.coming(), 100u);
  EXPECT_FALSE(exchange.Came(60));
  EXPECT_TRUE(exchange.Came(40));
  const auto no = exchange.Take(WordOf(BulkWord::kGone, Value(2)));
  ASSERT_TRUE(no.ok());
  EXPECT_EQ(no->what, What::kGone);
  EXPECT_EQ(no->part.pull, gone);
  exchange.Cancel(cancelled);
  const auto late = exchange.Take(PartFor(asks[2], 100));
  ASSERT_TRUE(late.ok());
  EXPECT_EQ(late->part.pull, 0u) << "its bytes go nowhere";
  EXPECT_FALSE(exchange.Came(100));
  EXPECT_TRUE(exchange.CancelPulls(true).empty());
}

TEST(BulkExchange, BX5_ValuesOfReferencesArePulledOnWhenCallsEnd) {
  BulkExchange exchange;
  const BulkExchange::PullId argument = exchange.BeginPull(Value(1), /*of_ref=*/false, {}, kBegin);
  const BulkExchange::PullId value = exchange.BeginPull(Value(2), /*of_ref=*/true, {}, kBegin);
  exchange.Linked({}, kBegin);
  exchange.Unlinked(kBegin);
  EXPECT_EQ(exchange.CancelPulls(/*of_refs=*/false), std::vector<BulkExchange::PullId>{argument});
  EXPECT_TRUE(exchange.WantsLink({}));
  EXPECT_EQ(exchange.CancelPulls(/*of_refs=*/true), std::vector<BulkExchange::PullId>{value});
  EXPECT_FALSE(exchange.WantsLink({}));
}

TEST(BulkExchange, BX6_SilenceCountsFromTheLastByteWhileSomethingIsAwaited) {
  BulkExchange exchange;
  exchange.Linked({}, kBegin);
  EXPECT_FALSE(exchange.Deadline({}));
  EXPECT_FALSE(exchange.Silent({}, kBegin + seconds(1000))) << "nothing is awaited";
  const Instant begun = kBegin + seconds(100);
  exchange.BeginPull(Value(1), false, {}, begun);
  EXPECT_EQ(exchange.Deadline({}), begun + BulkExchange::kSilence);
  exchange.BeginPull(Value(2), false, {}, begun + seconds(20));
  EXPECT_EQ(exchange.Deadline({}), begun + BulkExchange::kSilence) << "the first one counts";
  EXPECT_FALSE(exchange.heard());
  exchange.Heard(begun + seconds(29));
  EXPECT_TRUE(exchange.heard());
  const Instant deadline = begun + seconds(29) + BulkExchange::kSilence;
  EXPECT_EQ(exchange.Deadline({}), deadline);
  EXPECT_FALSE(exchange.Silent({}, deadline - milliseconds(1)));
  EXPECT_TRUE(exchange.Silent({}, deadline));
  exchange.CancelPulls(true);
  EXPECT_FALSE(exchange.Silent({}, deadline));
}

TEST(BulkExchange, BX6_AnAnswerAboutReferencesIsAwaitedLikeAValue) {
  BulkExchange exchange;
  Refs refs;
  exchange.BeginAwaiting(refs, kBegin);
  refs = {.awaits = true, .idle = false, .over = false};
  exchange.BeginAwaiting(refs, kBegin + seconds(5));  // a further one
  EXPECT_EQ(exchange.Deadline(refs), kBegin + BulkExchange::kSilence);
  EXPECT_TRUE(exchange.Silent(refs, kBegin + BulkExchange::kSilence));
  exchange.Linked({}, kBegin + seconds(10));
  EXPECT_FALSE(exchange.heard()) << "of the new link";
  EXPECT_EQ(exchange.Deadline(refs), kBegin + seconds(10) + BulkExchange::kSilence);
}

TEST(BulkExchange, BX7_ResultsAreNobodysOnceBothConnectionsAreGoneForSoLong) {
  BulkExchange exchange;
  exchange.Linked({}, kBegin);
  exchange.GiveResult(Value(1), {Value(2)});
  exchange.Attached(false, kBegin + seconds(1));
  EXPECT_FALSE(exchange.Deadline({})) << "the link is there";
  EXPECT_TRUE(exchange.AwaitsTaker());
  exchange.Unlinked(kBegin + seconds(50));
  EXPECT_FALSE(exchange.AwaitsTaker()) << "who would take it is away";
  const Instant deadline = kBegin + seconds(50) + BulkExchange::kKept;
  EXPECT_EQ(exchange.Deadline({}), deadline);
  EXPECT_FALSE(exchange.GiveUpDeserted(deadline - milliseconds(1)));
  EXPECT_TRUE(exchange.Gives(Value(1)));
  exchange.Attached(true, kBegin + seconds(60));
  EXPECT_FALSE(exchange.GiveUpDeserted(deadline)) << "it is there again";
  exchange.Attached(false, kBegin + seconds(61));
  EXPECT_TRUE(exchange.GiveUpDeserted(kBegin + seconds(61) + BulkExchange::kKept));
  EXPECT_FALSE(exchange.Gives(Value(1)) || exchange.Gives(Value(2)));
}

TEST(BulkExchange, BX6_BX7_WhatEndsFirstIsLookedAtFirst) {
  BulkExchange exchange;
  exchange.GiveResult(Value(1), {});
  exchange.BeginPull(Value(2), false, {}, kBegin);
  exchange.Attached(false, kBegin + seconds(5));
  EXPECT_EQ(exchange.Deadline({}), kBegin + BulkExchange::kSilence);
  exchange.Linked({}, kBegin + seconds(10));
  exchange.Unlinked(kBegin + seconds(11));
  EXPECT_EQ(exchange.Deadline({}), kBegin + seconds(10) + BulkExchange::kSilence);
  exchange.CancelPulls(true);
  EXPECT_EQ(exchange.Deadline({}), kBegin + seconds(11) + BulkExchange::kKept);
}

TEST(BulkExchange, BX7_BX8_ReferencesAreKeptForAsLong) {
  BulkExchange exchange;
  const Refs leaving{.awaits = false,
                     .idle = false,
                     .over = true};  // let go of, which the other end has not heard
  EXPECT_TRUE(exchange.WantsLink(leaving)) << "the other end would keep it";
  exchange.Attached(false, kBegin);
  EXPECT_FALSE(exchange.WantsLink(leaving)) << "it hears that this process has ended";
  EXPECT_EQ(exchange.Deadline(leaving), kBegin + BulkExchange::kKept);
  EXPECT_TRUE(exchange.Over(leaving));
  exchange.Linked({}, kBegin);
  EXPECT_FALSE(exchange.Over(leaving)) << "over this link it hears it";
  const Refs lent{.awaits = false, .idle = false, .over = false};
  EXPECT_TRUE(exchange.WantsLink(lent));
  exchange.Unlinked(kBegin);
  EXPECT_FALSE(exchange.Over(lent));
}

TEST(BulkExchange, BX8_WhatIsGivenToCallsEndsWithThem) {
  BulkExchange exchange;
  exchange.Give(Value(1));
  exchange.GiveResult(Value(2), {Value(3)});
  exchange.Took(Value(4));
  EXPECT_TRUE(exchange.WantsLink({}));
  exchange.EndCalls(kBegin);
  EXPECT_FALSE(exchange.WantsLink({}));
  EXPECT_FALSE(exchange.Gives(Value(1)) || exchange.Gives(Value(2)) || exchange.Gives(Value(3)));
  EXPECT_TRUE(exchange.Over({}));
}

TEST(BulkExchange, APartEndsWithItsValueAndWhatIsNotThereIsGone) {
  std::string out;
  EXPECT_EQ(BulkExchange::AppendPart(ReadOf(Value(1), 0, 100), 1000, out), 100u);
  EXPECT_EQ(BulkExchange::AppendPart(ReadOf(Value(1), 950, 100), 1000, out), 50u);
  EXPECT_EQ(BulkExchange::AppendPart(ReadOf(Value(1), 1000, 100), 1000, out), 0u);
  EXPECT_EQ(BulkExchange::AppendPart(ReadOf(Value(2), 0, 100), 0, out), 0u);
  const std::deque<BulkFrame> frames = FramesOf(out);
  ASSERT_EQ(frames.size(), 4u);
  EXPECT_EQ(frames[1].word, BulkWord::kPart);
  EXPECT_EQ(frames[1].total, 1000u);
  EXPECT_EQ(frames[2].word, BulkWord::kGone);
  EXPECT_EQ(frames[2].offset, 1000u);
  EXPECT_EQ(frames[3].word, BulkWord::kGone);
}

}  // namespace
}  // namespace troupe::actors
