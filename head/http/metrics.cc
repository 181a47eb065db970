#include "head/http/metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace troupe::head {
namespace {

using Kind = Exposition::Kind;

/// One sample for each state that there is, those without a row included: a series must not end
/// because nobody is in that state just now.
template <class State, std::size_t kStates>
void AddStates(Exposition& text, const std::map<State, std::uint64_t>& counts,
               const State (&states)[kStates]) {
  for (const State state : states) {
    const auto found = counts.find(state);
    const double value = found == counts.end() ? 0 : static_cast<double>(found->second);
    text.Add({{"state", wire::NameOf(state)}}, value);
  }
}

void AddCluster(Exposition& text, const Totals& totals) {
  using wire::ActorState, wire::GroupState, wire::LaunchState, wire::NodeState;
  text.Begin("troupe_nodes", Kind::kGauge, "Nodes that are or were part of the cluster.");
  constexpr NodeState kNodes[] = {NodeState::kAlive, NodeState::kSuspect, NodeState::kDraining,
                                  NodeState::kDead};
  AddStates(text, totals.nodes, kNodes);
  text.Begin("troupe_actors", Kind::kGauge, "Actors, the dead ones that are remembered included.");
  constexpr ActorState kActors[] = {ActorState::kPending, ActorState::kStarting, ActorState::kAlive,
                                    ActorState::kUnavailable, ActorState::kDead};
  AddStates(text, totals.actors, kActors);
  text.Begin("troupe_launches", Kind::kGauge, "Launches, those that ended and are kept included.");
  constexpr LaunchState kLaunches[] = {LaunchState::kQueued,   LaunchState::kReserving,
                                       LaunchState::kStarting, LaunchState::kRunning,
                                       LaunchState::kStopping, LaunchState::kTerminal};
  AddStates(text, totals.launches, kLaunches);
  text.Begin("troupe_placement_groups", Kind::kGauge, "Placement groups made by programs.");
  constexpr GroupState kGroups[] = {GroupState::kPending, GroupState::kCreated,
                                    GroupState::kRescheduling, GroupState::kRemoved,
                                    GroupState::kInfeasible};
  AddStates(text, totals.placement_groups, kGroups);
}

void AddResources(Exposition& text, const Totals& totals) {
  text.Begin("troupe_resources", Kind::kGauge,
             "Resources of the living nodes: free, used, or missing though nobody holds them.");
  for (const auto& [name, each] : totals.resources) {
    const auto units = [](std::uint64_t ten_thousandths) {
      return static_cast<double>(ten_thousandths) / 10000;
    };
    const std::uint64_t there = std::min(each.total, each.free + each.missing);
    text.Add({{"resource", name}, {"state", "free"}}, units(each.free));
    text.Add({{"resource", name}, {"state", "used"}}, units(each.total - there));
    text.Add({{"resource", name}, {"state", "missing"}}, units(each.missing));
  }
}

void AddQueue(Exposition& text, const Totals& totals) {
  constexpr const char* kKinds[] = {"actor", "launch", "placement_group"};
  const auto of = [&](const char* kind) {
    const auto found = totals.queue.find(kind);
    return found == totals.queue.end() ? QueueTotals() : found->second;
  };
  text.Begin("troupe_queue_waiting", Kind::kGauge, "Requests that wait for a place.");
  for (const char* kind : kKinds) text.Add({{"kind", kind}}, static_cast<double>(of(kind).waiting));
  text.Begin("troupe_queue_oldest_seconds", Kind::kGauge,
             "For how long the oldest request in the queue has waited.");
  for (const char* kind : kKinds) {
    const std::uint64_t since_us = of(kind).oldest_us;
    const bool waits = since_us != 0 && since_us < totals.wall_us;
    text.Add({{"kind", kind}}, waits ? static_cast<double>(totals.wall_us - since_us) / 1e6 : 0);
  }
}

void AddHead(Exposition& text, const Totals& totals) {
  text.Begin("troupe_build_info", Kind::kGauge, "The version of the head.");
  text.Add({{"version", totals.version}}, 1);
  text.Begin("troupe_head_incarnation", Kind::kGauge, "How many times the head was started.");
  text.Add({}, static_cast<double>(totals.incarnation));
  text.Begin("troupe_head_up_seconds", Kind::kGauge, "Time since the head started.");
  text.Add({}, Seconds(totals.up));
  text.Begin("troupe_journal_read_only", Kind::kGauge,
             "1 while the disk is full: what is new is refused, what runs may end.");
  text.Add({}, totals.read_only ? 1 : 0);
  text.Begin("troupe_reducer_step_seconds", Kind::kHistogram,
             "Time of one step of the head's reducer.");
  text.Add({}, totals.shell.reducer_step);
  text.Begin("troupe_journal_commit_seconds", Kind::kHistogram,
             "Time until a batch of the journal was durable.");
  text.Add({}, totals.shell.journal_commit);
}

std::size_t OpenDescriptors() {
  std::error_code error;
  std::filesystem::directory_iterator each("/proc/self/fd", error);
  std::size_t count = 0;
  while (!error && each != std::filesystem::directory_iterator()) {
    ++count;
    each.increment(error);
  }
  return count;
}

/// The names of Prometheus's client libraries for every process.
void AddProcess(Exposition& text) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  text.Begin("process_cpu_seconds_total", Kind::kCounter, "Processor time of the head.");
  text.Add({}, seconds(used.ru_utime) + seconds(used.ru_stime));
  std::ifstream statm("/proc/self/statm");
  std::uint64_t pages = 0, resident_pages = 0;
  if (statm >> pages >> resident_pages) {
    const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
    text.Begin("process_virtual_memory_bytes", Kind::kGauge, "Virtual memory of the head.");
    text.Add({}, static_cast<double>(pages) * page_bytes);
    text.Begin("process_resident_memory_bytes", Kind::kGauge, "Resident memory of the head.");
    text.Add({}, static_cast<double>(resident_pages) * page_bytes);
  }
  text.Begin("process_open_fds", Kind::kGauge, "Open file descriptors of the head.");
  text.Add({}, static_cast<double>(OpenDescriptors()));
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  text.Begin("process_max_fds", Kind::kGauge, "The head's limit of file descriptors.");
  text.Add({}, static_cast<double>(limit.rlim_cur));
}

}  // namespace

std::string FormatMetrics(const Totals& totals, Exposition::Format format) {
  Exposition text(format);
  AddCluster(text, totals);
  AddResources(text, totals);
  AddQueue(text, totals);
  AddHead(text, totals);
  AddProcess(text);
  return text.Finish();
}

}  // namespace troupe::head
