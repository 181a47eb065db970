// Method: two or three tables joined by hand: what one wants sent is given to the other in order,
// lost, repeated or held back by the test; each test is one edge of the protocol.
#include "runtime/store/core/references.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>

namespace troupe::store {
namespace {

const ProcessId kA(1, 1);
const ProcessId kB(2, 1);
const ProcessId kC(3, 1);

class Cluster {
 public:
  Cluster() {
    for (const ProcessId& id : {kA, kB, kC}) tables_.emplace(id, References(id));
    for (const auto& [a, b] : {std::pair{kA, kB}, std::pair{kA, kC}, std::pair{kB, kC}}) Join(a, b);
  }
  References& operator[](const ProcessId& id) { return tables_.at(id); }
  Instant now{std::chrono::seconds(100)};

  void Join(const ProcessId& a, const ProcessId& b) {
    const std::uint64_t number = ++connection_;
    const std::uint64_t by_a = tables_.at(a).AppliedOf(b);
    const std::uint64_t by_b = tables_.at(b).AppliedOf(a);
    tables_.at(a).Connected(b, number, by_b, now);
    tables_.at(b).Connected(a, number, by_a, now);
    connections_[{a, b}] = connections_[{b, a}] = number;
  }
  std::uint64_t ConnectionOf(const ProcessId& a, const ProcessId& b) {
    return connections_[{a, b}];
  }
  void Cut(const ProcessId& a, const ProcessId& b) {
    tables_.at(a).Disconnected(b, connections_[{a, b}], now);
    tables_.at(b).Disconnected(a, connections_[{a, b}], now);
  }
  /// Collects what everybody wants; frames are queued, the rest is kept for the test to look at.
  void Collect() {
    for (auto& [id, table] : tables_) {
      for (Effect& effect : table.TakeEffects()) {
        if (auto* send = std::get_if<SendFrame>(&effect)) {
          frames.push_back({id, send->peer, connections_[{id, send->peer}], send->frame});
        } else if (auto* ack = std::get_if<SendAck>(&effect)) {
          acks_.push_back({id, ack->peer});
        } else {
          others[id].push_back(std::move(effect));
        }
      }
    }
  }
  struct Sent {
    ProcessId from;
    ProcessId to;
    std::uint64_t connection;
    ControlFrame frame;
  };
  void Deliver(const Sent& sent) {
    tables_.at(sent.to).Frame(sent.from, sent.connection, tables_.at(sent.from).AppliedOf(sent.to),
                              sent.frame, now);
  }
  /// Delivers everything until nobody has anything to say.
  void Run() {
    for (Collect(); !frames.empty() || !acks_.empty(); Collect()) {
      if (!frames.empty()) {
        const Sent sent = frames.front();
        frames.pop_front();
        Deliver(sent);
        continue;
      }
      const auto [from, to] = acks_.front();
      acks_.pop_front();
      tables_.at(to).Ack(from, connections_[{from, to}], tables_.at(from).AppliedOf(to), now);
    }
  }
  template <class T>
  std::vector<T> Of(const ProcessId& id) {
    std::vector<T> found;
    for (const Effect& effect : others[id]) {
      if (const auto* one = std::get_if<T>(&effect)) found.push_back(*one);
    }
    return found;
  }

  std::deque<Sent> frames;
  std::map<ProcessId, Effects> others;

 private:
  std::map<ProcessId, References> tables_;
  std::map<std::pair<ProcessId, ProcessId>, std::uint64_t> connections_;
  std::deque<std::pair<ProcessId, ProcessId>> acks_;
  std::uint64_t connection_ = 0;
};

Value InSlot(std::uint64_t generation) {
  Location location;
  location.node = NodeId(9, 1);
  location.slot = {kA, 1, 0};
  location.generation = generation;
  return Value::At(location);
}

// The owner passes a reference in a call; the receiver's handle is what the call's argument is.
ObjectId Pass(Cluster& c, const ProcessId& to) {
  const ObjectId id = c[kA].Put(InSlot(1), {}, c.now);
  const Lent lent = c[kA].Lend(id, to, c.now);
  c[to].Receive(kA, lent.handed, &lent.answer, c.now);
  return id;
}
void HandOn(Cluster& c, const ObjectId& id, const ProcessId& from, const ProcessId& to) {
  c[to].Receive(from, c[from].Lend(id, to, c.now).handed, nullptr, c.now);
}
bool FreedClean(Cluster& c) {
  const auto freed = c.Of<FreeSlot>(kA);
  return freed.size() == 1 && freed[0].clean;
}

TEST(References, O2_AnArgumentThatIsNotKeptCostsOneSettle) {
  Cluster c;
  const ObjectId id = Pass(c, kB);
  EXPECT_EQ(c[kB].Look(id).known, Known::kValue);
  c[kB].DropHandle(id, c.now);
  c.Collect();
  ASSERT_EQ(c.frames.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<Settle>(c.frames[0].frame.body));
  c[kA].DropHandle(id, c.now);
  EXPECT_EQ(c[kA].Look(id).known, Known::kValue) << "the loan keeps it";
  c.Run();
  EXPECT_EQ(c[kA].Look(id).known, Known::kNothing);
  EXPECT_TRUE(FreedClean(c));
}

TEST(References, O6_AKeptArgumentIsRegisteredBeforeItsLoanEnds) {
  Cluster c;
  const ObjectId id = Pass(c, kB);
  c[kB].EndCall(id, c.now);
  EXPECT_EQ(c[kB].Look(id).known, Known::kValue) << "readable while Hold is under way";
  c[kA].DropHandle(id, c.now);
  c.Run();
  EXPECT_EQ(c[kA].state().owned.at(id.sequence).borrowers.count(kB), 1u);
  EXPECT_TRUE(c[kA].state().owned.at(id.sequence).loans.empty());
  c[kB].DropHandle(id, c.now);
  c.Run();
  EXPECT_TRUE(c[kB].state().borrowed.empty());
  EXPECT_TRUE(FreedClean(c));
}

TEST(References, O6_AHandOnIsNeverUnlisted) {
  Cluster c;
  const ObjectId id = Pass(c, kB);
  HandOn(c, id, kB, kC);
  EXPECT_EQ(c[kC].Look(id).known, Known::kWaiting) << "another's loan licenses no reading";
  c[kB].DropHandle(id, c.now);
  c[kA].DropHandle(id, c.now);
  c.Run();
  EXPECT_EQ(c[kC].Look(id).known, Known::kValue);
  EXPECT_EQ(c[kA].state().owned.at(id.sequence).borrowers, std::set<ProcessId>{kC});
  c[kC].DropHandle(id, c.now);
  c.Run();
  EXPECT_TRUE(FreedClean(c));
}

TEST(References, O1_AViewKeepsWhatItsHandleLeft) {
  Cluster c;
  const ObjectId id = Pass(c, kB);
  ASSERT_TRUE(c[kB].AddView(id));
  c[kB].DropHandle(id, c.now);
  c[kA].DropHandle(id, c.now);
  c.Run();
  EXPECT_TRUE(c.Of<FreeSlot>(kA).empty());
  c[kB].DropView(id, c.now);
  c.Run();
  EXPECT_TRUE(FreedClean(c));
}

TEST(References, O1_AForkUnderAViewMakesTheReleaseUnclean) {
  for (const bool kept : {false, true}) {
    Cluster c;
    const ObjectId id = Pass(c, kB);
    if (kept) c[kB].EndCall(id, c.now);
    c.Run();
    ASSERT_TRUE(c[kB].AddView(id));
    c[kB].Forked();
    c[kB].DropView(id, c.now);
    c[kB].DropHandle(id, c.now);
    c[kA].DropHandle(id, c.now);
    c.Run();
    ASSERT_EQ(c.Of<FreeSlot>(kA).size(), 1u);
    EXPECT_FALSE(c.Of<FreeSlot>(kA)[0].clean) << (kept ? "by Drop" : "by Settle");
  }
}

TEST(References, O5_RepeatedFramesAndFramesOfOldConnectionsChangeNothing) {
  Cluster c;
  const ObjectId id = Pass(c, kB);
  c[kB].EndCall(id, c.now);
  c.Run();
  c[kB].DropHandle(id, c.now);
  c.Collect();
  const Cluster::Sent drop = c.frames.front();
  c.Cut(kA, kB);
  c.frames.clear();
  c.Join(kA, kB);
  const Lent again = c[kA].Lend(id, kB, c.now);
  c[kB].Receive(kA, again.handed, &again.answer, c.now);
  c.Run();  // the Drop was sent again, and a Hold after it
  EXPECT_EQ(c[kA].state().owned.at(id.sequence).borrowers.count(kB), 1u);
  c.Deliver(drop);
  Cluster::Sent repeated = drop;
  repeated.connection = c.ConnectionOf(kB, kA);
  c.Deliver(repeated);
  EXPECT_EQ(c[kA].state().owned.at(id.sequence).borrowers.count(kB), 1u);
}

TEST(References, O3_WhatWasUnderWayAtACutIsSentAgain) {
  Cluster c;
  const ObjectId id = Pass(c, kB);
  HandOn(c, id, kB, kC);
  c.Collect();
  c.frames.clear();  // every Hold and Settle is lost
  for (const auto& [a, b] : {std::pair{kA, kB}, std::pair{kA, kC}}) {
    c.Cut(a, b);
    c.Join(a, b);
  }
  c.Run();
  EXPECT_EQ(c[kC].Look(id).known, Known::kValue);
  EXPECT_TRUE(c[kA].state().owned.at(id.sequence).loans.empty());
}

TEST(References, O3_ALoanWhoseCallNeverArrivedIsRecalled) {
  Cluster c;
  const ObjectId id = c[kA].Put(InSlot(1), {}, c.now);
  const Lent lost = c[kA].Lend(id, kB, c.now);
  const Lent came = c[kA].Lend(id, kB, c.now);
  c[kB].Receive(kA, came.handed, &came.answer, c.now);
  c[kA].DropHandle(id, c.now);
  c[kA].Recall(kB, {lost.handed.loan, came.handed.loan}, c.now);
  c.Run();
  EXPECT_EQ(c[kA].state().owned.at(id.sequence).loans.size(), 1u) << "what came stays lent";
  EXPECT_EQ(c[kB].Look(id).known, Known::kValue);
  c[kB].DropHandle(id, c.now);
  c.Run();
  EXPECT_TRUE(FreedClean(c));
  // The call comes after all: its loan does not count; the object is gone, and says who lent it.
  c[kB].Receive(kA, lost.handed, &lost.answer, c.now);
  c.Run();
  EXPECT_EQ(c[kB].Look(id).known, Known::kLost);
}

TEST(References, O8_AStruckBorrowerIsRemovedUncleanAndRefused) {
  Cluster c;
  const ObjectId id = Pass(c, kB);
  c[kB].EndCall(id, c.now);
  c.Run();
  c[kA].DropHandle(id, c.now);
  c.Cut(kA, kB);
  c.now += std::chrono::seconds(29);
  c[kA].Expire(c.now);
  c[kB].Expire(c.now);
  EXPECT_EQ(c[kB].Look(id).known, Known::kValue) << "within the window nothing is counted";
  c.now += std::chrono::seconds(1);
  EXPECT_EQ(c[kA].NextDeadline(), c.now);
  c[kA].Expire(c.now);
  c.Collect();
  ASSERT_EQ(c.Of<FreeSlot>(kA).size(), 1u);
  EXPECT_FALSE(c.Of<FreeSlot>(kA)[0].clean);
  EXPECT_EQ(c[kA].Connected(kB, 99, 0, c.now), Greeting::kRefused);
  c[kB].Refused(kA, c.now);
  EXPECT_EQ(c[kB].Look(id).known, Known::kOrphan);
  EXPECT_NE(c[kB].Look(id).cause.find("unreachable"), std::string::npos);
}

TEST(References, O4_TheOwnersDeathIsOwnerDied) {
  Cluster c;
  const ObjectId id = Pass(c, kB);
  HandOn(c, id, kB, kC);
  c[kB].Dead(kA, "SIGKILL on node-a", c.now);
  c[kC].Dead(kA, "SIGKILL on node-a", c.now);
  c.Run();
  for (const ProcessId& who : {kB, kC}) {
    EXPECT_EQ(c[who].Look(id).known, Known::kOrphan);
    EXPECT_EQ(c[who].Look(id).cause, "SIGKILL on node-a");
    c[who].DropHandle(id, c.now);
  }
  c.Run();
  EXPECT_TRUE(c[kB].state().borrowed.empty());
  EXPECT_TRUE(c[kC].state().borrowed.empty());
  EXPECT_EQ(c[kB].Lend(id, kC, c.now).handed.loan, 0u) << "a dead reference is not lent";
}

TEST(References, O6_ADeadBorrowerStaysListedForASecond) {
  Cluster c;
  const ObjectId id = Pass(c, kB);
  c[kB].EndCall(id, c.now);
  c.Run();
  c[kA].DropHandle(id, c.now);
  const Handed handed = c[kB].Lend(id, kC, c.now).handed;
  c[kA].Dead(kB, "killed", c.now);
  c[kC].Receive(kB, handed, nullptr, c.now);  // the Hold is not there yet when B's death is known
  c.Run();
  c.now += std::chrono::seconds(1);
  c[kA].Expire(c.now);
  EXPECT_EQ(c[kA].state().owned.at(id.sequence).borrowers, std::set<ProcessId>{kC});
  c[kC].DropHandle(id, c.now);
  c.Run();
  ASSERT_EQ(c.Of<FreeSlot>(kA).size(), 1u);
  EXPECT_FALSE(c.Of<FreeSlot>(kA)[0].clean) << "the dead one may have left a child that reads";
}

TEST(References, O4_LostWithItsLenderNamesTheLender) {
  Cluster c;
  const ObjectId id = Pass(c, kB);
  const Handed handed = c[kB].Lend(id, kC, c.now).handed;
  c.Run();
  c[kA].DropHandle(id, c.now);
  c[kA].Dead(kB, "killed", c.now);
  c.now += std::chrono::seconds(1);
  c[kA].Expire(c.now);
  c[kC].Receive(kB, handed, nullptr, c.now);
  c.Run();
  EXPECT_EQ(c[kC].Look(id).known, Known::kLost);
  EXPECT_NE(c[kC].Look(id).cause.find(kB.Short()), std::string::npos);
}

TEST(References, NestedReferencesLiveAsLongAsTheirContainer) {
  Cluster c;
  const ObjectId inner = c[kA].Put(Value::Inline("inner"), {}, c.now);
  const ObjectId outer = c[kA].Put(Value::Inline("outer"), {inner}, c.now);
  c[kA].DropHandle(inner, c.now);
  EXPECT_EQ(c[kA].Look(inner).known, Known::kValue);
  const Lent lent = c[kA].Lend(outer, kB, c.now);
  ASSERT_EQ(lent.answer.contained.size(), 1u);
  c[kB].Receive(kA, lent.handed, &lent.answer, c.now);
  EXPECT_NE(c[kB].Look(inner).known, Known::kNothing);
  c[kB].EndCall(outer, c.now);
  c[kA].DropHandle(outer, c.now);
  c.Run();
  EXPECT_NE(c[kB].Look(inner).known, Known::kNothing);
  c[kB].DropHandle(outer, c.now);
  c.Run();
  EXPECT_TRUE(c[kB].state().borrowed.empty());
  EXPECT_TRUE(c[kA].state().owned.empty());
}

TEST(References, APendingValueIsToldToWhoWaits) {
  Cluster c;
  const ObjectId id = c[kA].Expect(c.now);
  const Lent lent = c[kA].Lend(id, kB, c.now);
  c[kB].Receive(kA, lent.handed, &lent.answer, c.now);
  EXPECT_EQ(c[kB].Look(id).known, Known::kWaiting);
  c[kB].Want(id, c.now);
  c.Run();
  EXPECT_EQ(c[kB].Look(id).known, Known::kWaiting);
  c[kA].Fulfil(id, Answer{Value::Inline("42"), {}}, kC, c.now);
  c.Run();
  ASSERT_EQ(c[kB].Look(id).known, Known::kValue);
  EXPECT_EQ(*c[kB].Look(id).value.bytes, "42");
}

TEST(References, ADeepNestIsReleasedWithoutRecursion) {
  Cluster c;
  ObjectId last = c[kA].Put(Value::Inline("0"), {}, c.now);
  for (int i = 0; i < 50'000; ++i) {
    const ObjectId next = c[kA].Put(Value::Inline("n"), {last}, c.now);
    c[kA].DropHandle(last, c.now);
    last = next;
  }
  c[kA].DropHandle(last, c.now);
  EXPECT_TRUE(c[kA].state().owned.empty());
}

TEST(References, APeerThatBreaksTheRulesIsStruckNotObeyed) {
  Cluster c;
  const ObjectId id = Pass(c, kB);
  EXPECT_FALSE(c[kA].Frame(kB, 1, 0, ControlFrame{7, Drop{id, true}}, c.now)) << "a gap";
  EXPECT_TRUE(c[kA].state().peers.at(kB).struck);
  EXPECT_FALSE(c[kA].Ack(kC, 2, 55, c.now)) << "acknowledges what was never sent";
  EXPECT_TRUE(c[kA].state().peers.at(kC).struck);
  // Messages without the right to them change nothing.
  Cluster d;
  const ObjectId other = Pass(d, kB);
  d[kB].Frame(kC, 3, 0, ControlFrame{1, Gone{other}}, d.now);
  d[kB].Frame(kC, 3, 0, ControlFrame{2, Changed{other, Answer{Value::Error("no"), {}}}}, d.now);
  d[kA].Frame(kC, 2, 0, ControlFrame{1, Drop{other, true}}, d.now);
  d[kA].Frame(kC, 2, 0, ControlFrame{2, Settle{1, true}}, d.now);
  EXPECT_EQ(d[kB].Look(other).known, Known::kValue);
  EXPECT_EQ(d[kA].state().owned.at(other.sequence).loans.size(), 1u);
}

}  // namespace
}  // namespace troupe::store
