// Method: calls over TLS through a relay that ends the connection at each stage of a call: before
// it is sent, sent and not run, run and not answered; then at random under many calls. The actor
// records every call it runs, so that one that ran twice, never, or out of order shows. Then those
// who must not resume.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "actors/core/call/call_control.h"
#include "actors/net/call_dial.h"
#include "actors/net/tls_loop.h"
#include "runtime/base/random.h"
#include "tests/actors/relay.h"
#include "tests/actors/tls_support.h"

namespace troupe::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The calls that ran, in order; a call named "gate" waits inside until Open.
class Record {
 public:
  Hook hook() {
    return [this](std::string_view value) {
      {
        const std::lock_guard lock(mutex_);
        ran_.emplace_back(value.substr(0, 8));
      }
      if (value.substr(0, 4) != "gate") return;
      inside_ = true;
      inside_.notify_all();
      open_.wait(false);
    };
  }
  void AwaitGate() { inside_.wait(false); }
  void Open() {
    open_ = true;
    open_.notify_all();
  }
  std::vector<std::string> ran() {
    const std::lock_guard lock(mutex_);
    return ran_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> ran_;
  std::atomic<bool> inside_{false};
  std::atomic<bool> open_{false};
};

std::string Numbered(int n) {
  std::string text = std::to_string(n);
  text.resize(8, ' ');
  return text;
}

std::shared_ptr<Channel> DialThrough(Relay& relay, TestCluster& cluster, TlsActor& actor,
                                     Duration grace) {
  RemoteActor target = actor.target();
  target.port = relay.port();
  ChannelOptions options;
  options.description = "actor Echo(1)";
  options.grace = grace;
  return *Channel::Dial(CallReactor::Current(), target,
                        cluster.Identity(wire::Role::kClient, NodeId(9, 9)), options);
}

// A call that the actor has begun and goes on with when the gate opens, after one that was
// answered.
Answer* AtTheGate(Channel& channel, Record& record) {
  EXPECT_EQ(Call(channel, "firstone"), "firstone");
  Answer* gate = Issue(channel, "gate    ");
  channel.Flush();
  record.AwaitGate();
  return gate;
}

/// A caller and an actor with the relay between them.
class Resume : public ::testing::TestWithParam<std::pair<bool, bool>> {
 protected:
  ~Resume() override { channel_->Close(); }
  void Cut() { relay_.Cut(GetParam().first, GetParam().second); }

  TestCluster cluster_;
  Record record_;
  TlsActor actor_{cluster_, true, record_.hook()};
  Relay relay_{actor_.port()};
  std::shared_ptr<Channel> channel_ = DialThrough(relay_, cluster_, actor_, 30s);
};

TEST_P(Resume, BeforeACallIsSent) {
  EXPECT_EQ(Call(*channel_, "firstone"), "firstone");
  Cut();
  EXPECT_EQ(Call(*channel_, "secondly"), "secondly");
  EXPECT_EQ(Call(*channel_, "thirdone"), "thirdone");
  EXPECT_THAT(record_.ran(), ElementsAre("firstone", "secondly", "thirdone"));
  EXPECT_GE(relay_.accepted(), 2);
}

TEST_P(Resume, SentAndNotRun) {
  Answer* gate = AtTheGate(*channel_, record_);
  std::vector<Answer*> slots;
  for (int i = 0; i < 100; ++i) slots.push_back(Issue(*channel_, Numbered(i)));
  channel_->Flush();
  Cut();
  record_.Open();
  EXPECT_EQ(AnswerText(gate, *channel_), "gate    ");
  std::vector<std::string> expected = {"firstone", "gate    "};
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(AnswerText(slots[static_cast<std::size_t>(i)], *channel_), Numbered(i));
    expected.push_back(Numbered(i));
  }
  EXPECT_EQ(record_.ran(), expected);
}

TEST_P(Resume, RunAndNotAnswered) {
  EXPECT_EQ(Call(*channel_, "firstone"), "firstone");
  relay_.HoldReplies(true);
  std::vector<Answer*> slots;
  std::vector<std::string> expected = {"firstone"};
  for (int i = 0; i < 100; ++i) {
    slots.push_back(Issue(*channel_, Numbered(i)));
    expected.push_back(Numbered(i));
  }
  channel_->Flush();
  while (actor_.calls() < 101) std::this_thread::yield();
  Cut();
  relay_.HoldReplies(false);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(AnswerText(slots[static_cast<std::size_t>(i)], *channel_), Numbered(i));
  }
  EXPECT_EQ(record_.ran(), expected);
}

TEST_P(Resume, WhileTheActorIsInALongMethodItWaitsForIt) {
  Answer* gate = Issue(*channel_, "gate    ");
  channel_->Flush();
  record_.AwaitGate();
  for (int i = 0; i < 3; ++i) {
    const int before = relay_.accepted();
    Cut();
    PlainHost host;
    Channel* where = channel_.get();
    while (relay_.accepted() == before) {  // somebody must read, to find the end
      CallReactor::Current().Wait({&gate, 1, 1, &where, 1, Now() + 10ms}, host);
    }
  }
  EXPECT_FALSE(gate->done());
  record_.Open();
  EXPECT_EQ(AnswerText(gate, *channel_), "gate    ");
  EXPECT_THAT(record_.ran(), ElementsAre("gate    "));
}

TEST_P(Resume, LargeCallsAndAnswersAreSentAgain) {
  std::vector<Answer*> slots;
  const std::string large = Padded(6u << 20, 'l');
  EXPECT_EQ(Call(*channel_, "firstone"), "firstone");
  for (int i = 0; i < 6; ++i) {
    slots.push_back(Issue(*channel_, Numbered(i) + large));
    if (i % 2 == 1) Cut();
  }
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(AnswerText(slots[static_cast<std::size_t>(i)], *channel_) == Numbered(i) + large,
              true)
        << i;
  }
  EXPECT_EQ(record_.ran().size(), 7u);
}

TEST_P(Resume, CutAtRandomUnderManyCallsEachRunsOnceInOrder) {
  constexpr int kCalls = 6000;
  Prng random(7);
  std::vector<Answer*> slots;
  int next = 0;
  const auto take = [&](int until) {
    for (; next < until; ++next) {
      ASSERT_EQ(AnswerText(slots[static_cast<std::size_t>(next)], *channel_, 60s), Numbered(next));
    }
  };
  for (int i = 0; i < kCalls; ++i) {
    slots.push_back(Issue(*channel_, Numbered(i)));
    if (i % 500 == 499) take(i - static_cast<int>(random.Below(400)));
    if (random.Below(200) == 0) Cut();  // while calls, and answers, are on their way
  }
  take(kCalls);
  const std::vector<std::string> ran = record_.ran();
  ASSERT_EQ(ran.size(), static_cast<std::size_t>(kCalls));
  for (int i = 0; i < kCalls; ++i) ASSERT_EQ(ran[static_cast<std::size_t>(i)], Numbered(i));
  EXPECT_GT(relay_.accepted(), 5);
}

INSTANTIATE_TEST_SUITE_P(Ends, Resume,
                         ::testing::Values(std::pair(false, true), std::pair(true, true),
                                           std::pair(true, false)),
                         [](const auto& info) {
                           return std::string(info.param.first ? "Reset" : "Orderly") +
                                  (info.param.second ? "" : "ActorNotTold");
                         });

TEST(ResumeEnds, ACutThatLastsEndsEveryCallByName) {
  TestCluster cluster;
  Record record;
  TlsActor actor(cluster, true, record.hook());
  Relay relay(actor.port());
  const auto channel = DialThrough(relay, cluster, actor, 300ms);
  Answer* gate = AtTheGate(*channel, record);
  relay.Refuse(true);
  relay.Cut(true, true);
  const std::string answer = AnswerText(gate, *channel);
  EXPECT_THAT(answer, HasSubstr(ErrorText(ErrorCode::kMaybeExecuted)));
  EXPECT_THAT(answer, HasSubstr("cannot be reached"));
  EXPECT_THAT(Call(*channel, "secondly"), HasSubstr(ErrorText(ErrorCode::kNotSent)));
  record.Open();
  channel->Close();
}

TEST(ResumeEnds, AnotherIncarnationRunsNothingOfTheOneBefore) {
  TestCluster cluster;
  Record record;
  TlsActor actor(cluster, true, record.hook());
  TlsActor next(cluster);
  Relay relay(actor.port());
  const auto channel = DialThrough(relay, cluster, actor, 30s);
  Answer* gate = AtTheGate(*channel, record);
  relay.Turn(next.port());
  relay.Cut(true, true);
  const std::string answer = AnswerText(gate, *channel);
  EXPECT_THAT(answer, HasSubstr(ErrorText(ErrorCode::kMaybeExecuted)));
  EXPECT_THAT(answer, HasSubstr("a session to resume that is not known here"));
  EXPECT_EQ(next.calls(), 0);
  record.Open();
  channel->Close();
}

/// A connection to the actor whose frames a test writes by hand.
class ByHand {
 public:
  ByHand(const TlsActor& actor, IdentitySource identity) {
    std::atomic<bool> done{false};
    const auto dial = [](ByHand* self, RemoteActor target, IdentitySource who,
                         std::atomic<bool>* ready) -> async::Task<void> {
      std::function<bool()> wanted = [] { return true; };
      auto dialling = DialActor(std::move(target), std::move(who), 20s, std::move(wanted));
      StatusOr<CallStream> stream = co_await std::move(dialling);
      EXPECT_TRUE(stream.ok()) << MessageOf(stream.status());
      if (stream.ok()) self->stream_ = *std::move(stream);
      *ready = true;
      ready->notify_all();
    };
    TlsLoop::Current().Spawn("by hand", dial(this, actor.target(), std::move(identity), &done));
    done.wait(false);
  }
  void Send(const std::string& bytes) {
    EXPECT_EQ(stream_.TryWrite(bytes.data(), bytes.size()).bytes, bytes.size());
  }
  void Hello(const SessionId& id, bool resumes) {
    CallControl hello;
    hello.session = id;
    hello.resumes = resumes;
    Send(ControlFrame(ControlKind::kHello, hello, 0));
  }
  /// The next frame's kind in words, with its text if it has one.
  std::string Next() {
    Frame frame;
    std::string why;
    while (ParseFrame(in_.view(), CallLimits(), &frame, &why) != ParseOutcome::kFrame) {
      pollfd watched{stream_.fd(), POLLIN, 0};
      in_.Reserve(256u << 10);
      const IoResult got = stream_.TryRead(in_.tail(), in_.spare());
      if (got.outcome == IoOutcome::kEnded) return "ended";
      if (got.outcome == IoOutcome::kProgress) {
        in_.Commit(got.bytes);
      } else if (::poll(&watched, 1, 20'000) <= 0) {
        return "silence";
      }
    }
    std::string what = "reply";
    if ((frame.head.flags & kFlagGoodbye) != 0) {
      what = "goodbye: " + std::string(ReadRuntimeError(frame.body).text);
    } else if ((frame.head.flags & kFlagControl) != 0) {
      what = ParseControl(frame)->kind == ControlKind::kWelcome ? "welcome" : "control";
    }
    in_.Consume(frame.bytes);
    return what;
  }

 private:
  CallStream stream_;
  ByteBuffer in_;
};

TEST(ResumeSecurity, OnlyWhoBeganASessionResumesIt) {
  TestCluster cluster;
  TlsActor actor(cluster);
  const IdentitySource one = cluster.Identity(wire::Role::kClient, NodeId(9, 9));
  const IdentitySource other = cluster.Identity(wire::Role::kClient, NodeId(9, 8));
  const IdentitySource process = cluster.Identity(wire::Role::kProcess, NodeId(9, 9));
  const SessionId id(11, 12);
  ByHand begun(actor, one);
  begun.Hello(id, false);
  ASSERT_EQ(begun.Next(), "welcome");
  for (const IdentitySource& thief : {other, process}) {
    ByHand theft(actor, thief);
    theft.Hello(id, true);
    EXPECT_THAT(theft.Next(), HasSubstr("not known here"));
    EXPECT_EQ(theft.Next(), "ended");
    ByHand squat(actor, thief);
    squat.Hello(id, false);
    EXPECT_THAT(squat.Next(), HasSubstr("a session that exists"));
  }
  ByHand guess(actor, one);
  guess.Hello(SessionId(11, 13), true);
  EXPECT_THAT(guess.Next(), HasSubstr("not known here"));
  ByHand resumed(actor, one);
  resumed.Hello(id, true);
  EXPECT_EQ(resumed.Next(), "welcome");
  EXPECT_EQ(begun.Next(), "ended");  // RS-5: fenced, though it never ended by itself
}

TEST(ResumeSecurity, AHelloComesFirstAndOnceAndAlone) {
  TestCluster cluster;
  TlsActor actor(cluster);
  const IdentitySource one = cluster.Identity(wire::Role::kClient, NodeId(9, 9));
  ByHand twice(actor, one);
  twice.Hello(SessionId(11, 12), false);
  ASSERT_EQ(twice.Next(), "welcome");
  twice.Hello(SessionId(11, 14), false);
  EXPECT_THAT(twice.Next(), HasSubstr("a hello that does not come first"));
  ByHand begun(actor, one);
  begun.Hello(SessionId(11, 15), false);
  ASSERT_EQ(begun.Next(), "welcome");
  ByHand eager(actor, one);
  CallControl hello;
  hello.session = SessionId(11, 15);
  hello.resumes = true;
  eager.Send(ControlFrame(ControlKind::kHello, hello, 0) + std::string(40, 'x'));
  EXPECT_THAT(eager.Next(), HasSubstr("more before it was welcomed"));
  ByHand liar(actor, one);
  liar.Send(ControlFrame(ControlKind::kAck, {}, 99));
  EXPECT_THAT(liar.Next(), HasSubstr("replies that it was not given"));
  ByHand teller(actor, one);
  hello.resumes = true;
  teller.Send(ControlFrame(ControlKind::kHello, hello, 99));
  EXPECT_THAT(teller.Next(), HasSubstr("not kept any more"));
}

}  // namespace
}  // namespace troupe::actors
