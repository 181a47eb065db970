// Method: random arrivals and departures; after each step the invariants are checked against a
// model of who is in, and promotion is only believed when the sink was told.
#include "actors/core/policy/leader_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "runtime/base/random.h"

namespace troupe::actors {
namespace {

struct Sink {
  std::vector<GateMember*> promoted;
  void Promote(GateMember& member) { promoted.push_back(&member); }
};

TEST(LeaderGate, LG1_OneLeads) {
  LeaderGate gate;
  GateMember a;
  GateMember b;
  EXPECT_TRUE(gate.vacant());
  EXPECT_TRUE(gate.TryLead(a));
  EXPECT_FALSE(gate.TryLead(b));
  EXPECT_TRUE(gate.Leads(a));
  EXPECT_FALSE(gate.Leads(b));
}

TEST(LeaderGate, LG2_LeavingPromotesTheFirst) {
  LeaderGate gate;
  GateMember a;
  GateMember b;
  GateMember c;
  Sink sink;
  gate.TryLead(a);
  gate.Follow(b);
  gate.Follow(c);
  EXPECT_FALSE(gate.Leave(a, sink));
  ASSERT_EQ(sink.promoted, (std::vector<GateMember*>{&b}));
  EXPECT_TRUE(gate.Leads(b));
  EXPECT_FALSE(b.queued());
}

TEST(LeaderGate, LG3_APromotedFollowerThatLeavesPassesTheLeadOn) {
  LeaderGate gate;
  GateMember a;
  GateMember b;
  GateMember c;
  Sink sink;
  gate.TryLead(a);
  gate.Follow(b);
  gate.Follow(c);
  gate.Leave(a, sink);
  gate.Leave(b, sink);  // the slot was done before the thread woke up to lead
  EXPECT_TRUE(gate.Leads(c));
  EXPECT_TRUE(gate.Leave(c, sink));
  EXPECT_TRUE(gate.vacant());
}

TEST(LeaderGate, LG5_TurnsTellThatSomebodyLed) {
  LeaderGate gate;
  GateMember a;
  Sink sink;
  const std::uint64_t before = gate.turns();
  gate.TryLead(a);
  gate.Leave(a, sink);
  EXPECT_NE(gate.turns(), before);
}

TEST(LeaderGate, LG1234_HoldInRandomRuns) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Prng random(seed);
    LeaderGate gate;
    Sink sink;
    std::vector<GateMember> members(8);
    GateMember* leader = nullptr;
    std::deque<GateMember*> queue;
    for (int step = 0; step < 500; ++step) {
      GateMember* who = &members[random.Below(members.size())];
      const auto queued = std::find(queue.begin(), queue.end(), who);
      if (who == leader) {
        const bool vacant = gate.Leave(*who, sink);
        leader = queue.empty() ? nullptr : queue.front();
        ASSERT_EQ(vacant, leader == nullptr);
        if (leader != nullptr) {
          queue.pop_front();
          ASSERT_EQ(sink.promoted.back(), leader);
        }
      } else if (queued != queue.end()) {
        ASSERT_FALSE(gate.Leave(*who, sink));
        queue.erase(queued);
      } else if (gate.TryLead(*who)) {
        ASSERT_EQ(leader, nullptr);
        leader = who;
      } else {
        ASSERT_NE(leader, nullptr);
        gate.Follow(*who);
        queue.push_back(who);
      }
      ASSERT_EQ(gate.vacant(), leader == nullptr);
      ASSERT_TRUE(queue.empty() || leader != nullptr);  // LG-2: nobody follows a vacant gate
      for (GateMember& member : members) ASSERT_EQ(gate.Leads(member), &member == leader);
    }
  }
}

}  // namespace
}  // namespace troupe::actors
