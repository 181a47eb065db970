// Method: looks at GPUs in words; then HeadCore with a node that has GPUs and says what they do.
//   IG-1, IG-2: head/core/machine/idle_gpus.h.
#include "head/core/machine/idle_gpus.h"

#include <gmock/gmock.h>

#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Duration kAfter = 30min;

class Looks : public ::testing::Test {
 protected:
  /// Looks each 5 s for so long, and returns what was due.
  std::vector<IdleGpus::Idle> For(Duration time, std::vector<IdleGpus::Look> looks) {
    std::vector<IdleGpus::Idle> due;
    for (const Instant until = now_ + time; now_ < until; now_ += 5s) {
      for (const IdleGpus::Idle& each : gpus_.See(looks, now_, kAfter)) due.push_back(each);
    }
    return due;
  }
  const GroupId train_ = GroupId(1, 1);
  const GroupId other_ = GroupId(1, 2);
  IdleGpus gpus_;
  Instant now_{1000s};
};

TEST_F(Looks, IG2_AnIdleTimeIsToldOfOnce) {
  EXPECT_THAT(For(kAfter, {{0, train_, 0.0}, {1, train_, 0.9}}), IsEmpty());
  const auto due = For(5s, {{0, train_, 0.01}, {1, train_, 0.9}});
  ASSERT_THAT(due, SizeIs(1));
  EXPECT_EQ(due[0].gpu, 0u);
  EXPECT_EQ(due[0].holder, train_);
  EXPECT_EQ(due[0].lasts, kAfter);
  EXPECT_THAT(For(10 * kAfter, {{0, train_, 0.0}}), IsEmpty()) << "it goes on";
  EXPECT_THAT(gpus_.Told(now_), SizeIs(1));
}

TEST_F(Looks, IG2_AgainOnlyAfterItWasBusy) {
  EXPECT_THAT(For(kAfter + 5s, {{0, train_, 0.0}}), SizeIs(1));
  EXPECT_THAT(For(5s, {{0, train_, 0.05}}), IsEmpty());
  EXPECT_THAT(gpus_.Told(now_), IsEmpty());
  EXPECT_THAT(For(kAfter, {{0, train_, 0.0}}), IsEmpty());
  EXPECT_THAT(For(5s, {{0, train_, 0.0}}), SizeIs(1));
}

TEST_F(Looks, IG1_WorkNowAndThenIsNoIdleTime) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(For(kAfter - 5s, {{0, train_, 0.0}}), IsEmpty());
    EXPECT_THAT(For(5s, {{0, train_, 1.0}}), IsEmpty());
  }
}

TEST_F(Looks, IG1_AnotherHolderBeginsAnew) {
  EXPECT_THAT(For(20min, {{0, train_, 0.0}}), IsEmpty());
  EXPECT_THAT(For(20min, {{0, other_, 0.0}}), IsEmpty());
  EXPECT_THAT(For(20min, {{0, other_, 0.0}}), SizeIs(1));
  EXPECT_THAT(For(10 * kAfter, {{0, GroupId(), 0.0}}), IsEmpty()) << "nobody's";
  EXPECT_THAT(gpus_.Told(now_), IsEmpty());
}

TEST_F(Looks, IG1_WhatNobodySawIsNoIdleTime) {
  EXPECT_THAT(For(20min, {{0, train_, 0.0}}), IsEmpty());
  now_ += 10min;  // the node was out of reach
  EXPECT_THAT(For(20min, {{0, train_, 0.0}}), IsEmpty());
  EXPECT_THAT(For(15min, {{0, train_, 0.0}}), SizeIs(1));
  now_ += 2min;
  EXPECT_THAT(gpus_.Told(now_), IsEmpty()) << "nobody knows what it does now";
}

class IdleGpusOfANode : public HeadFixture {
 protected:
  IdleGpusOfANode() { Begin(); }
  void Begin() {
    Boot();
    node_ = Join(1, 8, 4);
    client_ = Open(wire::Role::kClient, Id128(9, 9), true);
  }
  LaunchId HoldGpus(const std::string& name, const std::vector<std::uint32_t>& gpus) {
    wire::SubmitLaunch submit;
    submit.spec.name = name;
    submit.spec.ranks = 1;
    submit.spec.attempts_max = 1;
    submit.spec.per_rank = Amounts(1, gpus.size());
    submit.request = RequestId(11, ++requests_);
    Say(client_, submit, 1000 + requests_);
    const LaunchId launch = Last<wire::LaunchAccepted>(client_).launch;
    for (const wire::Reserve& reserve : Take<wire::Reserve>(node_.session)) {
      wire::ReserveReply reply;
      reply.group = reserve.group;
      reply.attempt = reserve.attempt;
      reply.granted = true;
      reply.grants.push_back({0, gpus});
      Say(node_.session, reply);
    }
    Serve(node_);
    return launch;
  }
  void Measure(Duration time, const std::vector<double>& ratios) {
    wire::NodeMeasures message;
    for (std::size_t gpu = 0; gpu < ratios.size(); ++gpu) {
      wire::Measure measure;
      measure.kind = wire::MeasureKind::kGpuUtilizationRatio;
      measure.gpu = static_cast<std::int32_t>(gpu);
      measure.value = ratios[gpu];
      message.measures.push_back(measure);
    }
    for (const Instant until = now_ + time; now_ < until; now_ += 5s)
      Say(node_.session, message);
  }
  std::vector<wire::ClusterEvent> Warnings() {
    Say(client_, wire::ListEvents(), 91);
    std::vector<wire::ClusterEvent> found;
    for (wire::ClusterEvent& event : Last<wire::EventList>(client_).events) {
      if (event.severity == wire::Severity::kWarning) found.push_back(std::move(event));
    }
    return found;
  }
  std::string WhyOfNode() {
    Say(client_, wire::GetStatus(), 92);
    return Last<wire::ClusterStatus>(client_).nodes.at(0).why;
  }

  FakeNode node_;
  SessionId client_;
};

TEST_F(IdleGpusOfANode, AnEventAndTheStatusNameNodeGpusHolderAndOwner) {
  options_.user = "alice";
  Begin();
  const LaunchId launch = HoldGpus("train", {1, 2});
  HoldGpus("other", {3});
  Measure(30min, {0, 0, 0, 0.8});
  EXPECT_THAT(Warnings(), IsEmpty());
  EXPECT_EQ(WhyOfNode(), "");
  Measure(5s, {0, 0, 0, 0.8});
  ASSERT_THAT(Warnings(), SizeIs(1));
  const wire::ClusterEvent event = Warnings()[0];
  EXPECT_EQ(event.message,
            "node node-a: GPUs 1, 2 idle for 30 minutes, held by launch train of alice");
  EXPECT_EQ(event.node, node_.id);
  EXPECT_EQ(event.launch, launch);
  EXPECT_EQ(event.source, wire::EventSource::kNode);
  EXPECT_EQ(event.wall_us, WallUs() - 5'000'000);
  EXPECT_EQ(WhyOfNode(), "GPUs 1, 2 idle for 30 minutes, held by launch train of alice");
  Measure(60min, {0, 0, 0, 0.8});
  EXPECT_THAT(Warnings(), SizeIs(1));
  Measure(5s, {0, 0, 0.3, 0.8});
  EXPECT_THAT(WhyOfNode(), HasSubstr("GPU 1 idle for 90 minutes, held by launch train"));
  Finish(node_, launch, 0);
  Serve(node_);
  Measure(5s, {0, 0, 0, 0.8});
  EXPECT_EQ(WhyOfNode(), "");
}

TEST_F(IdleGpusOfANode, TheyDoNotCloseTheNode) {
  HoldGpus("train", {0});
  Measure(31min, {0, 0, 0, 0});
  ASSERT_THAT(Warnings(), SizeIs(1));
  const LaunchId next = HoldGpus("next", {1});
  EXPECT_FALSE(LaunchOf(next).ranks.empty()) << "it has a place";
}

TEST_F(IdleGpusOfANode, NoneAreToldOfWhereThatIsTurnedOff) {
  options_.idle_gpu_after = Duration::zero();
  Begin();
  HoldGpus("train", {0});
  Measure(60min, {0});
  EXPECT_THAT(Warnings(), IsEmpty());
}

}  // namespace
}  // namespace troupe::head
