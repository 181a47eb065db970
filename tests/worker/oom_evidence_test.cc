// Method: what the kernel would have counted is given by hand.
#include "worker/oom_evidence.h"

#include <gtest/gtest.h>

namespace troupe::worker {
namespace {

os::OomKills Counted(std::uint64_t count) { return {count, "cgroup memory.events"}; }

TEST(OomEvidenceTest, KillsFromBeforeAreOfNobodyHere) {
  OomEvidence evidence(Counted(5));
  EXPECT_EQ(evidence.Take(Counted(5)), "");
}

TEST(OomEvidenceTest, TwoThatWereKilledTogetherHaveOneKillEach) {
  OomEvidence evidence(Counted(0));
  EXPECT_EQ(evidence.Take(Counted(2)), "cgroup memory.events");
  EXPECT_EQ(evidence.Take(Counted(2)), "cgroup memory.events");
  EXPECT_EQ(evidence.Take(Counted(2)), "") << "a third one was killed by somebody else";
}

TEST(OomEvidenceTest, AKillThatNobodyTookIsWrittenOffAtTheSecondLook) {
  OomEvidence evidence(Counted(0));
  evidence.Settle(Counted(1));
  EXPECT_EQ(evidence.left(Counted(1)), 1u);
  EXPECT_EQ(OomEvidence(evidence).Take(Counted(1)), "cgroup memory.events")
      << "its end may still be on its way";
  evidence.Settle(Counted(1));
  EXPECT_EQ(evidence.left(Counted(1)), 0u);
  EXPECT_EQ(evidence.Take(Counted(1)), "");
  EXPECT_EQ(evidence.Take(Counted(2)), "cgroup memory.events");
}

TEST(OomEvidenceTest, WhatCannotBeReadIsNoEvidence) {
  OomEvidence evidence(Counted(3));
  EXPECT_EQ(evidence.Take({}), "");
  EXPECT_EQ(evidence.left({}), 0u);
}

}  // namespace
}  // namespace troupe::worker
