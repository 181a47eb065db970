// Method: a year of use passes on the head's clocks: each day nodes come and go, launches, actors,
// groups and values end, tokens are made and used. What the head has in memory at the end of the
// year is bounded by its limits, not by the year. The test is its archive and says that all is
// written.
#include <algorithm>

#include "head/core/machine/lived_time.h"
#include "head/core/machine/snapshot.h"
#include "head/core/nodes/roster.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

using namespace std::chrono_literals;

class Year : public HeadFixture {
 protected:
  static constexpr int kDays = 365;
  static constexpr int kLaunchesADay = 30;
  static constexpr int kActorsADay = 6;
  static constexpr int kNodesADay = 5;
  static constexpr std::size_t kEndedMax = 100;

  Year() {
    options_.archives = true;
    options_.ended_max = kEndedMax;
    Boot();
    node_ = Join(1, 8);
    client_ = Open(wire::Role::kClient, Id128(9, 9), true);
  }
  /// Removes entries that have no end: sent messages, and rows that a snapshot stands for.
  void Tidy() {
    sent_.clear();
    closed_.clear();
    probes_.clear();
    looks_.clear();
    if (archived_.empty()) return;
    Archived done;
    done.durable = true;
    for (const EndedRecord& record : archived_) done.launches.push_back(record.launch);
    written_ += archived_.size();
    archived_.clear();
    Feed(done);
  }
  /// The node is heard all the time; nobody waits for each heartbeat.
  void Pass(Duration time) {
    for (const Instant end = now_ + time; now_ < end;) {
      now_ = end;
      Say(node_.session, wire::Heartbeat());
      wake_at_.reset();
      Feed(Tick());
    }
  }
  void RunALaunch() {
    timeout_ms_ = 3600 * 1000;
    const LaunchId launch = Submit(client_, 1);
    Serve(node_);
    Serve(node_);
    Finish(node_, launch, 0);
    Serve(node_);
  }
  void RunAnActor() {
    wire::CreateActor create;
    create.spec.actor = ActorId(21, ++actors_);
    create.spec.name = "actor-" + std::to_string(actors_);
    create.spec.class_name = "Counter";
    create.spec.resources = Amounts(1);
    Say(client_, create, 10'000 + actors_);
    Grant(node_);
    StartActors(node_);
    wire::KillActor kill;
    kill.actor = create.spec.actor;
    Say(client_, kill, 20'000 + actors_);
    wire::ActorEnded ended;
    ended.actor = create.spec.actor;
    ended.incarnation = 1;
    Say(node_.session, ended);
    Serve(node_);
  }
  void ANodeComesAndGoes() {
    const NodeId id(8, ++nodes_);
    const SessionId session = Open(wire::Role::kWorker, id);
    wire::RegisterNode node;
    node.node = id;
    node.name = "passing-" + std::to_string(nodes_);
    Say(session, node, 1);
    wire::Goodbye goodbye;
    Say(session, goodbye);
    Feed(SessionClosed{session});
    EXPECT_LE(core_->state().dead_nodes.size(), kDeadNodesMax) << "at once";
  }
  void ADay() {
    for (int i = 0; i < kLaunchesADay; ++i) RunALaunch();
    for (int i = 0; i < kActorsADay; ++i) RunAnActor();
    for (int i = 0; i < kNodesADay; ++i) ANodeComesAndGoes();
    wire::CreateToken token;
    token.role = wire::Role::kClient;
    token.ttl_s = 3600;
    Say(client_, token, 7);
    for (int i = 0; i < 24; ++i) Pass(1h);
    Tidy();
  }

  FakeNode node_;
  SessionId client_;
  std::uint64_t actors_ = 0;
  std::uint64_t nodes_ = 0;
  std::uint64_t written_ = 0;
};

TEST_F(Year, MemoryIsBoundedByLimitsAndNotByWhatHasBeen) {
  for (int day = 0; day < kDays; ++day) {
    ADay();
    if (day % 30 == 29) durable_ = SnapshotOf(core_->state());
  }
  const State& state = core_->state();
  EXPECT_LE(state.launches.size(), kEndedMax);
  EXPECT_EQ(state.ended.size(), state.launches.size());
  EXPECT_EQ(state.requests.size(), state.launches.size());
  EXPECT_LE(state.tombstones.size(), kTombstonesMax);
  EXPECT_EQ(state.tombstones.size(), state.tombstone_order.size());
  EXPECT_LE(state.actors.size(), options_.dead_actors_max);
  EXPECT_LE(state.former_names.size(), state.actors.size());
  EXPECT_TRUE(state.names.empty());
  EXPECT_LE(state.nodes.size(), kDeadNodesMax + 1);
  EXPECT_EQ(state.node_names.size(), 1u);
  EXPECT_LE(state.node_keys.size(), kNodeKeysMax);
  EXPECT_LE(state.groups.size(), 1000u);
  EXPECT_LE(state.tokens.size(), 3u);
  EXPECT_LE(state.owners.size(), 1u);
  EXPECT_LE(state.sessions.size(), 2u);
  EXPECT_TRUE(state.rank_processes.empty());
  EXPECT_TRUE(state.output_routes.empty());
  EXPECT_LE(state.history.notes().size(), EventHistory::kNotesMax);
  EXPECT_LE(state.timers.size(), 100u);
  EXPECT_EQ(state.waits.size(), 0u);
  EXPECT_LE(state.nodes.at(node_.id).holdings.size(), 1u);
  // Launches that left memory by their number went to the archive; by the retention, in its time.
  EXPECT_GT(written_, 0u);

  const std::size_t rows = SnapshotOf(state).size();
  EXPECT_LE(rows, 1 + state.nodes.size() + state.node_keys.size() + state.groups.size() +
                      2 * state.launches.size() + state.tombstones.size() + state.actors.size() +
                      state.tokens.size() + 20);
}

}  // namespace
}  // namespace troupe::head
