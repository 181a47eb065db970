#include "head/http/tally.h"

namespace troupe::head {
namespace {

// Kinds and causes that are no values of an enum.
constexpr char kRank[] = "rank", kActor[] = "actor", kLaunch[] = "launch", kNode[] = "node";
constexpr char kFinished[] = "finished", kDied[] = "died", kPriority[] = "priority";
constexpr char kLeft[] = "left", kEnded[] = "ended", kSilent[] = "silent";

}  // namespace

class Tally::Events {
 public:
  Events(ClusterCounts& counts, const State& state) : counts_(counts), state_(state) {}

  void operator()(const wire::RankFinished& event) {
    const bool finished = event.done.outcome == wire::Outcome::kSucceeded;
    Count(counts_.process_exits, kRank, finished ? kFinished : NameOf(event.done.failure.kind));
  }
  void operator()(const wire::ActorDied& event) {
    const char* cause = NameOf(event.failure.kind);
    Count(counts_.process_exits, kActor, cause);
    if (event.restart) Count(counts_.restarts, kActor, cause);
    if (event.failure.kind == wire::FailureKind::kPreempted)
      Count(counts_.preemptions, kActor, kPriority);
  }
  void operator()(const wire::EpochBegun& event) {
    if (event.epoch < 2) return;
    const auto launch = state_.launches.find(event.launch);
    const bool known = launch != state_.launches.end();
    Count(counts_.restarts, kLaunch,
          NameOf(known ? launch->second.last_failure.kind : wire::FailureKind::kUnknown));
  }
  void operator()(const wire::RankReplaced&) { Count(counts_.restarts, kRank, kDied); }
  void operator()(const wire::EpochFailed& event) {
    if (event.preempted) Count(counts_.preemptions, kLaunch, kPriority);
  }
  void operator()(const wire::RosterPublished& event) {
    counts_.launch_ready.Add(std::chrono::milliseconds(event.ready_ms));
  }
  void operator()(const wire::NodeDied& event) {
    const auto node = state_.nodes.find(event.node);
    const bool left = node != state_.nodes.end() && (node->second.draining || node->second.leaving);
    Count(counts_.nodes_lost, kNode, left ? kLeft : event.ended ? kEnded : kSilent);
  }
  template <class Other>
  void operator()(const Other&) {}

 private:
  static const char* NameOf(wire::FailureKind kind) { return wire::NameOf(kind); }
  static void Count(CountsByCause& counts, std::string_view kind, std::string_view cause) {
    ++counts[{kind, cause}];
  }

  ClusterCounts& counts_;
  const State& state_;
};

void Tally::OnStep(const std::vector<Row>& rows, const State& state) {
  for (const Row& row : rows) wire::Visit(Events(counts_, state), row.event.body);
}

}  // namespace troupe::head
