// Method: a real server behind a channel, arguments that the test answers itself, from another
// thread or after the channel's end; values are plain bytes, which the actor sends back.
#include "actors/caller/pending_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/caller/reactor.h"
#include "tests/actors/calling.h"
#include "tests/actors/echo_executor.h"

namespace troupe::actors {
namespace {

using ::testing::HasSubstr;

class PlainValues : public ArgumentCodec {
 public:
  bool AppendAnswer(const Answer& answer, std::size_t, std::string* values,
                    Handles*) const override {
    values->append(answer.bytes());
    return !answer.bytes().empty();
  }
  std::optional<std::string> ForRemote(std::string_view values, int, bool*) const override {
    return std::string(values);
  }
};

class PendingCallsTest : public ::testing::Test {
 protected:
  PendingCallsTest()
      : path_("/tmp/troupe-line-" + std::to_string(::getpid()) + "-" + std::to_string(++made_)),
        server_(*CallServer::Listen(path_)),
        thread_([this] { server_->Serve(executor_); }) {}
  ~PendingCallsTest() override {
    server_->Stop();
    thread_.join();
  }
  std::shared_ptr<Channel> Connect(bool ordered = true) {
    ChannelOptions options;
    options.description = "actor Echo(1)";
    options.ordered = ordered;
    return *Channel::Connect(CallReactor::Current(), path_, options);
  }
  AnswerRef Argument() { return AnswerRef(Answer::New(CallReactor::Current().NextLocalId())); }
  void Give(Answer* argument, std::string_view bytes, std::uint16_t flags = kFlagReply) {
    CallReactor::Current().Complete(argument, flags, bytes);
  }
  /// A call of "before<argument>after", for each argument.
  AnswerRef Keep(Channel& channel, const std::vector<Answer*>& arguments) {
    ByteBuffer frame;
    frame.Extend(kFrameHeadBytes);
    frame.AppendValue(CallHead{});
    frame.AppendValue(std::uint16_t{1});
    frame.Append("f", 1);
    PendingCalls::Call call;
    call.frame.assign(frame.data(), frame.size());
    call.flags = kFlagNamed;
    call.method = "f";
    std::vector<ArgumentToCome> to_come;
    for (Answer* argument : arguments) {
      call.frame += "before ";
      to_come.push_back({call.frame.size(), AnswerRef::Another(argument)});
      call.frame += " after;";
    }
    call.to_come = PendingArguments(std::move(to_come));
    if (arguments.empty()) call.frame += "nothing to wait for";
    return channel.Line(values_).Keep(std::move(call));
  }
  std::string Text(const AnswerRef& answer) {
    EXPECT_EQ(Await(answer.get(), nullptr), WaitResult::kDone);
    std::string text(answer.get()->bytes());
    // the frame's padding comes back too
    while (!text.empty() && text.back() == '\0') text.pop_back();
    return text;
  }

  static inline int made_ = 0;
  const PlainValues values_;
  const std::string path_;
  EchoExecutor executor_;
  std::unique_ptr<CallServer> server_;
  std::thread thread_;
};

TEST_F(PendingCallsTest, GapsAreFilledInTheirOrderWhateverComesFirst) {
  const std::shared_ptr<Channel> channel = Connect();
  const AnswerRef first = Argument();
  const AnswerRef second = Argument();
  const AnswerRef answer = Keep(*channel, {first.get(), second.get(), first.get()});
  const AnswerRef behind = Keep(*channel, {});
  EXPECT_EQ(channel->Outstanding(), 2u);
  std::thread giver([&] {
    Give(second.get(), "two");
    Give(first.get(), "one");
  });
  EXPECT_EQ(Text(answer), "before one after;before two after;before one after;");
  EXPECT_EQ(Text(behind), "nothing to wait for");
  giver.join();
  channel->Close();
}

TEST_F(PendingCallsTest, OnlyWhereOrderIsKeptDoesACallWaitBehindAnother) {
  for (const bool ordered : {true, false}) {
    const std::shared_ptr<Channel> channel = Connect(ordered);
    const AnswerRef argument = Argument();
    const AnswerRef answer = Keep(*channel, {argument.get()});
    EXPECT_EQ(channel->Line(values_).Holds(), ordered);
    const AnswerRef other = Keep(*channel, {});
    if (!ordered) {
      EXPECT_EQ(Text(other), "nothing to wait for");
    }
    EXPECT_FALSE(answer.get()->done());
    Give(argument.get(), "late");
    EXPECT_EQ(Text(answer), "before late after;");
    EXPECT_EQ(Text(other), "nothing to wait for");
    channel->Close();
  }
}

TEST_F(PendingCallsTest, AnArgumentThatFailedIsTheAnswerOfItsCallAlone) {
  const std::shared_ptr<Channel> channel = Connect();
  const AnswerRef bad = Argument();
  const AnswerRef never = Argument();
  const AnswerRef answer = Keep(*channel, {never.get(), bad.get()});
  const AnswerRef behind = Keep(*channel, {});
  Give(bad.get(), "what it raised", kFlagReply | kFlagTaskError);
  EXPECT_EQ(Text(answer), "what it raised");
  EXPECT_EQ(answer.get()->flags(), kFlagReply | kFlagTaskError | kFlagOfArgument);
  EXPECT_EQ(Text(behind), "nothing to wait for");
  Give(never.get(), "too late");
  channel->Close();
  EXPECT_EQ(executor_.calls, 1);
}

TEST_F(PendingCallsTest, WhatWaitsEndsWithItsChannelAndLateArgumentsChangeNothing) {
  for (const bool verdict : {true, false}) {
    std::shared_ptr<Channel> channel = Connect();
    const AnswerRef argument = Argument();
    const AnswerRef answer = Keep(*channel, {argument.get()});
    const AnswerRef behind = Keep(*channel, {});
    if (verdict) {
      channel->Fail(ErrorCode::kActorDied, "it died");
    } else {
      channel->Close();
      channel.reset();
    }
    for (const AnswerRef* each : {&answer, &behind}) {
      EXPECT_THAT(Text(*each), HasSubstr(verdict ? "it died" : "closed here"));
    }
    Give(argument.get(), "late");
  }
  EXPECT_EQ(executor_.calls, 0);
}

TEST_F(PendingCallsTest, ACallThatIsCancelledIsNotMade) {
  const std::shared_ptr<Channel> channel = Connect();
  const AnswerRef argument = Argument();
  const AnswerRef answer = Keep(*channel, {argument.get()});
  const AnswerRef behind = Keep(*channel, {});
  channel->Cancel(answer.get());
  EXPECT_THAT(Text(answer), HasSubstr("f() was cancelled by its caller before it began"));
  EXPECT_EQ(Text(behind), "nothing to wait for");
  Give(argument.get(), "late");
  channel->Close();
  EXPECT_EQ(executor_.calls, 1);
}

TEST_F(PendingCallsTest, ManyCallsThatComeAtOnceAreSentAsThereIsRoom) {
  const std::shared_ptr<Channel> channel = Connect();
  const AnswerRef argument = Argument();
  std::vector<AnswerRef> answers;
  for (int i = 0; i < 2000; ++i) answers.push_back(Keep(*channel, {argument.get()}));
  Give(argument.get(), std::string(4000, 'x'));  // 8 MB in all: more than a channel keeps unsent
  for (const AnswerRef& each : answers) EXPECT_EQ(Text(each).size(), 4014u);
  EXPECT_EQ(channel->Outstanding(), 0u);
  channel->Close();
}

TEST_F(PendingCallsTest, WhoHasTheLastAnswerFindsNoneOutstanding) {
  const std::shared_ptr<Channel> channel = Connect();
  // the thread that sent it may not have gone on when its answer is here
  for (int i = 0; i < 3000; ++i) {
    const AnswerRef argument = Argument();
    const AnswerRef answer = Keep(*channel, {argument.get()});
    ASSERT_EQ(channel->Outstanding(), 1u);
    Give(argument.get(), "one");
    ASSERT_EQ(Text(answer), "before one after;");
    ASSERT_EQ(channel->Outstanding(), 0u) << "after call " << i;
  }
  channel->Close();
}

}  // namespace
}  // namespace troupe::actors
