// Method: a node, and users whose launches wait for it, for a day of simulated time. FS-1 to FS-3
// of head/core/placed/people/fair_queue.h and placement/fair_share.h, AC-1 of
// head/core/machine/accounts.h.
#include "head/core/placed/people/fair_queue.h"

#include <algorithm>
#include <map>

#include "tests/head/people/people_fixture.h"

namespace troupe::head {
namespace {

using placement::kUnit;
using wire::CapKind;

// Launches that run for a time and then end, on one node.
class FairQueues : public PeopleFixture {
 protected:
  LaunchId Add(SessionId client, std::uint64_t cpus, std::uint64_t gpus, Duration runs) {
    const LaunchId id = SubmitOne(client, cpus, gpus);
    lasts_[id] = runs;
    waiting_.push_back(id);
    return id;
  }
  /// Notes which launches have begun since, and when they will end.
  void NoteStarts() {
    Answer(node_);
    std::erase_if(waiting_, [this](const LaunchId& id) {
      if (!Runs(id)) return false;
      ends_.emplace(now_ + lasts_[id], id);
      begun_[id] = now_;
      return true;
    });
    sent_.clear();
  }
  /// To the next end of a launch.
  void Step() {
    NoteStarts();
    ASSERT_FALSE(ends_.empty());
    const auto [due, id] = *ends_.begin();
    ends_.erase(ends_.begin());
    Advance(due - now_);
    End(node_, id);
    CheckAccounts();
  }
  std::size_t WaitingOf(const std::string& user) {
    return static_cast<std::size_t>(std::count_if(
        waiting_.begin(), waiting_.end(),
        [&](const LaunchId& id) { return LaunchOf(id).user == user; }));
  }

  FakeNode node_ = Join(1, 32, 8);
  std::map<LaunchId, Duration> lasts_;
  std::map<LaunchId, Instant> begun_;
  std::vector<LaunchId> waiting_;
  std::multimap<Instant, LaunchId> ends_;
};

TEST_F(FairQueues, FS1_FS3_DominantSharesAreEqualOverADayWithinFiveParts) {
  struct Person {
    std::string name;
    std::uint64_t cpus, gpus;
  };
  // People with different dominant resources; each of them fits where another one ended: the
  // fitting one goes.
  const std::vector<Person> people = {{"alice", 2, 1}, {"bob", 2, 0}, {"carol", 2, 1}};
  std::map<std::string, SessionId> clients;
  for (const Person& each : people) clients[each.name] = OpenAs(each.name);
  SetQuota("carol", {{CapKind::kGpus, 5 * kUnit}});
  const Instant begin = now_;
  Prng random(7);
  const Duration day = std::chrono::hours(24);
  while (now_ - begin < day) {
    for (const Person& each : people) {
      while (WaitingOf(each.name) < 12) {
        const Duration runs = std::chrono::minutes(20 + random.Next() % 100);
        Add(clients[each.name], each.cpus, each.gpus, runs);
      }
    }
    Step();
    ASSERT_LE(UsageOfUser("carol").held.size(), 2u);
    for (const wire::Resource& held : UsageOfUser("carol").held) {
      ASSERT_TRUE(held.name != "GPU" || held.ten_thousandths <= 5 * kUnit) << "QT-1";
    }
  }
  std::vector<double> shares;
  for (const Person& each : people) shares.push_back(UsageOfUser(each.name).share);
  const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
  EXPECT_GT(*least, 0.3);
  EXPECT_LT(*most - *least, 0.05) << shares[0] << " " << shares[1] << " " << shares[2];
}

TEST_F(FairQueues, FS1_WhoHasHeldLessPassesAnEarlierRequestAndItIsSaid) {
  const SessionId alice = OpenAs("alice");
  const SessionId bob = OpenAs("bob");
  Add(alice, 32, 0, std::chrono::hours(3));
  NoteStarts();
  const LaunchId of_alice = Add(alice, 32, 0, std::chrono::hours(1));
  const LaunchId of_bob = Add(bob, 32, 0, std::chrono::hours(1));
  wire::GetGroup explain;
  explain.group = LaunchOf(of_alice).group;
  explain.explain = true;
  Advance(std::chrono::hours(1));
  Say(alice, explain, 60);
  EXPECT_NE(Last<wire::GroupUpdate>(alice).info.reason.find(
                "who has held less of the cluster in the last 24 hours goes first: alice has held "
                "4.2 %; also waiting: bob 0.0 %"),
            std::string::npos)
      << Last<wire::GroupUpdate>(alice).info.reason;
  Step();
  EXPECT_TRUE(Runs(of_bob));
  EXPECT_FALSE(Runs(of_alice));
}

TEST_F(FairQueues, FS1_PrioritiesComeBeforeShares) {
  const SessionId alice = OpenAs("alice");
  const SessionId bob = OpenAs("bob");
  Add(alice, 32, 0, std::chrono::hours(3));
  NoteStarts();
  const LaunchId of_bob = Add(bob, 32, 0, std::chrono::hours(1));
  const LaunchId urgent = Submit(alice, 32, 1, wire::LaunchMode::kDistributed, 1);
  Step();
  EXPECT_TRUE(Runs(urgent));
  EXPECT_FALSE(Runs(of_bob));
}

TEST_F(FairQueues, FS2_WhoHoldsMoreGetsTheFirstOfTheirsAfterADay) {
  options_.keep_after = std::chrono::hours(1000);
  Start();
  node_ = Join(1, 32, 8);
  const SessionId alice = OpenAs("alice");
  const SessionId bob = OpenAs("bob");
  Add(alice, 24, 0, std::chrono::hours(100));  // a service
  NoteStarts();
  for (int i = 0; i < 8; ++i) Add(bob, 1, 0, std::chrono::minutes(30 + i));
  NoteStarts();
  const LaunchId first = Add(alice, 1, 0, std::chrono::hours(1));
  const LaunchId second = Add(alice, 1, 0, std::chrono::hours(1));
  const Instant asked = now_;
  while (!Runs(first) && now_ - asked < std::chrono::hours(30)) {
    while (WaitingOf("bob") < 8) Add(bob, 1, 0, std::chrono::minutes(30));
    Step();
  }
  NoteStarts();
  EXPECT_TRUE(Runs(first));
  EXPECT_GE(begun_[first] - asked, std::chrono::hours(24));
  EXPECT_FALSE(Runs(second)) << "one request, not all of them";
}

TEST_F(FairQueues, FS2_WhatWasPassedOverBeforeTheHeadRestartedCounts) {
  options_.keep_after = std::chrono::hours(1);
  Start();
  node_ = Join(1, 32, 8);
  const SessionId alice = OpenAs("alice");
  SessionId bob = OpenAs("bob");
  Add(alice, 24, 0, std::chrono::hours(100));  // a service
  const auto fill = [&] {
    while (WaitingOf("bob") < 24) Add(bob, 1, 0, std::chrono::minutes(30));
  };
  fill();
  NoteStarts();
  const LaunchId first = Add(alice, 1, 0, std::chrono::hours(1));
  const Instant asked = now_;
  const auto run_until = [&](Duration waited) {
    while (!Runs(first) && now_ - asked < waited) {
      fill();
      Step();
    }
  };
  run_until(std::chrono::hours(12));
  ASSERT_FALSE(Runs(first));
  wire::RegisterNode report;
  for (const auto& [id, since] : begun_) {
    if (!Runs(id)) continue;
    wire::RegisterNode on_it = WhatIsOn(node_, id);
    report.incarnation = on_it.incarnation;
    report.ranks.push_back(on_it.ranks.at(0));
    report.holdings.push_back(on_it.holdings.at(0));
  }
  Start();
  node_ = Join(1, 32, 8, report);
  bob = OpenAs("bob");
  run_until(std::chrono::hours(26));
  EXPECT_TRUE(Runs(first)) << "12 h before the restart, and 12 h after it";
}

}  // namespace
}  // namespace troupe::head
