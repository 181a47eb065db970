// Method: nodes that fall silent beside others that are heard, on a clock moved by hand; the others
// answer, or do not, when the head asks whether the silent one answers them (decision 19).
#include "head/core/nodes/roster.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Peers : public HeadFixture {
 protected:
  const Node& NodeOf(const FakeNode& node) const { return core_->state().nodes.at(node.id); }

  /// Time passes; the nodes of `alive` are heard, and say of every node they are asked for what
  /// `reached` says.
  void Pass(Duration by, const std::vector<FakeNode>& alive, bool reached) {
    for (Duration passed{}; passed < by; passed += milliseconds(500)) {
      for (const FakeNode& node : alive) {
        Say(node.session, wire::Heartbeat());
        for (const wire::ProbePeer& probe : Take<wire::ProbePeer>(node.session)) {
          ++asked_;
          wire::PeerProbed answer;
          answer.question = probe.question;
          answer.node = probe.node;
          answer.reached = reached;
          if (answering_) Say(node.session, answer);
        }
      }
      Advance(milliseconds(500));
    }
  }
  int asked_ = 0;
  bool answering_ = true;
};

TEST_F(Peers, ANodeThatAnswersNobodyIsLostAfterItsLease) {
  const FakeNode a = Join(1, 2);
  const std::vector<FakeNode> others = {Join(2, 2), Join(3, 2), Join(4, 2), Join(5, 2), Join(6, 2)};
  Pass(milliseconds(4500), others, false);
  EXPECT_EQ(asked_, 3);
  EXPECT_FALSE(NodeOf(a).dead);
  Pass(milliseconds(1000), others, false);
  EXPECT_TRUE(NodeOf(a).dead);
  EXPECT_NE(NodeOf(a).why.find("not heard of for 5000 ms, nor does it answer node-"),
            std::string::npos)
      << NodeOf(a).why;
}

TEST_F(Peers, ANodeThatStillAnswersThemIsSuspectForAsLongAsActorsAreFenced) {
  const FakeNode a = Join(1, 2);
  const std::vector<FakeNode> others = {Join(2, 2), Join(3, 2)};
  Pass(seconds(60), others, true);
  EXPECT_TRUE(NodeOf(a).suspect);
  EXPECT_FALSE(NodeOf(a).dead) << "what is broken lies between it and this head";
  EXPECT_LE(asked_, 2 * 31) << "a round in two seconds";
  Say(a.session, wire::Heartbeat());
  EXPECT_FALSE(NodeOf(a).suspect);
  Pass(seconds(76), others, true);
  EXPECT_TRUE(NodeOf(a).dead);
  EXPECT_NE(NodeOf(a).why.find("although it answers node-b and node-c"), std::string::npos)
      << NodeOf(a).why;
}

TEST_F(Peers, AnEndThatComesAfterAnAnswerIsSeenByTheNextRound) {
  const FakeNode a = Join(1, 2);
  const std::vector<FakeNode> others = {Join(2, 2)};
  Pass(seconds(7), others, true);
  Pass(seconds(3), others, false);
  EXPECT_TRUE(NodeOf(a).dead);
}

TEST_F(Peers, ANodeThatCameBackIsAskedAboutAnew) {
  const FakeNode a = Join(1, 2);
  const std::vector<FakeNode> others = {Join(2, 2)};
  Pass(seconds(6), others, false);
  ASSERT_TRUE(NodeOf(a).dead);
  Join(1, 2);
  Pass(seconds(8), others, true);
  EXPECT_FALSE(NodeOf(a).dead) << "the answers of its earlier silence count no more";
}

TEST_F(Peers, WhoDoesNotAnswerHoldsUpTheVerdictForThreeSeconds) {
  const FakeNode a = Join(1, 2);
  const std::vector<FakeNode> others = {Join(2, 2)};
  answering_ = false;
  Pass(milliseconds(4500), others, false);
  EXPECT_EQ(asked_, 1);
  EXPECT_FALSE(NodeOf(a).dead);
  Pass(seconds(1), others, false);
  EXPECT_TRUE(NodeOf(a).dead);
}

TEST_F(Peers, AfterItsOwnRestartTheHeadAsksBeforeItDecides) {
  const FakeNode a = Join(1, 2);
  Join(2, 2);
  Boot();
  wire::RegisterNode report;
  report.incarnation = 1;
  const std::vector<FakeNode> others = {Join(2, 2, 0, report)};
  Pass(seconds(8), others, true);
  EXPECT_FALSE(NodeOf(a).dead);
  Pass(seconds(6), others, false);
  EXPECT_TRUE(NodeOf(a).dead);
}

TEST_F(Peers, AnswersThatWereNotAskedForChangeNothing) {
  const FakeNode a = Join(1, 2);
  const FakeNode b = Join(2, 2);
  wire::PeerProbed answer;
  answer.node = a.id;
  answer.reached = true;
  Say(b.session, answer);
  answer.node = NodeId(9, 9);
  Say(b.session, answer);
  Advance(milliseconds(2100));
  answer.node = a.id;
  answer.question = 99;
  Say(b.session, answer);
  Pass(seconds(4), {b}, false);
  EXPECT_TRUE(NodeOf(a).dead);
}

TEST_F(Peers, NodesOfOtherHostsAreAskedFirst) {
  const FakeNode a = Join(1, 2);
  std::vector<FakeNode> near;
  for (std::uint64_t number = 2; number <= 4; ++number) {
    FakeNode node;
    node.id = NodeId(7, number);
    node.session = Open(wire::Role::kWorker, node.id, true);
    wire::RegisterNode report;
    report.node = node.id;
    Say(node.session, report, 1);
    near.push_back(node);
  }
  const FakeNode far = Join(5, 2);
  std::vector<FakeNode> all = near;
  all.push_back(far);
  for (int i = 0; i < 5; ++i) {
    for (const FakeNode& node : all) Say(node.session, wire::Heartbeat());
    Advance(milliseconds(500));
  }
  EXPECT_TRUE(NodeOf(a).suspect);
  EXPECT_EQ(Take<wire::ProbePeer>(far.session).size(), 1u);
  std::size_t asked = 0;
  for (const FakeNode& node : near) asked += Take<wire::ProbePeer>(node.session).size();
  EXPECT_EQ(asked, 2u);
}

TEST(InquiryTest, OneThatReachesItIsEnough) {
  PeerInquiry inquiry;
  const Instant now{};
  EXPECT_EQ(inquiry.At(now, seconds(3)), PeerInquiry::Verdict::kNobodyAsked);
  inquiry.Ask(1, {NodeId(1, 1), NodeId(1, 2)}, now);
  EXPECT_EQ(inquiry.At(now, seconds(3)), PeerInquiry::Verdict::kWaiting);
  inquiry.Answer(1, NodeId(1, 1), false);
  inquiry.Answer(1, NodeId(1, 1), true);  // a second answer of one peer
  EXPECT_EQ(inquiry.At(now + seconds(2), seconds(3)), PeerInquiry::Verdict::kWaiting);
  EXPECT_EQ(inquiry.At(now + seconds(3), seconds(3)), PeerInquiry::Verdict::kUnreached);
  inquiry.Extend(seconds(2));
  EXPECT_EQ(inquiry.At(now + seconds(3), seconds(3)), PeerInquiry::Verdict::kWaiting);
  inquiry.Answer(1, NodeId(1, 2), true);
  EXPECT_EQ(inquiry.At(now + seconds(9), seconds(3)), PeerInquiry::Verdict::kReached);
  inquiry.Ask(2, {NodeId(1, 1)}, now);
  inquiry.Answer(1, NodeId(1, 1), true);  // answer of the earlier round
  EXPECT_EQ(inquiry.At(now, seconds(3)), PeerInquiry::Verdict::kWaiting);
}

}  // namespace
}  // namespace troupe::head
