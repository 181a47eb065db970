// How long the head takes to form a group anew, of 1,000 and of 10,000 ranks, 8 on each node: the
// reducer of production, with nodes and a journal in memory. Counted from the death of one rank,
// which ends as a process does, until the last node has been told of the group of those that live;
// each rank comes by a message of its own, as its node sends it. No sockets, no disk.
//   build/dev/bin/group_forming [ROUNDS]
// Prints one line of JSON for each size: milliseconds, and how many messages went each way.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "tests/head/head_fixture.h"

namespace {

using namespace troupe;
using namespace troupe::head;
using RealTime = std::chrono::steady_clock;

constexpr std::uint32_t kRanksPerNode = 8;

class Forming : public HeadFixture {
 public:
  explicit Forming(std::uint32_t ranks) : ranks_(ranks) {
    for (std::uint32_t n = 0; n < ranks / kRanksPerNode; ++n) {
      FakeNode node;
      node.id = NodeId(7, n + 1);
      node.session = Open(wire::Role::kWorker, node.id);
      wire::RegisterNode report;
      report.node = node.id;
      report.name = "node-" + std::to_string(n);
      report.resources = Amounts(kRanksPerNode);
      Say(node.session, report, 1);
      nodes_.push_back(node);
      sent_.clear();
    }
    Launch();
  }

  struct Taken {
    double ms = 0;
    std::size_t to_head = 0, from_head = 0;
  };
  /// Measures the death of the last rank that lives.
  Taken Shrink() {
    const std::uint32_t victim = --living_;
    ++group_epoch_;
    sent_.clear();
    const auto begin = RealTime::now();
    wire::RankDone done;
    done.launch = launch_;
    done.epoch = done.generation = 1;
    done.rank = victim;
    done.outcome = wire::Outcome::kFailed;
    done.failure.signal = SIGKILL;
    done.failure.cause = "it was killed by SIGKILL";
    Say(node_of_[victim]->session, done);
    Taken taken;
    std::map<const FakeNode*, std::vector<std::uint32_t>> come;
    for (std::uint32_t rank = 0; rank < living_; ++rank, ++taken.to_head) {
      wire::GroupJoined joined;
      joined.launch = launch_;
      joined.epoch = 1;
      joined.group_epoch = group_epoch_;
      come[node_of_[rank]].push_back(rank);
      joined.ranks = come[node_of_[rank]];
      joined.store_host = "10.0.0.1";
      joined.store_port = 4243;
      Say(node_of_[rank]->session, joined);
    }
    taken.ms = 1e3 * std::chrono::duration<double>(RealTime::now() - begin).count();
    taken.from_head = sent_.size();
    std::size_t told = 0;
    for (const Send& send : sent_) {
      if (const auto* form = wire::GetIf<wire::FormGroup>(&send.message.body))
        told += form->places.size();
    }
    Require(told == living_, "not every rank was told of its place");
    return taken;
  }

 private:
  void TestBody() override {}
  static void Require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "group_forming: %s\n", what);
    std::exit(1);
  }
  void Launch() {
    const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
    wire::SubmitLaunch submit;
    submit.spec.ranks = ranks_;
    submit.spec.mode = wire::LaunchMode::kDistributed;
    submit.spec.per_rank = Amounts(1);
    submit.spec.attempts_max = 1;
    submit.spec.on_rank_death = wire::RankDeath::kShrink;
    submit.spec.ranks_min = 1;
    submit.spec.reform_ms = 300'000;
    submit.request = RequestId(11, 70);
    Say(client, submit, 70);
    launch_ = Last<wire::LaunchAccepted>(client).launch;
    for (int step = 0; step < 2; ++step) {
      std::vector<Send> asked;
      asked.swap(sent_);
      for (Send& send : asked) Answer(std::move(send));
    }
    Require(LaunchOf(launch_).phase == wire::LaunchState::kRunning, "the launch does not run");
    std::map<NodeId, const FakeNode*> by_id;
    for (const FakeNode& node : nodes_) by_id[node.id] = &node;
    for (const auto& rank : LaunchOf(launch_).ranks) node_of_.push_back(by_id.at(rank.node));
    living_ = ranks_;
  }
  /// Answers an order as a node does.
  void Answer(Send send) {
    if (const auto* reserve = wire::GetIf<wire::Reserve>(&send.message.body)) {
      wire::ReserveReply reply;
      reply.group = reserve->group;
      reply.attempt = reserve->attempt;
      reply.granted = true;
      Say(send.to.session, reply);
    } else if (const auto* start = wire::GetIf<wire::StartRanks>(&send.message.body)) {
      wire::RanksReady ready;
      ready.launch = start->launch;
      ready.epoch = start->epoch;
      ready.generation = start->generation;
      ready.store_host = "10.0.0.1";
      ready.store_port = 4242;
      Say(send.to.session, ready);
    }
  }

  std::uint32_t ranks_, living_ = 0;
  std::uint64_t group_epoch_ = 1;
  std::vector<FakeNode> nodes_;
  std::vector<const FakeNode*> node_of_;  // by rank
  LaunchId launch_;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  for (const std::uint32_t ranks : {1'000u, 10'000u}) {
    Forming forming(ranks);
    std::vector<Forming::Taken> all;
    for (int round = 0; round < rounds; ++round) all.push_back(forming.Shrink());
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.ms < b.ms; });
    const auto& median = all[all.size() / 2];
    std::printf(
        "{\"ranks\": %u, \"median_ms\": %.1f, \"best_ms\": %.1f, \"worst_ms\": %.1f, "
        "\"rounds\": %d, \"messages_to_head\": %zu, \"messages_from_head\": %zu}\n",
        ranks, median.ms, all.front().ms, all.back().ms, rounds, median.to_head, median.from_head);
    std::fflush(stdout);
  }
}
