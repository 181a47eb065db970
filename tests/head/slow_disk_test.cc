// Method: a head whose journal takes seconds for a commit; nodes and clients wait for words that it
// holds back (S5).
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

using std::chrono::seconds;

class SlowDisk : public HeadFixture {
 protected:
  const Node& NodeOf(const FakeNode& node) { return core_->state().nodes.at(node.id); }
  /// The head was killed; the node comes back as the process it was, without rank 0 of `launch`,
  /// which ended meanwhile.
  void ComeBackWithout(LaunchId launch) {
    Boot();
    auto_commit_ = false;
    wire::RegisterNode report;
    report.node = node_.id;
    report.name = "node-a";
    report.resources = Amounts(4);
    report.incarnation = node_.incarnation;
    report.holdings.emplace_back();
    report.holdings[0].group = LaunchOf(launch).group;
    report.holdings[0].attempt = 1;
    Put(0);  // the disk has something to do
    node_.session = Open(wire::Role::kWorker, node_.id);
    Say(node_.session, report, 1);
  }
  LaunchId Running() {
    node_ = Join(1, 4);
    const SessionId client = Open(wire::Role::kClient, Id128{9, 1}, true);
    const LaunchId launch = Submit(client, 1);
    Serve(node_);
    Serve(node_);
    EXPECT_EQ(LaunchOf(launch).phase, wire::LaunchState::kRunning);
    return launch;
  }
  void Put(int value) {
    if (writer_ == SessionId()) writer_ = Open(wire::Role::kClient, Id128{9, 2}, true);
    wire::KvPut put;
    put.key = "k";
    put.request = RequestId(21, static_cast<std::uint64_t>(value) + 1);
    put.overwrite = true;
    Say(writer_, put, static_cast<std::uint64_t>(value) + 1, "value");
  }

  FakeNode node_;
  SessionId writer_;
};

TEST_F(SlowDisk, P4_AnOutcomeThatANodeKeptCountsHoweverLateItIsToldThatItIsRegistered) {
  const LaunchId launch = Running();
  ComeBackWithout(launch);
  Advance(seconds(20));
  EXPECT_EQ(Count<wire::NodeRegistered>(node_.session), 0u);
  EXPECT_TRUE(LaunchOf(launch).open()) << LaunchOf(launch).marker->cause;
  Commit();
  EXPECT_EQ(Count<wire::NodeRegistered>(node_.session), 1u);
  Advance(seconds(4));  // the node's own disk is slow as well
  Finish(node_, launch, 0);
  Say(node_.session, wire::Heartbeat());
  Commit();
  EXPECT_EQ(LaunchOf(launch).marker->outcome, wire::Outcome::kSucceeded)
      << LaunchOf(launch).marker->cause;
}

TEST_F(SlowDisk, P4_WhatANodeSaysNothingOfBeforeItsFirstHeartbeatIsLost) {
  const LaunchId launch = Running();
  ComeBackWithout(launch);
  Commit();
  EXPECT_TRUE(LaunchOf(launch).open());
  Say(node_.session, wire::Heartbeat());
  ASSERT_FALSE(LaunchOf(launch).open());
  EXPECT_EQ(LaunchOf(launch).marker->outcome, wire::Outcome::kFailed);
  EXPECT_NE(LaunchOf(launch).marker->cause.find("its node came back and no longer runs it"),
            std::string::npos)
      << LaunchOf(launch).marker->cause;
}

TEST_F(SlowDisk, WhoWaitsForTheHeadIsNotSilent) {
  const LaunchId launch = Running();
  ComeBackWithout(launch);
  for (int i = 1; i < 10; ++i) {
    Advance(seconds(3));
    Put(i);
  }
  EXPECT_FALSE(NodeOf(node_).dead) << NodeOf(node_).why;
  Commit();
  Advance(seconds(4));
  EXPECT_FALSE(NodeOf(node_).dead) << "it has a whole lease from the moment it was answered";
  Advance(seconds(2));
  EXPECT_TRUE(NodeOf(node_).dead) << "now it is the node that says nothing";
}

TEST_F(SlowDisk, AQuickOneForgivesNobody) {
  node_ = Join(1, 4);
  for (int i = 0; i < 60; ++i) {
    auto_commit_ = false;
    Put(i);
    Advance(std::chrono::milliseconds(100));
    Commit();
    EXPECT_EQ(NodeOf(node_).dead, i >= 49) << "after " << i;
  }
}

}  // namespace
}  // namespace troupe::head
