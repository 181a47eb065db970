// Method: real servers behind the lanes of a pool, which answer a task with its values, raise, or
// keep silent, as the test says; values are plain bytes. What ends a lane is its channel's verdict.
#include "actors/tasks/task_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/caller/reactor.h"
#include "runtime/base/mutex.h"
#include "tests/actors/calling.h"

namespace troupe::actors {
namespace {

using ::testing::HasSubstr;

class PlainBytes : public ArgumentCodec {
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

/// A process that runs tasks: answers definitions, and tasks as it is told to.
class Process : public CallExecutor {
 public:
  enum class Does { kEchoes, kRaises, kKeepsSilent };

  explicit Process(Does does = Does::kEchoes)
      : does(does),
        path_("/tmp/troupe-tasks-" + std::to_string(::getpid()) + "-" + std::to_string(++made_)),
        server_(*CallServer::Listen(path_)),
        thread_([this] { server_->Serve(*this); }) {}
  ~Process() override {
    server_->Stop();
    thread_.join();
  }
  std::unique_ptr<CallRunner> Open() override { return std::make_unique<Runner>(*this); }
  void Suspend() override {}
  void Resume() override {}
  bool Interrupted() override { return false; }
  bool HandlesSignals() const override { return false; }
  std::shared_ptr<Channel> Connect(const std::shared_ptr<TaskPool>& pool) {
    ChannelOptions options;
    options.observer = pool;
    return *Channel::Connect(CallReactor::Current(), path_, options);
  }
  /// Until so many tasks have come to it.
  void AwaitTasks(int count) {
    MutexLock lock(mutex_);
    while (tasks_ < count) changed_.Wait(mutex_);
  }
  int definitions() {
    MutexLock lock(mutex_);
    return definitions_;
  }

  std::atomic<Does> does;

 private:
  class Runner : public CallRunner {
   public:
    explicit Runner(Process& process) : process_(process) {}
    StatusOr<Ran> Run(const Frame& frame, CallerConnection& peer, ByteBuffer& reply,
                      std::uint16_t* flags) override {
      CallPrefix call;
      TROUPE_TRY(ParseCall(frame, CallLimits(), &call));
      if (process_.Note(call.method)) return Ran::kReplied;
      if (process_.does == Does::kKeepsSilent) {
        peer.Defer();
        return Ran::kDeferred;
      }
      if (process_.does == Does::kRaises) *flags |= kFlagTaskError;
      reply.Append(call.values.data(), call.values.size());
      return Ran::kReplied;
    }

   private:
    Process& process_;
  };

  /// Returns true if the call is a definition.
  bool Note(std::string_view method) {
    const MutexLock lock(mutex_);
    const bool defines = method == TaskLane::kDefine;
    (defines ? definitions_ : tasks_) += 1;
    changed_.NotifyAll();
    return defines;
  }

  static inline int made_ = 0;
  Mutex mutex_;
  CondVar changed_;
  int tasks_ ABSL_GUARDED_BY(mutex_) = 0;
  int definitions_ ABSL_GUARDED_BY(mutex_) = 0;
  const std::string path_;
  std::unique_ptr<CallServer> server_;
  std::thread thread_;
};

class TaskPoolTest : public ::testing::Test {
 protected:
  TaskPoolTest() {
    function_->definition = "definition";
    function_->name = std::make_shared<const std::string>("double");
    ByteBuffer names;
    names.AppendValue(std::uint16_t{6});
    names.Append("double", 6);
    shape_.names.assign(names.view());
  }
  ~TaskPoolTest() override {
    for (const LaneId lane : lanes_) pool_->Close(lane);
    for (const std::shared_ptr<Channel>& channel : channels_) channel->Close();
  }
  LaneId Open(Process& process) {
    channels_.push_back(process.Connect(pool_));
    lanes_.push_back(pool_->Open(channels_.back()));
    return lanes_.back();
  }
  TaskPool::Begun Begin(std::string values, PendingArguments to_come = PendingArguments()) {
    TaskPool::Call call;
    call.function = function_;
    call.shape = &shape_;
    call.argument_count = 1;
    call.values = std::move(values);
    call.to_come = std::move(to_come);
    return pool_->Begin(std::move(call));
  }
  AnswerRef Argument() { return AnswerRef(Answer::New(CallReactor::Current().NextLocalId())); }
  PendingArguments At(std::size_t at, const AnswerRef& argument) {
    std::vector<ArgumentToCome> to_come;
    to_come.push_back({at, AnswerRef::Another(argument.get())});
    return PendingArguments(std::move(to_come));
  }
  void Give(const AnswerRef& argument, std::string_view bytes, std::uint16_t flags = kFlagReply) {
    CallReactor::Current().Complete(argument.get(), flags, bytes);
  }
  std::string Text(const AnswerRef& answer) {
    EXPECT_EQ(Await(answer.get(), nullptr), WaitResult::kDone);
    std::string text(answer->bytes());
    while (!text.empty() && text.back() == '\0') text.pop_back();  // the frame's padding
    return text;
  }
  void Woken() {
    const MutexLock lock(mutex_);
    ++woken_;
    changed_.NotifyAll();
  }
  void AwaitWake() {
    MutexLock lock(mutex_);
    while (woken_ == 0) changed_.Wait(mutex_);
    woken_ = 0;
  }

  Mutex mutex_;
  CondVar changed_;
  int woken_ ABSL_GUARDED_BY(mutex_) = 0;
  const PlainBytes values_;
  const std::shared_ptr<TaskFunction> function_ = std::make_shared<TaskFunction>();
  TaskShape shape_;
  std::vector<std::shared_ptr<Channel>> channels_;
  std::vector<LaneId> lanes_;
  const std::shared_ptr<TaskPool> pool_ = std::make_shared<TaskPool>([this] { Woken(); }, values_);
};

TEST_F(TaskPoolTest, WhatWaitsGoesWhenAProcessIsThereAndTheFunctionIsDefinedOnce) {
  std::vector<AnswerRef> answers;
  for (const char* values : {"one", "two", "three"}) {
    TaskPool::Begun begun = Begin(values);
    EXPECT_EQ(begun.lane, 0u);
    answers.push_back(std::move(begun.slot));
  }
  AwaitWake();  // the first that waited
  EXPECT_EQ(pool_->waiting(), 3u);
  EXPECT_FALSE(pool_->WhenRoom()) << "there is room";
  Process process;
  const LaneId lane = Open(process);
  EXPECT_EQ(Text(answers[0]), "one");
  EXPECT_EQ(Text(answers[1]), "two");
  EXPECT_EQ(Text(answers[2]), "three");
  const TaskPool::Begun four = Begin("four");
  EXPECT_EQ(four.lane, lane);
  EXPECT_EQ(Text(four.slot), "four");
  EXPECT_EQ(process.definitions(), 1);
}

TEST_F(TaskPoolTest, ATaskBeginsWithItsLastArgument) {
  Process process;
  Open(process);
  const AnswerRef argument = Argument();
  TaskPool::Begun begun = Begin("<>", At(1, argument));
  EXPECT_EQ(pool_->held_back(), 1u);
  ASSERT_EQ(pool_->List(10).size(), 1u);
  EXPECT_EQ(pool_->List(10)[0].stage, TaskPool::Stage::kArguments);
  Give(argument, "late");
  EXPECT_EQ(Text(begun.slot), "<late>");
  EXPECT_EQ(pool_->held_back(), 0u);
}

TEST_F(TaskPoolTest, AnArgumentThatFailedOrHoldsNoValueIsTheAnswer) {
  Process process;
  Open(process);
  const AnswerRef bad = Argument();
  const TaskPool::Begun failed = Begin("<>", At(1, bad));
  Give(bad, "what it raised", kFlagReply | kFlagTaskError);
  EXPECT_EQ(Text(failed.slot), "what it raised");
  EXPECT_EQ(failed.slot->flags(), kFlagReply | kFlagTaskError | kFlagOfArgument);
  const AnswerRef empty = Argument();
  const TaskPool::Begun none = Begin("<>", At(1, empty));
  Give(empty, "");
  EXPECT_THAT(Text(none.slot), HasSubstr("has an answer that is no value"));
  EXPECT_EQ(process.definitions(), 0) << "nothing was sent";
}

TEST_F(TaskPoolTest, WhatWaitsIsDroppedWhenItIsCancelledWhateverItWaitsFor) {
  const AnswerRef argument = Argument();
  const TaskPool::Begun waits = Begin("waits");
  const TaskPool::Begun held = Begin("<>", At(1, argument));
  for (const TaskPool::Begun* begun : {&waits, &held}) {
    LaneId lane = 7;
    EXPECT_EQ(TaskPool::Cancel(begun->slot.get(), false, false, &lane),
              TaskPool::Cancelled::kDropped);
    EXPECT_EQ(lane, 0u);
    EXPECT_THAT(Text(begun->slot), HasSubstr("cancelled before it began"));
    EXPECT_EQ(TaskPool::Cancel(begun->slot.get(), false, false, &lane), TaskPool::Cancelled::kOver);
  }
  Give(argument, "too late");
  EXPECT_TRUE(pool_->List(10).empty());
  EXPECT_EQ(pool_->waiting() + pool_->held_back(), 0u);
}

TEST_F(TaskPoolTest, WhatALostProcessHadGoesAgainToAnotherAsOftenAsItMay) {
  function_->retries = 1;
  Process silent(Process::Does::kKeepsSilent);
  const LaneId lost = Open(silent);
  const TaskPool::Begun begun = Begin("again");
  EXPECT_EQ(begun.lane, lost);
  channels_[0]->Flush();
  silent.AwaitTasks(1);
  channels_[0]->Fail(ErrorCode::kActorDied, "it died");
  AwaitWake();
  Process process;
  Open(process);
  EXPECT_EQ(Text(begun.slot), "again");
  const LaneId last = lanes_.back();
  process.does = Process::Does::kKeepsSilent;
  function_->retries = 0;
  const TaskPool::Begun once = Begin("once");
  EXPECT_EQ(once.lane, last);
  channels_[1]->Flush();
  process.AwaitTasks(2);
  EXPECT_FALSE(pool_->Close(last)) << "a task is with it";
  channels_[1]->Fail(ErrorCode::kActorDied, "it died too");
  EXPECT_THAT(Text(once.slot), HasSubstr("it died too"));
  EXPECT_TRUE(pool_->Close(last));
}

TEST_F(TaskPoolTest, WhoJudgesSaysWhetherWhatRaisedGoesAgain) {
  function_->retries = 1;
  function_->retried = TaskFunction::Retried::kSome;
  function_->number = 42;
  Process process(Process::Does::kRaises);
  Open(process);
  for (const bool again : {true, false}) {
    process.does = Process::Does::kRaises;
    const TaskPool::Begun begun = Begin("raises");
    std::thread waiter([&] { EXPECT_EQ(Text(begun.slot), "raises"); });
    AwaitWake();
    std::vector<TaskPool::Doubtful> doubtful = pool_->TakeDoubtful();
    EXPECT_EQ(doubtful.size(), 1u);
    EXPECT_EQ(doubtful[0].function, 42u);
    EXPECT_EQ(doubtful[0].slot.get(), begun.slot.get());
    EXPECT_FALSE(begun.slot->done());
    process.does = Process::Does::kEchoes;
    pool_->Judge(begun.slot.get(), again);
    waiter.join();
    EXPECT_EQ(begun.slot->failed(), !again);
  }
}

TEST_F(TaskPoolTest, AProcessRunsAFunctionAsOftenAsItMayAndIsThenToBeClosed) {
  function_->calls_max = 2;
  Process process;
  const LaneId lane = Open(process);
  const TaskPool::Begun first = Begin("1");
  const TaskPool::Begun second = Begin("2");
  const TaskPool::Begun third = Begin("3");
  AwaitWake();
  EXPECT_EQ(Text(first.slot), "1");
  EXPECT_EQ(Text(second.slot), "2");
  EXPECT_EQ(pool_->waiting(), 1u);
  EXPECT_TRUE(pool_->Close(lane));
  Process other;
  Open(other);
  EXPECT_EQ(Text(third.slot), "3");
}

TEST_F(TaskPoolTest, WhatATaskStartedIsKnownByItUntilItIsOver) {
  TaskPool::Call call;
  call.function = function_;
  call.shape = &shape_;
  call.argument_count = 1;
  call.values = "child";
  call.parent = 99;
  const TaskPool::Begun child = pool_->Begin(std::move(call));
  const std::vector<AnswerRef> children = TaskPool::Children(99);
  ASSERT_EQ(children.size(), 1u);
  EXPECT_EQ(children[0].get(), child.slot.get());
  pool_->FailWaiting(kFlagReply | kFlagTaskError, "no more");
  EXPECT_EQ(Text(child.slot), "no more");
  EXPECT_TRUE(TaskPool::Children(99).empty());
  const std::vector<TaskHistory::Ended> ended = TaskPool::LatestEnded(1);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].id, child.slot->id());
  EXPECT_TRUE(ended[0].failed);
}

TEST_F(TaskPoolTest, AProcessCanBeAskedBehindItsTasksUntilItIsClosed) {
  Process process;
  const LaneId lane = Open(process);
  const AnswerRef asked = pool_->Ask(lane, "how much");
  ASSERT_TRUE(asked);
  EXPECT_EQ(Text(asked), "");
  EXPECT_TRUE(pool_->Close(lane));
  EXPECT_FALSE(pool_->Ask(lane, "how much"));
}

}  // namespace
}  // namespace troupe::actors
