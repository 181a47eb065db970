// Both ends of a bulk exchange over a socket pair, turned by hand; one object store gives and
// takes.
#include "actors/bulk/bulk_link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/caller/reactor.h"
#include "actors/core/call/call_frame.h"
#include "actors/net/now.h"

namespace troupe::actors {
namespace {

ObjectStore& Store() { return *ObjectStore::Current(); }

/// A source of references that asks nothing of it.
class Deaf : public RemoteSource {
 public:
  void Want(const store::ObjectId&, std::uint64_t) override {}
  void LetGo(const store::ObjectId&, std::uint64_t) override {}
  void LentOn(const store::ObjectId&, std::uint64_t, bool) override {}
};

/// A source of references that counts its messages.
class Told : public RemoteSource {
 public:
  void Want(const store::ObjectId&, std::uint64_t) override { ++wanted; }
  void LetGo(const store::ObjectId&, std::uint64_t) override { ++let_go; }
  void LentOn(const store::ObjectId&, std::uint64_t, bool lent) override {
    lent_on.push_back(lent);
  }
  int wanted = 0;
  int let_go = 0;
  std::vector<bool> lent_on;
};

class BulkLinkTest : public testing::Test {
 protected:
  /// A life with one handle.
  static store::ObjectId NewLife() {
    const AnswerRef slot(Answer::New(CallReactor::Current().NextLocalId() | store::kLifeBit));
    slot.get()->Claim();
    slot.get()->Fill(kFlagReply, std::string_view("\0", 1));
    slot.get()->Finish();
    return *Store().Export(slot.get());
  }
  /// An object whose every byte tells where it lies.
  store::ObjectId Put(std::size_t size) {
    const StatusOr<store::Writing> writing = Store().pool().Begin(size);
    for (std::size_t i = 0; i < size; ++i) writing->data[i] = Byte(i);
    return Store().Put(*writing, CallReactor::Current().NextLocalId(), {});
  }
  static char Byte(std::size_t at) { return static_cast<char>(at * 31 + (at >> 13)); }

  void SetUp() override { Link(); }
  void Link() {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    EXPECT_TRUE(giver_.Link(CallStream(UnixStream(ends[0])), {}, {}, now_));
    EXPECT_TRUE(taker_.Link(CallStream(UnixStream(ends[1])), {}, {}, now_));
  }
  void Unlink() {
    giver_.Unlink(now_);
    taker_.Unlink(now_);
  }
  /// Until neither has anything to do; at most `turns` turns of each.
  void Turn(int turns = 10000) {
    for (int idle = 0; idle < 3 && turns-- > 0; ++idle) {
      const BulkLink::Went gave = giver_.Run(now_, ++round_);
      const BulkLink::Went took = taker_.Run(now_, ++round_);
      ASSERT_NE(gave, BulkLink::Went::kOver);
      ASSERT_NE(took, BulkLink::Went::kOver);
      if (gave != BulkLink::Went::kIdle || took != BulkLink::Went::kIdle) idle = -1;
    }
  }
  struct Result {
    bool done = false;
    Status status;
    std::uint64_t bytes = 0;
    bool right = false;
  };
  std::shared_ptr<Result> Pull(const store::ObjectId& id) {
    auto result = std::make_shared<Result>();
    taker_.Pull(
        id,
        [result](StatusOr<store::Writing> writing) {
          EXPECT_FALSE(result->done);
          result->done = true;
          result->status = writing.status();
          if (!writing.ok()) return;
          result->bytes = writing->bytes;
          result->right = true;
          for (std::size_t i = 0; i < writing->bytes; ++i)
            result->right &= writing->data[i] == Byte(i);
          Store().pool().GiveUp(*writing);
        },
        now_);
    return result;
  }

  static std::string Word(BulkWord word, const store::ObjectId& id, std::uint64_t offset = 0) {
    BulkFrame frame;
    frame.word = word;
    frame.id = id;
    frame.offset = offset;
    std::string bytes;
    AppendBulkFrame(bytes, frame);
    return bytes;
  }
  /// Returns giver_'s answers to these bytes, over a link whose other end is this test.
  std::vector<BulkFrame> Answers(const std::string& words) {
    EXPECT_EQ(::write(raw_.get(), words.data(), words.size()), static_cast<ssize_t>(words.size()));
    for (std::size_t i = 0; i < 2 + Doubt::kRounds; ++i) giver_.Run(now_, ++round_);
    std::string came(1 << 16, '\0');
    const ssize_t got = ::read(raw_.get(), came.data(), came.size());
    came.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    std::vector<BulkFrame> frames;
    for (std::string_view left = came; left.size() >= kBulkFrameBytes;) {
      const StatusOr<BulkFrame> frame = ReadBulkFrame(left);
      if (!frame.ok()) break;
      frames.push_back(*frame);
      left.remove_prefix(kBulkFrameBytes + (frame->word == BulkWord::kPart ? frame->bytes : 0));
    }
    return frames;
  }
  void LinkRaw() {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    EXPECT_TRUE(giver_.Link(CallStream(UnixStream(ends[0])), {}, {}, now_));
    raw_ = GuardedFd(ends[1]);
  }

  Instant now_ = Now();
  std::uint64_t round_ = 0;
  GuardedFd raw_;
  BulkLink giver_{Store()};
  BulkLink taker_{Store()};
};

TEST_F(BulkLinkTest, ValuesOfEverySizeArrive) {
  for (const std::size_t size :
       {1u, 63u, 70'000u, (1u << 20) - 1, 1u << 20, (1u << 20) + 1, 40u << 20}) {
    const store::ObjectId id = Put(size);
    giver_.Give(id);
    const auto result = Pull(id);
    Turn();
    EXPECT_TRUE(result->done && result->right) << size << MessageOf(result->status);
    EXPECT_EQ(result->bytes, size);
    giver_.TakeBack(id);
    Store().DropHandles({id});
  }
  EXPECT_EQ(Store().figures().pool.in_use, 0u);
}

TEST_F(BulkLinkTest, WhatIsNotGivenIsNotRead) {
  const store::ObjectId id = Put(1000);
  const auto never = Pull(id);
  Turn();
  EXPECT_EQ(ErrorCodeOf(never->status), ErrorCode::kNotFound);
  giver_.Give(id);
  giver_.Give(id);
  giver_.TakeBack(id);
  const auto still = Pull(id);
  Turn();
  EXPECT_TRUE(still->right);
  giver_.TakeBack(id);
  const auto late = Pull(id);
  Turn();
  EXPECT_EQ(ErrorCodeOf(late->status), ErrorCode::kNotFound);
  Store().DropHandles({id});
}

TEST_F(BulkLinkTest, WhatIsGivenInTheNextRoundIsGivenInTime) {
  const store::ObjectId id = Put(1000);
  const auto result = Pull(id);
  taker_.Run(now_, round_);
  EXPECT_EQ(giver_.Run(now_, round_), BulkLink::Went::kMore);
  EXPECT_EQ(giver_.Run(now_, round_), BulkLink::Went::kMore);
  EXPECT_EQ(giver_.Run(now_, ++round_), BulkLink::Went::kMore)
      << "the words of this round may have begun before";
  giver_.Give(id);  // was posted before the other end heard of it
  giver_.Run(now_, ++round_);
  taker_.Run(now_, round_);
  EXPECT_TRUE(result->right);
  Store().DropHandles({id});
}

TEST_F(BulkLinkTest, ALostLinkIsMadeUpForByAnother) {
  const store::ObjectId id = Put(30u << 20);
  giver_.Give(id);
  const auto result = Pull(id);
  for (int i = 0; i < 20 && !result->done; ++i) {
    Turn(1 + i % 3);
    Unlink();
    Link();
  }
  Turn();
  EXPECT_TRUE(result->right);
  Store().DropHandles({id});
  EXPECT_EQ(Store().figures().pool.in_use, 0u);
}

TEST_F(BulkLinkTest, AResultIsKeptUntilItIsTaken) {
  const store::ObjectId id = Put(2000);
  Handles handle;
  handle.Add(id);
  giver_.GiveResult(id, std::move(handle), {});
  const auto result = Pull(id);
  Turn();
  EXPECT_TRUE(result->right);
  EXPECT_TRUE(Store().Knows(id));
  Unlink();
  taker_.Took(id);  // goes over the next link
  EXPECT_TRUE(taker_.WantsLink());
  Link();
  Turn();
  EXPECT_FALSE(Store().Knows(id));
  EXPECT_FALSE(taker_.WantsLink());
}

TEST_F(BulkLinkTest, AResultThatIsTakenBeforeTheWordOfItWasRunIsLetGoOf) {
  const store::ObjectId id = Put(2000);
  Handles handle;
  handle.Add(id);
  taker_.Took(id);
  taker_.Run(now_, round_);
  EXPECT_EQ(giver_.Run(now_, ++round_), BulkLink::Went::kMore)
      << "the words of this round may have begun before";
  giver_.GiveResult(id, std::move(handle), {});  // was posted before the other end heard of it
  Turn();
  EXPECT_FALSE(Store().Knows(id));
  EXPECT_FALSE(taker_.WantsLink());
}

TEST_F(BulkLinkTest, AResultOfNoRoundIsNotAwaitedForEver) {
  taker_.Took({ProcessId(9, 9), 1});
  Turn();
  EXPECT_FALSE(taker_.WantsLink());
}

TEST_F(BulkLinkTest, AResultThatNobodyComesForIsGivenUp) {
  const store::ObjectId id = Put(2000);
  Handles handle;
  handle.Add(id);
  giver_.GiveResult(id, std::move(handle), {});
  EXPECT_FALSE(giver_.Deadline());
  giver_.Unlink(now_);
  EXPECT_FALSE(giver_.Deadline()) << "the call connection is there";
  giver_.Attached(false, now_);
  EXPECT_EQ(giver_.Deadline(), now_ + BulkExchange::kKept);
  giver_.Expire(now_ + BulkExchange::kKept - std::chrono::milliseconds(1));
  EXPECT_TRUE(Store().Knows(id));
  giver_.Expire(now_ + BulkExchange::kKept);
  EXPECT_FALSE(Store().Knows(id));
}

TEST_F(BulkLinkTest, SilenceEndsAPull) {
  const store::ObjectId id = Put(8u << 20);
  giver_.Give(id);
  const auto result = Pull(id);
  taker_.Run(now_, ++round_);
  EXPECT_EQ(taker_.Deadline(), now_ + BulkExchange::kSilence);
  now_ += std::chrono::seconds(29);
  giver_.Run(now_, ++round_);
  taker_.Run(now_, ++round_);  // something came
  EXPECT_EQ(taker_.Deadline(), now_ + BulkExchange::kSilence);
  EXPECT_TRUE(taker_.Expire(now_ + BulkExchange::kSilence));
  EXPECT_EQ(ErrorCodeOf(result->status), ErrorCode::kTimeout);
  EXPECT_EQ(Store().figures().pool.in_use, 1u) << "what it was read from alone";
  Turn();  // later bytes are dropped
  Store().DropHandles({id});
}

TEST_F(BulkLinkTest, AReferenceIsKeptFromTheHoldToTheLettingGo) {
  LinkRaw();
  const store::ObjectId id = Put(5000);
  EXPECT_EQ(Answers(Word(BulkWord::kHold, id, 1)).at(0).word, BulkWord::kRefused)
      << "it was not given";
  giver_.Give(id);
  const BulkFrame held = Answers(Word(BulkWord::kHold, id, 2)).at(0);
  EXPECT_EQ(held.word, BulkWord::kHeld);
  EXPECT_EQ(held.offset, 2u);
  giver_.TakeBack(id);
  Store().DropHandles({id});
  EXPECT_TRUE(Store().Knows(id)) << "the other end has it";
  EXPECT_TRUE(giver_.WantsLink());
  LinkRaw();
  EXPECT_EQ(Answers(Word(BulkWord::kHold, id, 2)).at(0).word, BulkWord::kHeld)
      << "said again on another link";
  const BulkFrame ready = Answers(Word(BulkWord::kWant, id)).at(0);
  EXPECT_EQ(ready.word, BulkWord::kReady);
  EXPECT_EQ(ready.total, 5000u);
  BulkFrame read;
  read.word = BulkWord::kRead;
  read.id = id;
  read.bytes = 100;
  std::string ask;
  AppendBulkFrame(ask, read);
  EXPECT_EQ(Answers(ask).at(0).total, 5000u);
  EXPECT_EQ(Answers(Word(BulkWord::kLetGo, id, 3)).at(0).word, BulkWord::kLeft);
  EXPECT_FALSE(Store().Knows(id));
  EXPECT_FALSE(giver_.WantsLink());
  EXPECT_EQ(Answers(ask).at(0).word, BulkWord::kGone);
  EXPECT_EQ(Answers(Word(BulkWord::kLetGo, id, 4)).at(0).word, BulkWord::kLeft)
      << "whoever says it twice";
}

TEST_F(BulkLinkTest, WhoIsThereHearsOfWhatWasLetGoOverAnotherLink) {
  const store::ObjectId name{ProcessId(7, 7), 1};
  giver_.refs().Begin(std::make_shared<Deaf>(), [](const store::ObjectId&) {});
  store::ObjectId here;
  giver_.TakeRefs({name}, [&here](Handles handles) { here = handles.ids().at(0); }, now_);
  LinkRaw();
  const std::vector<BulkFrame> asked = Answers("");
  ASSERT_EQ(asked.at(0).word, BulkWord::kHold);
  Answers(Word(BulkWord::kHeld, name, asked.at(0).offset));
  giver_.refs().LetGo(name, here.sequence);
  giver_.Unlink(now_);
  EXPECT_TRUE(giver_.WantsLink()) << "it would keep the object for as long as it lives";
  giver_.Attached(false, now_);
  EXPECT_FALSE(giver_.WantsLink()) << "it hears that this process has ended";
}

TEST_F(BulkLinkTest, WhatNobodyCanBeAskedForIsGivenUp) {
  LinkRaw();
  const store::ObjectId id = Put(100);
  giver_.Give(id);
  Answers(Word(BulkWord::kHold, id, 1));
  Store().DropHandles({id});
  EXPECT_FALSE(giver_.EndCalls(MakeError(ErrorCode::kConnection, "over"), now_))
      << "a reference is held";
  giver_.Unlink(now_);
  EXPECT_EQ(giver_.Deadline(), now_ + BulkExchange::kKept);
  giver_.Expire(now_ + BulkExchange::kKept - std::chrono::milliseconds(1));
  EXPECT_TRUE(Store().Knows(id));
  giver_.Expire(now_ + BulkExchange::kKept);
  EXPECT_FALSE(Store().Knows(id));
  EXPECT_TRUE(giver_.Over());
}

TEST_F(BulkLinkTest, ALifeThatOthersHaveFromTheOtherEndOutlivesIt) {
  for (const std::vector<std::uint64_t>& said :
       {std::vector<std::uint64_t>{0}, {1}, {1, 0}, {0, 1}}) {
    LinkRaw();
    const store::ObjectId life = NewLife();
    giver_.Give(life);
    std::uint64_t number = 0;
    for (const std::uint64_t others : said) {
      BulkFrame hold = WordOf(BulkWord::kHold, life, ++number);
      hold.bytes = others;
      std::string words;
      AppendBulkFrame(words, hold);
      EXPECT_EQ(Answers(words).at(0).word, BulkWord::kHeld);
    }
    giver_.TakeBack(life);
    Store().DropHandles({life});
    EXPECT_TRUE(Store().Knows(life)) << "the other end has it";
    giver_.EndRefs("it was killed");
    EXPECT_EQ(Store().Knows(life), said.back() == 1);
    EXPECT_TRUE(giver_.refs().idle());
  }
}

TEST_F(BulkLinkTest, WhatStandsForALifeIsOneAndIsNeverAskedFor) {
  const auto source = std::make_shared<Told>();
  const store::ObjectId name{ProcessId(8, 8), 5 | store::kLifeBit};
  bool fresh = false;
  const store::ObjectId here = Store().TakeRemote(name, source, &fresh);
  EXPECT_TRUE(fresh && store::IsLife(here) && here.owner == Store().self());
  {
    const AnswerRef slot = Store().Borrow(name);
    ASSERT_NE(slot.get(), nullptr) << "by the name in the pickle";
    EXPECT_TRUE(slot.get()->done());
    EXPECT_EQ(Store().NameOf(slot.get()), here);
  }
  EXPECT_EQ(Store().RemoteNameOf(here), name);
  Store().NoteLentOn(name, true);
  Store().NoteLentOn(name, true);
  Store().NoteLentOn(name, false);
  EXPECT_EQ(source->lent_on, std::vector<bool>{true}) << "one of two has it";
  Store().NoteLentOn(name, false);
  EXPECT_EQ(source->lent_on, (std::vector<bool>{true, false}));
  EXPECT_EQ(Store().TakeRemote(name, source, &fresh), here);
  EXPECT_FALSE(fresh);
  Store().FailRemote(here, kOwnerDied, "it is gone");
  const store::ObjectId again = Store().TakeRemote(name, source, &fresh);
  EXPECT_TRUE(fresh && !(again == here)) << "who sends it now has it";
  Store().DropHandles({here, here, again});
  EXPECT_FALSE(Store().Knows(name));
  EXPECT_EQ(source->let_go, 2);
  EXPECT_EQ(source->wanted, 0);
}

TEST_F(BulkLinkTest, WhoBreaksTheRulesLosesItsLink) {
  BulkFrame read;
  read.word = BulkWord::kRead;
  read.id = {ProcessId(1, 1), 1};
  read.bytes = 10;
  BulkFrame part = read;
  part.word = BulkWord::kPart;
  part.total = 10;
  BulkFrame hello;
  hello.session = SessionId(1, 1);
  std::string reads;
  for (std::size_t i = 0; i <= BulkExchange::kReadsMax; ++i) AppendBulkFrame(reads, read);
  std::string parts;
  AppendBulkFrame(parts, part);
  std::string hellos;
  AppendBulkFrame(hellos, hello);
  std::string holds;
  for (std::size_t i = 0; i <= RemoteHeld::kAskedMax; ++i)
    holds += Word(BulkWord::kHold, {ProcessId(1, 1), i + 1}, i);
  BulkFrame ready = read;
  ready.word = BulkWord::kReady;
  ready.total = 5;
  std::string unannounced;
  AppendBulkFrame(unannounced, ready);  // ten references, of which none came before it
  for (const std::string& attack :
       {reads, parts, hellos, holds, unannounced, std::string(200, 'x')}) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    ASSERT_TRUE(giver_.Link(CallStream(UnixStream(ends[0])), {}, {}, now_));
    ASSERT_EQ(::write(ends[1], attack.data(), attack.size()), static_cast<ssize_t>(attack.size()));
    EXPECT_EQ(giver_.Run(now_, ++round_), BulkLink::Went::kOver);
    EXPECT_EQ(giver_.why().rfind("it sent ", 0), 0u) << giver_.why();
    giver_.Unlink(now_);
    ::close(ends[1]);
  }
}

}  // namespace
}  // namespace troupe::actors
