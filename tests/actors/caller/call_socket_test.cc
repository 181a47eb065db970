// Method: Channel, CallReactor and CallServer over real Unix sockets in one process, without
// Python, so that the sanitizers see every thread.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "actors/caller/channel.h"
#include "actors/caller/reactor.h"
#include "actors/net/cpu_budget.h"
#include "actors/net/now.h"
#include "actors/server/call_server.h"
#include "tests/actors/calling.h"
#include "tests/actors/echo_executor.h"

namespace troupe::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EchoActor {
 public:
  EchoActor() {
    static std::atomic<int> count{0};
    path_ = "/tmp/troupe-test-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
    StatusOr<std::unique_ptr<CallServer>> server = CallServer::Listen(path_);
    EXPECT_TRUE(server.ok()) << MessageOf(server.status());
    server_ = *std::move(server);
    thread_ = std::thread([this] { server_->Serve(executor_); });
  }
  ~EchoActor() { Stop(); }
  void Stop() {
    if (!thread_.joinable()) return;
    server_->Stop();
    thread_.join();
  }
  std::shared_ptr<Channel> Connect(Duration grace = std::chrono::seconds(5)) {
    ChannelOptions options;
    options.description = "actor Echo(1)";
    options.grace = grace;
    StatusOr<std::shared_ptr<Channel>> channel =
        Channel::Connect(CallReactor::Current(), path_, options);
    EXPECT_TRUE(channel.ok()) << MessageOf(channel.status());
    return *std::move(channel);
  }
  const std::string& path() const { return path_; }
  int calls() const { return executor_.calls; }
  /// Once it has stopped.
  const std::vector<std::uint64_t>& cancelled() const { return executor_.cancelled; }

 private:
  std::string path_;
  EchoExecutor executor_;
  std::unique_ptr<CallServer> server_;
  std::thread thread_;
};

/// Ends the connection under the channel, which has one.
void Break(Channel& channel, int how) {
  const int fd = channel.fd();
  // under its lock: who takes the connection away next comes after this look at it
  channel.Flush();
  ::shutdown(fd, how);
}

std::string AnswerText(Answer* slot) {
  std::string text(slot->bytes());
  slot->Release();
  return text;
}

RuntimeErrorView ErrorOf(Answer* slot) {
  EXPECT_NE(slot->flags() & kFlagRuntimeError, 0);
  return ReadRuntimeError(slot->bytes());
}

TEST(CallSocket, AnswersOneCall) {
  EchoActor actor;
  const auto channel = actor.Connect();
  Answer* slot = Call(*channel, "f", "hello");
  ASSERT_EQ(Await(slot, channel.get()), WaitResult::kDone);
  EXPECT_THAT(AnswerText(slot), HasSubstr("hello"));
  channel->Close();
}

TEST(CallSocket, WhatACallStartedIsCancelledFromTheNewestOn) {
  EchoActor actor;
  const auto channel = actor.Connect();
  std::vector<Answer*> made;
  for (const std::uint64_t started_by : {7, 8, 7, 7}) {
    made.push_back(Call(*channel, "mute", ""));
    made.back()->set_started_by(started_by);
  }
  CallReactor::Current().CancelStartedBy(7);
  Answer* last = Call(*channel, "f", "");
  ASSERT_EQ(Await(last, channel.get()), WaitResult::kDone);
  last->Release();
  channel->Close();
  actor.Stop();
  EXPECT_THAT(actor.cancelled(), ElementsAre(4, 3, 1));
  for (Answer* slot : made) slot->Release();
}

TEST(CallSocket, ALoopThatPollsFindsCallsAndTheEndOfServing) {
  EchoExecutor executor;
  const std::string path = "/tmp/troupe-test-" + std::to_string(::getpid()) + "-polls";
  OverrideSpinning(SpinOverride::kOn);
  StatusOr<std::unique_ptr<CallServer>> server = CallServer::Listen(path);
  OverrideSpinning(SpinOverride::kAuto);
  ASSERT_TRUE(server.ok()) << MessageOf(server.status());
  std::thread caller([&] {
    ChannelOptions options;
    options.description = "actor Echo(1)";
    StatusOr<std::shared_ptr<Channel>> channel =
        Channel::Connect(CallReactor::Current(), path, options);
    ASSERT_TRUE(channel.ok()) << MessageOf(channel.status());
    for (int i = 0; i < 20'000; ++i) {
      Answer* slot = Call(**channel, "f", "hello");
      ASSERT_EQ(Await(slot, channel->get()), WaitResult::kDone);
      slot->Release();
    }
    (*server)->Stop();
  });
  int polled = 0;
  while (!(*server)->Turn(executor)) {
    while ((*server)->Poll()) ++polled;
  }
  caller.join();
  EXPECT_EQ(executor.calls, 20'000);
  EXPECT_GT(polled, 0) << "calls were found by polling";
  EXPECT_TRUE((*server)->IsOver());
  EXPECT_FALSE((*server)->Poll());
}

TEST(CallSocket, ManyThreadsOneChannel) {
  EchoActor actor;
  const auto channel = actor.Connect();
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 400; ++i) {
        const std::string text = std::to_string(t) + "/" + std::to_string(i) + ";";
        Answer* one = Call(*channel, "f", text);
        Answer* two = Call(*channel, "f", text + text);
        if (Await(two, channel.get()) != WaitResult::kDone) continue;
        if (Await(one, channel.get()) != WaitResult::kDone) continue;
        if (AnswerText(one).find(text) == 0 && AnswerText(two).find(text + text) == 0) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 6 * 400);
  EXPECT_EQ(channel->Outstanding(), 0u);
  channel->Close();
}

TEST(CallSocket, ThreadsOnDifferentChannelsLeadForEachOther) {
  EchoActor a;
  EchoActor b;
  EchoActor c;
  std::vector<std::shared_ptr<Channel>> channels = {a.Connect(), b.Connect(), c.Connect()};
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      Channel& mine = *channels[static_cast<std::size_t>(t) % 3];
      std::vector<Answer*> slots;
      for (int i = 0; i < 2000; ++i) slots.push_back(Call(mine, "f", std::string(500, 'p')));
      for (Answer* slot : slots) {
        if (Await(slot, &mine) == WaitResult::kDone && AnswerText(slot).size() >= 500) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 6 * 2000);
  for (const auto& channel : channels) channel->Close();
}

TEST(CallSocket, TimeoutAndPoll) {
  EchoActor actor;
  const auto channel = actor.Connect();
  Answer* slot = Call(*channel, "mute", "");
  EXPECT_EQ(Await(slot, channel.get(), Duration::zero()), WaitResult::kTimeout);
  EXPECT_EQ(Await(slot, channel.get(), std::chrono::milliseconds(30)), WaitResult::kTimeout);
  channel->Close();
  EXPECT_EQ(ErrorOf(slot).code, ErrorCode::kMaybeExecuted);
  slot->Release();
}

TEST(CallSocket, VerdictEndsEveryWait) {
  EchoActor actor;
  const auto channel = actor.Connect(std::chrono::seconds(60));
  std::vector<std::thread> threads;
  std::atomic<int> died{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      Answer* slot = Call(*channel, "mute", "");
      if (Await(slot, channel.get()) != WaitResult::kDone) return;
      if (ErrorOf(slot).code == ErrorCode::kActorDied) ++died;
      slot->Release();
    });
  }
  while (actor.calls() < 4) std::this_thread::yield();
  channel->Fail(ErrorCode::kActorDied, "test");
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(died, 4);
  Answer* later = Call(*channel, "f", "");
  EXPECT_TRUE(later->done());
  EXPECT_EQ(ErrorOf(later).code, ErrorCode::kActorDied);
  later->Release();
  channel->Close();
}

TEST(CallSocket, GraceEndsWhatNoVerdictDoes) {
  EchoActor actor;
  const auto channel = actor.Connect(std::chrono::milliseconds(50));
  Answer* sent = Call(*channel, "mute", "");
  while (actor.calls() < 1) std::this_thread::yield();
  actor.Stop();
  ASSERT_EQ(Await(sent, channel.get()), WaitResult::kDone);
  EXPECT_EQ(ErrorOf(sent).code, ErrorCode::kMaybeExecuted);
  EXPECT_THAT(std::string(ErrorOf(sent).text), HasSubstr("within 0.05 s"));
  sent->Release();
  channel->Close();
}

class Signal : public Completion {
 public:
  Signal(std::mutex& mutex, std::condition_variable& changed, int& count)
      : mutex_(mutex), changed_(changed), count_(count) {}
  void Run() override {
    std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }

 private:
  std::mutex& mutex_;
  std::condition_variable& changed_;
  int& count_;
};

TEST(CallSocket, CompletionsRunThoughNobodyWaits) {
  EchoActor actor;
  const auto channel = actor.Connect(std::chrono::milliseconds(50));
  std::mutex mutex;
  std::condition_variable changed;
  int count = 0;
  std::vector<Answer*> slots;
  for (int i = 0; i < 300; ++i) {
    slots.push_back(Call(*channel, "f", "x"));
    ASSERT_TRUE(CallReactor::Current().OnDone(slots.back(),
                                              std::make_unique<Signal>(mutex, changed, count)));
  }
  channel->OnDisconnect(std::make_unique<Signal>(mutex, changed, count));
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return count == 300; }));
  }
  actor.Stop();
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return count == 301; }));
  }
  for (Answer* slot : slots) slot->Release();
  channel->Close();
}

TEST(CallSocket, LocalSlotWakesALeaderAndAFollower) {
  for (int round = 0; round < 300; ++round) {  // each meets the waiters at another point
    std::vector<Answer*> slots = {Answer::New(1), Answer::New(2)};
    std::vector<std::thread> threads;
    std::atomic<int> done{0};
    for (Answer* slot : slots) {
      threads.emplace_back([&, slot] {
        if (Await(slot, nullptr) == WaitResult::kDone) ++done;
      });
    }
    for (int i = 0; i < round % 10; ++i) std::this_thread::yield();
    for (Answer* slot : slots) {
      EXPECT_TRUE(CallReactor::Current().Complete(slot, kFlagReply, "v"));
      EXPECT_FALSE(CallReactor::Current().Complete(slot, kFlagReply, "w"));
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(done, 2);
    for (Answer* slot : slots) EXPECT_EQ(AnswerText(slot), "v");
  }
}

TEST(CallSocket, FC1_FC3_BoundedWhenTheActorIsSlowerThanItsCaller) {
  EchoActor actor;
  const auto channel = actor.Connect();
  std::vector<Answer*> slots;
  const std::string block(1u << 20, 'b');
  for (int i = 0; i < 64; ++i) slots.push_back(Call(*channel, "f", block));
  for (Answer* slot : slots) {
    ASSERT_EQ(Await(slot, channel.get()), WaitResult::kDone);
    ASSERT_GE(slot->bytes().size(), block.size());
    slot->Release();
  }
  channel->Close();
}

TEST(CallSocket, JunkEndsOnlyItsOwnConnection) {
  EchoActor actor;
  const auto channel = actor.Connect();
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, actor.path().data(), actor.path().size());
  ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::write(fd, "this is not a frame at all", 26), 26);
  std::string answer;
  char bytes[256];
  for (ssize_t n = 0; (n = ::read(fd, bytes, sizeof bytes)) > 0;) {
    answer.append(bytes, static_cast<std::size_t>(n));
  }
  ::close(fd);
  EXPECT_THAT(answer, HasSubstr("starts with"));
  Answer* slot = Call(*channel, "f", "still here");
  ASSERT_EQ(Await(slot, channel.get()), WaitResult::kDone);
  EXPECT_THAT(AnswerText(slot), HasSubstr("still here"));
  channel->Close();
}

TEST(CallSocket, AConnectionThatEndsThoughBothLiveIsResumed) {
  EchoActor actor;
  const auto channel = actor.Connect();
  Answer* first = Call(*channel, "f", "first");
  ASSERT_EQ(Await(first, channel.get()), WaitResult::kDone);
  EXPECT_THAT(AnswerText(first), HasSubstr("first"));
  Answer* mute = Call(*channel, "mute", "");
  while (actor.calls() < 2) std::this_thread::yield();
  for (int i = 3; i < 10; ++i) {
    Break(*channel, i % 2 == 0 ? SHUT_RDWR : SHUT_WR);
    Answer* next = Call(*channel, "f", "next");
    ASSERT_EQ(Await(next, channel.get()), WaitResult::kDone);
    EXPECT_EQ(next->flags() & kFlagRuntimeError, 0) << ReadRuntimeError(next->bytes()).text;
    EXPECT_THAT(AnswerText(next), HasSubstr("next"));
    EXPECT_EQ(actor.calls(), i);
  }
  EXPECT_FALSE(mute->done());
  channel->Close();
  EXPECT_EQ(ErrorOf(mute).code, ErrorCode::kMaybeExecuted);
  mute->Release();
}

TEST(CallSocket, ACallUnderWayWhenTheConnectionEndsIsAnswered) {
  EchoActor actor;
  const auto channel = actor.Connect();
  Answer* first = Call(*channel, "f", "first");
  ASSERT_EQ(Await(first, channel.get()), WaitResult::kDone);
  first->Release();
  Answer* slow = Call(*channel, "slow", "");
  Answer* after = Call(*channel, "f", "after");
  channel->Flush();
  while (actor.calls() < 2) std::this_thread::yield();
  Break(*channel, SHUT_RDWR);
  ASSERT_EQ(Await(after, channel.get()), WaitResult::kDone);
  EXPECT_THAT(AnswerText(after), HasSubstr("after"));
  EXPECT_TRUE(slow->done());
  EXPECT_EQ(slow->flags() & kFlagRuntimeError, 0);
  EXPECT_EQ(actor.calls(), 3);
  slow->Release();
  channel->Close();
}

TEST(CallSocket, AHeldReplyIsFlushedUnderALongCall) {
  EchoActor actor;
  const auto channel = actor.Connect();
  std::vector<Answer*> slots;
  for (int i = 0; i < 8; ++i) slots.push_back(Call(*channel, "f", "quick"));
  Answer* slow = Call(*channel, "slow", "");
  for (Answer* slot : slots) ASSERT_EQ(Await(slot, channel.get()), WaitResult::kDone);
  EXPECT_FALSE(slow->done()) << "the replies waited for the long call";
  ASSERT_EQ(Await(slow, channel.get()), WaitResult::kDone);
  for (Answer* slot : slots) slot->Release();
  slow->Release();
  channel->Close();
}

}  // namespace
}  // namespace troupe::actors
