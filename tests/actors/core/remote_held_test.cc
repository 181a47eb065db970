// The rules of actors/core/remote/remote_held.h and actors/core/remote/remote_lent.h by their
// numbers; and both ends of a link against each other: random holds, ends of holds and questions,
// over a link that is cut at random places and made anew.
#include "actors/core/remote/remote_held.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "actors/core/remote/remote_lent.h"

namespace troupe::actors {
namespace {

store::ObjectId Name(std::uint64_t number) { return {ProcessId(1, 1), number}; }

std::deque<BulkFrame> Split(const std::string& bytes) {
  std::deque<BulkFrame> frames;
  for (std::size_t at = 0; at < bytes.size(); at += kBulkFrameBytes) {
    const StatusOr<BulkFrame> frame = ReadBulkFrame(std::string_view(bytes).substr(at));
    EXPECT_TRUE(frame.ok());
    frames.push_back(*frame);
  }
  return frames;
}

std::deque<BulkFrame> Words(RemoteHeld& held) {
  std::string bytes;
  held.AppendWords(bytes);
  return Split(bytes);
}

BulkFrame AnswerTo(const BulkFrame& ask, BulkWord word) {
  BulkFrame frame = ask;
  frame.word = word;
  return frame;
}

BulkFrame ReadyOf(std::uint64_t number, std::uint64_t inside = 0) {
  BulkFrame ready;
  ready.word = BulkWord::kReady;
  ready.id = Name(number);
  ready.offset = 1;
  ready.bytes = inside;
  ready.total = 100;
  return ready;
}

TEST(RemoteHeld, HA1_WhatIsTakenTwiceIsSaidOnce) {
  RemoteHeld held;
  EXPECT_TRUE(held.Take(Name(1), 10));
  EXPECT_TRUE(held.Take(Name(1), 11));
  const std::deque<BulkFrame> words = Words(held);
  ASSERT_EQ(words.size(), 1u);
  EXPECT_EQ(words[0].word, BulkWord::kHold);
  EXPECT_TRUE(held.Awaits());
  EXPECT_EQ(held.Held(AnswerTo(words[0], BulkWord::kHeld)), 11u)
      << "the object that stands for it now";
  EXPECT_TRUE(held.Knows(Name(1)) && !held.Awaits());
  held.LetGo(Name(1), 10);
  EXPECT_TRUE(Words(held).empty()) << "another one followed that";
  held.LetGo(Name(1), 11);
  const std::deque<BulkFrame> last = Words(held);
  ASSERT_EQ(last.size(), 1u);
  EXPECT_EQ(last[0].word, BulkWord::kLetGo);
  EXPECT_TRUE(held.OnlyLeaving() && !held.empty());
  held.Dropped(AnswerTo(last[0], BulkWord::kLeft));
  EXPECT_TRUE(held.empty());
}

TEST(RemoteHeld, HA2_AnAnswerToAnEarlierWordCountsForNothing) {
  RemoteHeld held;
  held.Take(Name(1), 10);
  const BulkFrame first = Words(held).at(0);
  held.LetGo(Name(1), 10);
  const BulkFrame second = Words(held).at(0);
  held.Take(Name(1), 11);
  const BulkFrame third = Words(held).at(0);
  held.LetGo(Name(1), 11);
  const BulkFrame fourth = Words(held).at(0);
  EXPECT_FALSE(held.Held(AnswerTo(first, BulkWord::kHeld)));
  held.Dropped(AnswerTo(second, BulkWord::kLeft));
  EXPECT_FALSE(held.empty()) << "it was said again since";
  EXPECT_FALSE(held.Refused(AnswerTo(third, BulkWord::kRefused)));
  held.Dropped(AnswerTo(fourth, BulkWord::kLeft));
  EXPECT_TRUE(held.empty());
}

TEST(RemoteHeld, HA3_OnAnotherLinkEverythingIsSaidAgain) {
  RemoteHeld held;
  for (std::uint64_t i = 1; i <= 3; ++i) held.Take(Name(i), i);
  for (const BulkFrame& word : Words(held)) held.Held(AnswerTo(word, BulkWord::kHeld));
  held.LetGo(Name(2), 2);
  held.Want(Name(3), 3);
  EXPECT_EQ(Words(held).size(), 2u);
  held.Unlinked();
  std::map<std::uint64_t, BulkFrame> said;
  for (const BulkFrame& word : Words(held)) said[word.id.sequence] = word;
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[1].word, BulkWord::kHold);
  EXPECT_EQ(said[2].word, BulkWord::kLetGo);
  EXPECT_EQ(said[3].word, BulkWord::kHold);
  EXPECT_EQ(held.Refused(AnswerTo(said[1], BulkWord::kRefused)), 1u)
      << "it was taken for gone meanwhile";
  held.Held(AnswerTo(said[3], BulkWord::kHeld));
  const std::deque<BulkFrame> again = Words(held);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].word, BulkWord::kWant) << "HA-5";
}

TEST(RemoteHeld, HA4_SoManyWordsAreUnderWay) {
  RemoteHeld held;
  for (std::uint64_t i = 0; i < 3 * RemoteHeld::kAskedMax; ++i) held.Take(Name(i), i);
  std::deque<BulkFrame> words = Words(held);
  EXPECT_EQ(words.size(), RemoteHeld::kAskedMax);
  EXPECT_TRUE(Words(held).empty());
  for (std::size_t i = 0; i < 5; ++i) held.Held(AnswerTo(words[i], BulkWord::kHeld));
  EXPECT_EQ(Words(held).size(), 5u);
}

TEST(RemoteHeld, HA5_AValueIsAskedForOnceItIsKnownToBeHeld) {
  RemoteHeld held;
  held.Take(Name(1), 1);
  held.Want(Name(1), 1);
  const std::deque<BulkFrame> words = Words(held);
  ASSERT_EQ(words.size(), 1u);
  held.Held(AnswerTo(words[0], BulkWord::kHeld));
  EXPECT_EQ(Words(held).at(0).word, BulkWord::kWant);
  BulkFrame inside = ReadyOf(7);
  inside.word = BulkWord::kInside;
  ASSERT_TRUE(held.Inside(inside).ok());
  const auto ready = held.Ready(ReadyOf(1, 1));
  ASSERT_TRUE(ready.ok() && ready->has_value());
  EXPECT_EQ((*ready)->local, 1u);
  EXPECT_EQ((*ready)->bytes, 100u);
  EXPECT_EQ((*ready)->inside, std::vector<store::ObjectId>{Name(7)});
  EXPECT_FALSE(held.Ready(ReadyOf(1, 1)).ok()) << "without what lies inside";
  const auto unasked = held.Ready(ReadyOf(1));
  EXPECT_TRUE(unasked.ok() && !unasked->has_value());
}

TEST(RemoteHeld, HA6_WhatOthersHaveFromHereIsSaidUntilTheyLetGo) {
  RemoteHeld held;
  held.Take(Name(1), 10);
  held.LentOn(Name(1), 9, true);
  EXPECT_EQ(Words(held).at(0).bytes, 0u) << "of another object";
  held.LentOn(Name(1), 10, true);
  held.LentOn(Name(1), 10, true);
  const std::deque<BulkFrame> words = Words(held);
  ASSERT_EQ(words.size(), 1u) << "once";
  EXPECT_EQ(words[0].word, BulkWord::kHold);
  EXPECT_EQ(words[0].bytes, 1u);
  held.Held(AnswerTo(words[0], BulkWord::kHeld));
  EXPECT_TRUE(held.Knows(Name(1)) && !held.Awaits());
  held.Unlinked();
  EXPECT_EQ(Words(held).at(0).bytes, 1u) << "on another link, too";
  held.LentOn(Name(1), 10, false);
  EXPECT_EQ(Words(held).at(0).bytes, 0u);
  held.LentOn(Name(1), 10, true);
  held.LetGo(Name(1), 10);
  EXPECT_EQ(Words(held).at(0).word, BulkWord::kLetGo);
  held.Take(Name(1), 11);
  EXPECT_EQ(Words(held).at(0).bytes, 0u) << "nobody has that one from here";
}

TEST(RemoteLent, LA4_ALifeThatOthersHaveFromTheOtherEndOutlivesIt) {
  RemoteLent lent;
  const store::ObjectId life{ProcessId(1, 1), 7 | store::kLifeBit};
  for (const store::ObjectId& name : {life, Name(1)}) {
    lent.Lend(name);
    EXPECT_FALSE(lent.Outlives(name));
    lent.NoteOn(name, true);
  }
  EXPECT_TRUE(lent.Outlives(life));
  EXPECT_FALSE(lent.Outlives(Name(1))) << "it is no life";
  lent.NoteOn(life, false);
  EXPECT_FALSE(lent.Outlives(life));
  lent.NoteOn(life, true);
  lent.TakeBack(life);
  lent.NoteOn(life, true);
  EXPECT_FALSE(lent.Outlives(life)) << "it was let go of";
  EXPECT_EQ(lent.names(), std::vector<store::ObjectId>{Name(1)});
}

TEST(RemoteHeld, WhatIsNotAnsweredIsGivenUpAndLetGoOf) {
  RemoteHeld held;
  held.Take(Name(1), 1);
  held.Take(Name(2), 2);
  held.Held(AnswerTo(Words(held).at(0), BulkWord::kHeld));
  const std::vector<RemoteHeld::Lost> lost = held.GiveUpAsked();
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].local, 2u);
  EXPECT_EQ(Words(held).at(0).word, BulkWord::kLetGo) << "it may have heard of the first word";
  EXPECT_EQ(held.LoseAll().size(), 1u);
  EXPECT_TRUE(held.empty());
}

TEST(RemoteLent, LA2_WhatLiesInsideIsGivenWhileTheOuterOneIsHeld) {
  RemoteLent lent;
  std::string out;
  lent.Lend(Name(1));
  EXPECT_TRUE(lent.Want(Name(1)));
  EXPECT_FALSE(lent.Want(Name(1))) << "asked for already";
  EXPECT_FALSE(lent.Want(Name(2)));
  EXPECT_TRUE(lent.Tell(Name(1), 1, 100, {Name(5), Name(5)}, out));
  EXPECT_EQ(Split(out).size(), 3u);
  EXPECT_FALSE(lent.Tell(Name(1), 1, 100, {}, out)) << "LA-3";
  EXPECT_TRUE(lent.GivesInside(Name(5)));
  EXPECT_TRUE(lent.Want(Name(1))) << "asked again, on another link";
  EXPECT_TRUE(lent.Tell(Name(1), 1, 100, {Name(5), Name(5)}, out));
  EXPECT_TRUE(lent.TakeBack(Name(1)));
  EXPECT_FALSE(lent.TakeBack(Name(1)));
  EXPECT_FALSE(lent.GivesInside(Name(5)));
  EXPECT_TRUE(lent.empty());
}

/// Both ends, and what is on its way between them.
class Link {
 public:
  explicit Link(std::uint64_t seed) : random_(seed) {}

  void Step() {
    const std::uint64_t name = random_() % 12;
    switch (random_() % 10) {
      case 0:
      case 1:
        held_.Take(Name(name), locals_[name] = ++last_);
        break;
      case 2:
      case 3:
        if (locals_.count(name) != 0) held_.LetGo(Name(name), locals_[name]);
        locals_.erase(name);
        break;
      case 4:
        if (locals_.count(name) != 0) held_.Want(Name(name), locals_[name]);
        break;
      case 5:
        if (random_() % 8 == 0) Cut();
        break;
      case 6:
        TellOf(name);
        break;
      default:
        Move();
    }
    // Neither end takes for held what the other does not keep.
    for (const auto& [each, local] : locals_) {
      ASSERT_TRUE(!held_.Knows(Name(each)) || lent_.Lends(Name(each))) << each;
    }
  }
  void Finish() {
    for (std::uint64_t turn = 0; turn < 200; ++turn) Move();
    EXPECT_FALSE(held_.Awaits());
    for (std::uint64_t name = 0; name < 12; ++name)
      EXPECT_EQ(lent_.Lends(Name(name)), locals_.count(name) != 0) << name;
    for (const auto& [name, local] : locals_) {
      held_.Want(Name(name), local);
      for (int turn = 0; turn < 4; ++turn) Move();
      TellOf(name);
      const std::uint64_t before = values_;
      Move();
      EXPECT_EQ(values_, before + 1) << name;
    }
  }

 private:
  void Cut() {
    there_.clear();
    back_.clear();
    held_.Unlinked();
  }
  void TellOf(std::uint64_t name) {
    std::string out;
    lent_.Tell(Name(name), 1, 100, {}, out);
    for (const BulkFrame& frame : Split(out)) back_.push_back(frame);
  }
  /// Some of what is to be said is, some of what was arrives.
  void Move() {
    for (const BulkFrame& word : Words(held_)) there_.push_back(word);
    for (std::uint64_t some = 1 + random_() % 4; some > 0 && !there_.empty(); --some) {
      const BulkFrame word = there_.front();
      there_.pop_front();
      if (word.word == BulkWord::kWant) {
        lent_.Want(word.id);
        continue;
      }
      if (word.word == BulkWord::kHold) lent_.Lend(word.id);
      if (word.word == BulkWord::kLetGo) lent_.TakeBack(word.id);
      back_.push_back(
          AnswerTo(word, word.word == BulkWord::kHold ? BulkWord::kHeld : BulkWord::kLeft));
    }
    for (std::uint64_t some = 1 + random_() % 6; some > 0 && !back_.empty(); --some) {
      const BulkFrame word = back_.front();
      back_.pop_front();
      if (word.word == BulkWord::kHeld) held_.Held(word);
      if (word.word == BulkWord::kLeft) held_.Dropped(word);
      if (word.word != BulkWord::kReady) continue;
      const auto value = held_.Ready(word);
      ASSERT_TRUE(value.ok());
      if (value->has_value()) {
        ++values_;
        EXPECT_EQ((*value)->local, locals_[word.id.sequence]);
      }
    }
  }

  std::mt19937_64 random_;
  RemoteHeld held_;
  RemoteLent lent_;
  std::deque<BulkFrame> there_;
  std::deque<BulkFrame> back_;
  std::map<std::uint64_t, RemoteHeld::Local> locals_;  // objects that are held, and their stand-ins
  RemoteHeld::Local last_ = 0;
  std::uint64_t values_ = 0;
};

TEST(RemoteHeld, BothEndsAgreeWhateverIsCut) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Link link(seed);
    for (int step = 0; step < 400; ++step) link.Step();
    link.Finish();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace troupe::actors
