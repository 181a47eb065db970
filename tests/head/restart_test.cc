// Method: a head with launches, actors and values is killed and booted again from what was durable,
// or from a snapshot of it; its peers come back and repeat what they were not answered.
#include "head/core/machine/durable_text.h"
#include "head/core/machine/snapshot.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

class Restart : public HeadFixture {
 protected:
  // Something of everything, in several states.
  void MakeWork() {
    node_ = Join(1, 8);
    SessionOpened keyed;
    keyed.session = SessionId(100, ++sessions_);
    keyed.role = wire::Role::kWorker;
    keyed.subject = NodeId(7, 2);
    keyed.issued_key_hash = "hash of a key";
    Feed(keyed);
    client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
    done_ = Submit(client_, 2);
    Serve(node_);
    Serve(node_);
    Finish(node_, done_, 0);
    Finish(node_, done_, 1);
    Serve(node_);
    running_ = Submit(client_, 2);
    Serve(node_);
    Serve(node_);
    Finish(node_, running_, 0);
    Submit(client_, 100);  // refused
    waiting_ = Submit(client_, 8);
    for (std::uint64_t i = 1; i <= 3; ++i) {
      wire::CreateActor create;
      create.spec.actor = ActorId(12, i);
      create.spec.class_name = "Counter";
      create.spec.name = "actor-" + std::to_string(i);
      Say(client_, create, 50 + i, "class and arguments");
    }
    wire::ActorStarted started;
    started.actor = ActorId(12, 1);
    started.incarnation = 1;
    started.address.unix_path = "/s/a";
    Say(node_.session, started);
    wire::ActorEnded ended;
    ended.actor = ActorId(12, 2);
    ended.incarnation = 1;
    ended.failure.cause = "exit code 3";
    Say(node_.session, ended, 0, "a pickled exception");
    wire::CreateGroup group;
    group.group = GroupId(13, 1);
    group.bundles.emplace_back();
    group.bundles[0].resources = Amounts(1);
    Say(client_, group, 60);
    Serve(node_);
    Put("k", RequestId(21, 1), "one");
    Say(client_, wire::CreateToken(), 70);
  }
  void Put(const std::string& key, RequestId request, const std::string& value,
           bool overwrite = true) {
    wire::KvPut put;
    put.key = key;
    put.request = request;
    put.overwrite = overwrite;
    Say(client_, put, ++ids_, value);
  }
  std::uint64_t VersionOf(const std::string& key) {
    return core_->state().values.at({"", key}).version;
  }

  FakeNode node_;
  SessionId client_;
  LaunchId done_;
  LaunchId running_;
  LaunchId waiting_;
  std::uint64_t ids_ = 100;
};

TEST_F(Restart, S4_ASnapshotIsTheWholeDurableState) {
  MakeWork();
  const State whole = Folded(durable_);
  const std::vector<wire::Event> snapshot = SnapshotOf(whole);
  const State restored = Folded(snapshot);
  EXPECT_EQ(DurableText(restored), DurableText(whole));
  EXPECT_EQ(SnapshotOf(restored), snapshot);
  EXPECT_EQ(restored.orders, whole.orders);
  EXPECT_EQ(restored.names, whole.names);
  EXPECT_EQ(restored.node_keys, whole.node_keys);
  EXPECT_EQ(restored.node_keys.size(), 1u);
  EXPECT_EQ(restored.requests, whole.requests);
  EXPECT_EQ(restored.waiting_groups, whole.waiting_groups);
  EXPECT_EQ(restored.waiting_inside, whole.waiting_inside);
  EXPECT_EQ(restored.pending_actors, whole.pending_actors);
  EXPECT_EQ(restored.launches.at(done_).ranks[1].value, "value");
  EXPECT_EQ(restored.actors.at(ActorId(12, 1)).payload, "class and arguments");
  // A head that lives has the same, but for what is on its way back from nodes.
  EXPECT_EQ(SnapshotOf(core_->state()), snapshot);
}

TEST_F(Restart, AHeadGoesOnFromASnapshotAndWhatFollowedIt) {
  MakeWork();
  durable_ = SnapshotOf(core_->state());
  Put("k", RequestId(21, 2), "two");
  Boot();
  EXPECT_EQ(VersionOf("k"), 2u);
  EXPECT_TRUE(LaunchOf(running_).open());
  Say(client_ = Open(wire::Role::kClient, Id128{9, 1}, true), wire::GetLaunch{running_}, 5);
  EXPECT_EQ(Last<wire::LaunchUpdate>(client_).info.started_from,
            "forked from a zygote with lightning");
  EXPECT_EQ(LaunchOf(done_).marker->outcome, wire::Outcome::kSucceeded);
  wire::RegisterNode report;
  report.incarnation = node_.incarnation;
  report.ranks.emplace_back();
  report.ranks[0].launch = running_;
  report.ranks[0].epoch = 1;
  report.ranks[0].rank = 1;
  report.holdings.emplace_back();
  report.holdings[0].group = LaunchOf(running_).group;
  report.holdings[0].attempt = 1;
  node_ = Join(1, 8, 0, report);
  Finish(node_, running_, 1);
  EXPECT_EQ(LaunchOf(running_).marker->outcome, wire::Outcome::kSucceeded)
      << LaunchOf(running_).marker->cause;
}

TEST_F(Restart, AWriteRepeatedAfterTheHeadWasKilledIsOneWrite) {
  client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
  Put("k", RequestId(21, 1), "mine", false);
  Boot();
  client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
  Put("k", RequestId(21, 1), "mine", false);
  EXPECT_EQ(Count<wire::ErrorReply>(client_), 0u) << "its own write is not somebody else's";
  Put("k", RequestId(21, 2), "another");
  Put("k", RequestId(21, 1), "mine");
  EXPECT_EQ(VersionOf("k"), 2u) << "a late repeat must not undo what came after";
  wire::KvDelete erase;
  erase.key = "k";
  erase.request = RequestId(21, 3);
  Say(client_, erase, 1);
  Boot();
  client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
  Say(client_, erase, 1);
  EXPECT_EQ(Count<wire::Ok>(client_), 1u);
}

TEST_F(Restart, RecentWritesAreBounded) {
  RecentWrites recent;
  for (std::uint64_t i = 1; i <= kRecentWritesMax + 10; ++i) recent.Note(RequestId(1, i));
  EXPECT_EQ(recent.in_order().size(), kRecentWritesMax);
  EXPECT_FALSE(recent.Has(RequestId(1, 10)));
  EXPECT_TRUE(recent.Has(RequestId(1, 11)));
}

TEST_F(Restart, AnOwnerHasALeaseOfItsOwnAfterARestart) {
  MakeWork();
  Boot();
  Advance(std::chrono::seconds(29));
  EXPECT_TRUE(LaunchOf(running_).open() || LaunchOf(waiting_).open());
  const SessionId back = Open(wire::Role::kClient, Id128{9, 1}, true);
  Advance(std::chrono::seconds(5));
  EXPECT_TRUE(LaunchOf(waiting_).open()) << "it came back within its lease";
  Feed(SessionClosed{back});
  EXPECT_EQ(LaunchOf(waiting_).marker->outcome, wire::Outcome::kCancelled);
}

TEST_F(Restart, ADriverThatStaysAwayLosesWhatItOwned) {
  MakeWork();
  Boot();
  Advance(std::chrono::seconds(31));
  EXPECT_EQ(LaunchOf(waiting_).marker->outcome, wire::Outcome::kCancelled);
}

TEST_F(Restart, AClockSetBackNeitherLengthensATimeoutNorKeepsForEver) {
  Join(1, 8);
  client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
  wire::SubmitLaunch submit;
  submit.spec.ranks = 1;
  submit.spec.per_rank = Amounts(1);
  submit.spec.timeout_ms = 10'000;
  submit.request = RequestId(11, 1);
  Say(client_, submit, 1);
  const LaunchId launch = Last<wire::LaunchAccepted>(client_).launch;
  wall_at_zero_us_ -= 3600ull * 1'000'000;
  Boot();
  Open(wire::Role::kClient, Id128{9, 1}, true);
  Advance(std::chrono::seconds(11));
  EXPECT_EQ(LaunchOf(launch).marker->outcome, wire::Outcome::kCancelled);
}

TEST_F(Restart, AClockThatJumpsWhileTheHeadRunsEndsNothing) {
  const FakeNode a = Join(1, 8);
  client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
  wire::SubmitLaunch submit;
  submit.spec.ranks = 1;
  submit.spec.per_rank = Amounts(1);
  submit.spec.timeout_ms = 10'000;
  submit.request = RequestId(11, 1);
  Say(client_, submit, 1);
  const LaunchId launch = Last<wire::LaunchAccepted>(client_).launch;
  for (const std::uint64_t jump_us :
       {7200ull * 1'000'000, std::uint64_t(0) - 14400ull * 1'000'000}) {
    wall_at_zero_us_ += jump_us;
    Say(a.session, wire::Heartbeat());
    Advance(std::chrono::seconds(1));
    EXPECT_TRUE(LaunchOf(launch).open());
    EXPECT_FALSE(core_->state().nodes.at(a.id).dead);
  }
  Serve(a);
  Serve(a);
  Finish(a, launch, 0);
  EXPECT_EQ(LaunchOf(launch).marker->outcome, wire::Outcome::kSucceeded);
}

TEST_F(Restart, AFullDiskRefusesWhatIsNewAndLetsWhatRunsEnd) {
  const FakeNode a = Join(1, 8);
  client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
  const LaunchId launch = Submit(client_, 1);
  Serve(a);
  Serve(a);
  Feed(DiskFull{true});
  Put("k", RequestId(21, 1), "v");
  EXPECT_EQ(LastError(client_), ErrorCode::kTooLarge);
  wire::CreateActor create;
  create.spec.actor = ActorId(12, 1);
  Say(client_, create, 2);
  EXPECT_TRUE(core_->state().actors.empty());
  Finish(a, launch, 0);
  EXPECT_EQ(LaunchOf(launch).marker->outcome, wire::Outcome::kSucceeded);
  Feed(DiskFull{false});
  Put("k", RequestId(21, 2), "v");
  EXPECT_EQ(VersionOf("k"), 1u);
}

TEST_F(Restart, ClientsAreToldThatTheClusterWasStopped) {
  client_ = Open(wire::Role::kClient, Id128{9, 1}, true);
  const SessionId other = Open(wire::Role::kClient, Id128{9, 2});
  Say(other, wire::StopCluster(), 1);
  EXPECT_EQ(Count<wire::Goodbye>(client_), 1u);
  EXPECT_EQ(Count<wire::Ok>(other), 1u);
}

}  // namespace
}  // namespace troupe::head
