// Method: programs and an actor that have tasks; another program lists them, and they answer, are
// gone, or come back.
#include "head/core/nodes/task_lists.h"

#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

const ActorId kActor(12, 1);

class TaskLists : public HeadFixture {
 protected:
  void SetUp() override {
    node_ = Join(1, 4);
    asker_ = Open(wire::Role::kClient, Id128{9, 1});
    owner_ = Open(wire::Role::kClient, Id128{9, 2});
    wire::CreateActor create;
    create.spec.actor = kActor;
    create.spec.class_name = "Counter";
    Say(owner_, create, 60);
    StartActors(node_);
    relay_.process = ProcessId(kActor.hi, kActor.lo);
    relay_.actor = kActor;
  }
  void HaveTasks() {
    Say(owner_, wire::TasksTold{}, 61);
    SayFor(node_.session, relay_, wire::TasksTold{}, 62);
  }
  std::uint32_t Ask(std::uint64_t number, SessionId by) {
    wire::ListTasks list;
    list.ask = RequestId(30, number);
    list.limit = 1u << 30;
    Say(by, list, 70 + number);
    return Last<wire::TellTasks>(by).owners;
  }
  std::uint32_t Ask(std::uint64_t number) { return Ask(number, asker_); }
  void Answer(std::uint64_t number, const std::string& with) {
    wire::TasksTold told;
    told.ask = RequestId(30, number);
    Say(owner_, told, 80 + number, with);
  }
  void Close(SessionId session) {
    SessionClosed closed;
    closed.session = session;
    Feed(closed);
  }
  /// Attachments of the answers that the asker was given.
  std::vector<std::string> Given() {
    std::vector<std::string> given;
    for (const Send& send : sent_) {
      if (send.to.session == asker_ && wire::Holds<wire::TasksTold>(send.message.body))
        given.push_back(send.message.attachment);
    }
    sent_.clear();
    return given;
  }
  using Texts = std::vector<std::string>;

  FakeNode node_;
  SessionId asker_, owner_;
  wire::Relay relay_;
};

TEST_F(TaskLists, NobodyIsAskedWhoHasSaidNothing) {
  EXPECT_EQ(Ask(1), 0u);
  EXPECT_TRUE(core_->state().task_listings.empty());
}

TEST_F(TaskLists, WhoHasTasksIsAskedAndItsAnswerPassedOnOnce) {
  HaveTasks();
  EXPECT_EQ(Ask(1), 2u);
  const wire::TellTasks asked = Last<wire::TellTasks>(owner_);
  EXPECT_EQ(asked.ask, RequestId(30, 1));
  EXPECT_EQ(asked.limit, kTasksListedMax);
  Answer(1, "tasks");
  Answer(1, "again");
  EXPECT_EQ(Given(), Texts{"tasks"});
  wire::TasksTold told;
  told.ask = RequestId(30, 1);
  SayFor(node_.session, relay_, told, 90);
  EXPECT_EQ(Given(), Texts{""});
  EXPECT_TRUE(core_->state().task_listings.empty());
}

TEST_F(TaskLists, TheAskerIsNotAskedForItsOwn) {
  HaveTasks();
  EXPECT_EQ(Ask(1, owner_), 1u);
}

TEST_F(TaskLists, WhoIsGoneIsNotWaitedFor) {
  HaveTasks();
  EXPECT_EQ(Ask(1), 2u);
  wire::ProcessGone gone;
  gone.process = relay_.process;
  Say(node_.session, gone);
  EXPECT_EQ(Given(), Texts{""});
  Close(owner_);
  EXPECT_EQ(Given(), Texts{""});
  EXPECT_TRUE(core_->state().task_listings.empty());
  EXPECT_EQ(Ask(2), 0u);
}

TEST_F(TaskLists, WhatNobodyAnswersIsNotKeptForEver) {
  HaveTasks();
  for (std::uint64_t number = 1; number < 200; ++number) Ask(number);
  EXPECT_EQ(core_->state().task_listings.size(), kTaskListingsMax);
  Close(asker_);
  EXPECT_TRUE(core_->state().task_listings.empty());
}

TEST_F(TaskLists, AWorkerThatComesBackHasTheSameProcesses) {
  HaveTasks();
  Close(node_.session);
  wire::RegisterNode report;
  report.incarnation = node_.incarnation;
  report.actors.push_back({kActor, 1});
  node_ = Join(1, 4, 0, report);
  EXPECT_EQ(Ask(1), 2u);
}

TEST_F(TaskLists, WhoAsksForAProcessForTasksHasSome) {
  wire::CreateActor create;
  create.spec.actor = ActorId(12, 2);
  create.spec.class_name = "troupe.task";
  create.spec.leased = true;
  Say(owner_, create, 63);
  EXPECT_EQ(Ask(1), 1u);
}

}  // namespace
}  // namespace troupe::head
