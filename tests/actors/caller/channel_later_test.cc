// Method: a channel whose actor is not there yet, against a real server that comes later, or never.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "actors/caller/channel.h"
#include "actors/caller/reactor.h"
#include "actors/server/call_server.h"
#include "tests/actors/calling.h"
#include "tests/actors/echo_executor.h"

namespace troupe::actors {
namespace {

using ::testing::HasSubstr;

std::string NewPath() {
  static std::atomic<int> count{0};
  return "/tmp/troupe-later-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

std::shared_ptr<Channel> Later(std::size_t outstanding_max = 1u << 30) {
  ChannelOptions options;
  options.description = "actor Echo(1)";
  options.outstanding_max = outstanding_max;
  return *Channel::Later(CallReactor::Current(), options);
}

Channel::Issued Issue(Channel& channel, std::string_view values, Answer** slot,
                      std::shared_ptr<ItemStream> items = nullptr) {
  ByteBuffer frame;
  frame.Extend(kFrameHeadBytes);
  frame.AppendValue(CallHead{});
  frame.AppendValue(std::uint16_t{1});
  frame.Append("f", 1);
  frame.Append(values.data(), values.size());
  Channel::Call call = channel.Issue(frame, kFlagNamed, std::move(items));
  *slot = call.answer.Take();
  return call.issued;
}

class LaterActor {
 public:
  explicit LaterActor(const std::string& path) : server_(*CallServer::Listen(path)) {
    thread_ = std::thread([this] { server_->Serve(executor_); });
  }
  ~LaterActor() {
    server_->Stop();
    thread_.join();
  }
  int calls() const { return executor_.calls; }

 private:
  EchoExecutor executor_;
  std::unique_ptr<CallServer> server_;
  std::thread thread_;
};

TEST(ChannelLater, CallsMadeBeforeItsActorRunInOrder) {
  const std::shared_ptr<Channel> channel = Later();
  std::vector<Answer*> slots;
  for (int i = 0; i < 300; ++i) {
    Answer* slot = nullptr;
    ASSERT_EQ(Issue(*channel, "value " + std::to_string(i) + ";", &slot), Channel::Issued::kOk);
    slots.push_back(slot);
  }
  EXPECT_FALSE(slots[0]->done());
  const std::string path = NewPath();
  LaterActor actor(path);
  ASSERT_TRUE(channel->Aim(path).ok());
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(Await(slots[static_cast<std::size_t>(i)], channel.get()), WaitResult::kDone);
    EXPECT_THAT(std::string(slots[static_cast<std::size_t>(i)]->bytes()),
                HasSubstr("value " + std::to_string(i) + ";"));
    slots[static_cast<std::size_t>(i)]->Release();
  }
  EXPECT_EQ(actor.calls(), 300);
  channel->Close();
}

TEST(ChannelLater, NothingThereIsAnErrorOfEveryCall) {
  const std::shared_ptr<Channel> channel = Later();
  Answer* slot = nullptr;
  auto items = std::make_shared<ItemStream>(2, [] { return std::uint64_t{1}; });
  ASSERT_EQ(Issue(*channel, "x", &slot, items), Channel::Issued::kOk);
  EXPECT_FALSE(channel->Aim(NewPath()).ok());
  const AnswerRef hold(slot), item(items->At(1));
  ASSERT_TRUE(slot->done());
  EXPECT_EQ(ReadRuntimeError(slot->bytes()).code, ErrorCode::kNotSent);
  ASSERT_TRUE(item.get()->done());
  EXPECT_EQ(ReadRuntimeError(item.get()->bytes()).code, ErrorCode::kNotSent);
}

TEST(ChannelLater, AVerdictOfAnyKindIsTheAnswer) {
  const std::shared_ptr<Channel> channel = Later();
  Answer* before = nullptr;
  Answer* after = nullptr;
  ASSERT_EQ(Issue(*channel, "x", &before), Channel::Issued::kOk);
  channel->FailWith(kFlagReply | kFlagTaskError, "what it raised");
  ASSERT_EQ(Issue(*channel, "x", &after), Channel::Issued::kOk);
  for (Answer* slot : {before, after}) {
    const AnswerRef hold(slot);
    ASSERT_TRUE(slot->done());
    EXPECT_EQ(slot->flags(), kFlagReply | kFlagTaskError);
    EXPECT_EQ(slot->bytes(), "what it raised");
  }
  EXPECT_EQ(channel->Outstanding(), 0u);
}

TEST(ChannelLater, RefusesMoreCallsThanMayBeOutstanding) {
  const std::shared_ptr<Channel> channel = Later(2);
  Answer* slots[3] = {nullptr, nullptr, nullptr};
  ASSERT_EQ(Issue(*channel, "a", &slots[0]), Channel::Issued::kOk);
  ASSERT_EQ(Issue(*channel, "b", &slots[1]), Channel::Issued::kOk);
  EXPECT_EQ(Issue(*channel, "c", &slots[2]), Channel::Issued::kTooMany);
  EXPECT_EQ(slots[2], nullptr);
  channel->Lose("its process is gone");
  for (Answer* slot : {slots[0], slots[1]}) {
    const AnswerRef hold(slot);
    EXPECT_EQ(ReadRuntimeError(slot->bytes()).code, ErrorCode::kNotSent);
  }
}

TEST(ChannelLater, IsIdleWhenItsLastCallHasAnAnswer) {
  const std::shared_ptr<Channel> channel = Later();
  EXPECT_EQ(channel->WhenIdle(), nullptr) << "it has no calls";
  Answer* slots[2] = {nullptr, nullptr};
  for (Answer*& slot : slots) ASSERT_EQ(Issue(*channel, "x", &slot), Channel::Issued::kOk);
  const AnswerRef waits = channel->WhenIdle();
  ASSERT_NE(waits, nullptr);
  const AnswerRef first(slots[0]), second(slots[1]);
  EXPECT_EQ(channel->WhenRoom(), nullptr) << "room is another matter";
  EXPECT_FALSE(waits->done());
  const std::string path = NewPath();
  LaterActor actor(path);
  ASSERT_TRUE(channel->Aim(path).ok());
  ASSERT_EQ(Await(waits.get(), channel.get()), WaitResult::kDone);
  EXPECT_TRUE(slots[0]->done() && slots[1]->done());
  EXPECT_EQ(channel->WhenIdle(), nullptr);
  channel->Close();
}

TEST(ChannelLater, IsIdleWhenItIsOver) {
  const std::shared_ptr<Channel> channel = Later();
  Answer* slot = nullptr;
  ASSERT_EQ(Issue(*channel, "x", &slot), Channel::Issued::kOk);
  const AnswerRef waits = channel->WhenIdle();
  ASSERT_NE(waits, nullptr);
  const AnswerRef call(slot);
  channel->Lose("its process is gone");
  EXPECT_TRUE(waits->done());
  EXPECT_EQ(channel->WhenIdle(), nullptr);
}

}  // namespace
}  // namespace troupe::actors
