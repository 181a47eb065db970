// Method: a CallServer whose calls are answered by another thread, which needs a lock that the
// serving thread holds except between Suspend and Resume, as Python threads do with the GIL.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "actors/net/cpu_budget.h"
#include "actors/server/call_server.h"
#include "tests/actors/calling.h"

namespace troupe::actors {
namespace {

using ::testing::HasSubstr;

class ElsewhereExecutor : public CallExecutor {
 public:
  ElsewhereExecutor() : thread_([this] { Work(); }) {}
  ~ElsewhereExecutor() override {
    {
      const std::lock_guard lock(gil_);
      over_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  std::unique_ptr<CallRunner> Open() override { return std::make_unique<Session>(*this); }
  bool RunsElsewhere() const override { return !begun_.empty(); }
  void Suspend() override {
    wake_.notify_one();
    gil_.unlock();
  }
  void Resume() override { gil_.lock(); }
  bool Interrupted() override { return false; }
  bool HandlesSignals() const override { return false; }

  std::mutex gil_;  // locked by the serving thread
  int answered = 0;

 private:
  struct Begun {
    std::shared_ptr<CallerConnection> peer;
    std::uint64_t sequence;
    std::string values;
  };
  class Session : public CallRunner {
   public:
    explicit Session(ElsewhereExecutor& executor) : executor_(executor) {}
    StatusOr<Ran> Run(const Frame& frame, CallerConnection& peer, ByteBuffer&,
                      std::uint16_t*) override {
      CallPrefix call;
      TROUPE_TRY(ParseCall(frame, CallLimits(), &call));
      peer.Defer();
      executor_.begun_.push_back(
          {peer.shared_from_this(), frame.head.sequence, std::string(call.values)});
      return Ran::kDeferred;
    }

   private:
    ElsewhereExecutor& executor_;
  };

  void Work() {
    std::unique_lock lock(gil_);
    while (true) {
      wake_.wait(lock, [this] { return over_ || !begun_.empty(); });
      if (over_) return;
      const Begun& call = begun_.front();
      ByteBuffer reply;
      reply.Extend(kFrameHeadBytes);
      reply.Append(call.values.data(), call.values.size());
      call.peer->ReplyDeferred(call.sequence, kFlagReply, reply, /*flush=*/true);
      begun_.pop_front();
      ++answered;
    }
  }

  std::condition_variable wake_;
  std::deque<Begun> begun_;
  bool over_ = false;
  std::thread thread_;
};

class CallElsewhere : public ::testing::TestWithParam<SpinOverride> {};

TEST_P(CallElsewhere, WhatAnotherThreadAnswersGetsTheLock) {
  const std::string path = "/tmp/troupe-test-" + std::to_string(::getpid()) + "-elsewhere";
  OverrideSpinning(GetParam());
  StatusOr<std::unique_ptr<CallServer>> server = CallServer::Listen(path);
  OverrideSpinning(SpinOverride::kAuto);
  ASSERT_TRUE(server.ok()) << MessageOf(server.status());
  ElsewhereExecutor executor;
  std::thread serving([&] {
    const std::lock_guard lock(executor.gil_);
    (*server)->Serve(executor);
  });
  ChannelOptions options;
  options.description = "actor Echo(1)";
  StatusOr<std::shared_ptr<Channel>> channel =
      Channel::Connect(CallReactor::Current(), path, options);
  ASSERT_TRUE(channel.ok()) << MessageOf(channel.status());
  constexpr int kCalls = 5'000;
  for (int i = 0; i < kCalls; ++i) {
    const std::string value = "value " + std::to_string(i);
    Answer* slot = Call(**channel, "f", value);
    ASSERT_EQ(Await(slot, channel->get()), WaitResult::kDone);
    EXPECT_THAT(std::string(slot->bytes()), HasSubstr(value));
    slot->Release();
  }
  (*server)->Stop();
  serving.join();
  (*channel)->Close();
  EXPECT_EQ(executor.answered, kCalls);
}

INSTANTIATE_TEST_SUITE_P(Polling, CallElsewhere,
                         ::testing::Values(SpinOverride::kOn, SpinOverride::kOff));

}  // namespace
}  // namespace troupe::actors
