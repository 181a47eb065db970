#include "head/http/metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "head/http/node_metrics.h"
#include "head/http/program_text.h"
#include "head/http/ray_metrics.h"

namespace troupe::head {
namespace {

/// Adds a sample for each state, those without a row included: a series must not end because nobody
/// is in that state just now.
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
  text.Begin("troupe_nodes", FamilyKind::kGauge, "Nodes that are or were part of the cluster.");
  constexpr NodeState kNodes[] = {NodeState::kAlive, NodeState::kSuspect, NodeState::kDraining,
                                  NodeState::kDead};
  AddStates(text, totals.nodes, kNodes);
  text.Begin("troupe_actors", FamilyKind::kGauge,
             "Actors, the dead ones that are remembered included.");
  constexpr ActorState kActors[] = {ActorState::kPending, ActorState::kStarting, ActorState::kAlive,
                                    ActorState::kUnavailable, ActorState::kDead};
  AddStates(text, totals.actors, kActors);
  text.Begin("troupe_launches", FamilyKind::kGauge,
             "Launches, those that ended and are kept included.");
  constexpr LaunchState kLaunches[] = {LaunchState::kQueued,   LaunchState::kReserving,
                                       LaunchState::kStarting, LaunchState::kRunning,
                                       LaunchState::kStopping, LaunchState::kTerminal};
  AddStates(text, totals.launches, kLaunches);
  text.Begin("troupe_jobs", FamilyKind::kGauge, "Jobs, those that ended and are kept included.");
  for (const char* state : {"QUEUED", "STARTING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPED"}) {
    const auto found = totals.jobs.find(state);
    text.Add({{"state", state}},
             found == totals.jobs.end() ? 0 : static_cast<double>(found->second));
  }
  text.Begin("troupe_placement_groups", FamilyKind::kGauge, "Placement groups made by programs.");
  constexpr GroupState kGroups[] = {GroupState::kPending, GroupState::kCreated,
                                    GroupState::kRescheduling, GroupState::kRemoved,
                                    GroupState::kInfeasible};
  AddStates(text, totals.placement_groups, kGroups);
}

void AddResources(Exposition& text, const Totals& totals) {
  text.Begin(
      "troupe_resources", FamilyKind::kGauge,
      "Resources of the living nodes: free, used, reserved by a placement group that does not "
      "use them, or missing though nobody holds them.");
  for (const auto& [name, each] : totals.resources) {
    const auto units = [](std::uint64_t ten_thousandths) {
      return static_cast<double>(ten_thousandths) / 10000;
    };
    const std::uint64_t there = std::min(each.total, each.free + each.missing);
    const std::uint64_t held = each.total - there;
    const std::uint64_t reserved = std::min(held, each.reserved);
    text.Add({{"resource", name}, {"state", "free"}}, units(each.free));
    text.Add({{"resource", name}, {"state", "used"}}, units(held - reserved));
    text.Add({{"resource", name}, {"state", "reserved"}}, units(reserved));
    text.Add({{"resource", name}, {"state", "missing"}}, units(each.missing));
  }
}

void AddQueue(Exposition& text, const Totals& totals) {
  constexpr const char* kKinds[] = {"actor", "launch", "placement_group"};
  const auto of = [&](const char* kind) {
    const auto found = totals.queue.find(kind);
    return found == totals.queue.end() ? QueueTotals() : found->second;
  };
  text.Begin("troupe_queue_waiting", FamilyKind::kGauge, "Requests that wait for a place.");
  for (const char* kind : kKinds) text.Add({{"kind", kind}}, static_cast<double>(of(kind).waiting));
  text.Begin("troupe_queue_oldest_seconds", FamilyKind::kGauge,
             "For how long the oldest request in the queue has waited.");
  for (const char* kind : kKinds) {
    const std::uint64_t since_us = of(kind).oldest_us;
    const bool waits = since_us != 0 && since_us < totals.wall_us;
    text.Add({{"kind", kind}}, waits ? static_cast<double>(totals.wall_us - since_us) / 1e6 : 0);
  }
}

void AddCounts(Exposition& text, const char* name, const char* help, const CountsByCause& counts) {
  text.Begin(name, FamilyKind::kCounter, help);
  for (const auto& [key, count] : counts)
    text.Add({{"kind", key.first}, {"cause", key.second}}, static_cast<double>(count));
}

void AddEvents(Exposition& text, const ClusterCounts& counts) {
  AddCounts(text, "troupe_process_exits_total",
            "Ends of ranks and actors since the head started, by why they ended.",
            counts.process_exits);
  AddCounts(text, "troupe_nodes_lost_total",
            "Nodes that are gone: left when told to, ended, or silent for too long.",
            counts.nodes_lost);
  AddCounts(text, "troupe_restarts_total",
            "Actors, ranks and launches that were started again, by why the one before ended.",
            counts.restarts);
  AddCounts(text, "troupe_preemptions_total",
            "Launches and actors that were ended for a higher priority.", counts.preemptions);
  text.Begin("troupe_launch_ready_seconds", FamilyKind::kHistogram,
             "Time from a launch's start on its nodes until all of its ranks were ready.");
  text.Add({}, counts.launch_ready);
}

double JournalBytes(const std::string& folder) {
  double bytes = 0;
  for (const char* name : {"/journal.db", "/journal.db-wal"}) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(folder + name, error);
    if (!error) bytes += static_cast<double>(size);
  }
  return bytes;
}

void AddHead(Exposition& text, const Totals& totals) {
  text.Begin("troupe_build_info", FamilyKind::kGauge, "The version of the head.");
  text.Add({{"version", totals.version}}, 1);
  text.Begin("troupe_head_incarnation", FamilyKind::kGauge, "How many times the head was started.");
  text.Add({}, static_cast<double>(totals.incarnation));
  text.Begin("troupe_head_up_seconds", FamilyKind::kGauge, "Time since the head started.");
  text.Add({}, Seconds(totals.up));
  text.Begin("troupe_journal_read_only", FamilyKind::kGauge,
             "1 while the disk is full: what is new is refused, what runs may end.");
  text.Add({}, totals.read_only ? 1 : 0);
  text.Begin("troupe_reducer_step_seconds", FamilyKind::kHistogram,
             "Time of one step of the head's reducer.");
  text.Add({}, totals.shell.reducer_step);
  text.Begin("troupe_journal_commit_seconds", FamilyKind::kHistogram,
             "Time until a batch of the journal was durable.");
  text.Add({}, totals.shell.journal_commit);
  text.Begin("troupe_marker_commit_seconds", FamilyKind::kHistogram,
             "Time from the decision on a launch's outcome until that was durable.");
  text.Add({}, totals.shell.marker_commit);
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
  text.Begin("process_cpu_seconds_total", FamilyKind::kCounter, "Processor time of the head.");
  text.Add({}, seconds(used.ru_utime) + seconds(used.ru_stime));
  std::ifstream statm("/proc/self/statm");
  std::uint64_t pages = 0, resident_pages = 0;
  if (statm >> pages >> resident_pages) {
    const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
    text.Begin("process_virtual_memory_bytes", FamilyKind::kGauge, "Virtual memory of the head.");
    text.Add({}, static_cast<double>(pages) * page_bytes);
    text.Begin("process_resident_memory_bytes", FamilyKind::kGauge, "Resident memory of the head.");
    text.Add({}, static_cast<double>(resident_pages) * page_bytes);
  }
  text.Begin("process_open_fds", FamilyKind::kGauge, "Open file descriptors of the head.");
  text.Add({}, static_cast<double>(OpenDescriptors()));
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  text.Begin("process_max_fds", FamilyKind::kGauge, "The head's limit of file descriptors.");
  text.Add({}, static_cast<double>(limit.rlim_cur));
}

}  // namespace

StatusOr<MetricsQuery> ReadMetricsQuery(const std::map<std::string, std::string>& parameters) {
  MetricsQuery query;
  for (const auto& [name, value] : parameters) {
    if (name == "scope") {
      if (value != "head" && value != "cluster")
        return MakeError(ErrorCode::kInvalid, "scope must be head or cluster");
      query.nodes = value == "cluster";
      continue;
    }
    if (name != "names")
      return MakeError(ErrorCode::kInvalid, "the parameters of /metrics are scope and names");
    for (std::size_t begin = 0; begin <= value.size();) {
      const std::size_t end = std::min(value.find(',', begin), value.size());
      const std::string one = value.substr(begin, end - begin);
      begin = end + 1;
      if (one != "dcgm" && one != "ray")
        return MakeError(ErrorCode::kInvalid, "names must be dcgm, ray, or both with a comma");
      (one == "dcgm" ? query.dcgm : query.ray) = true;
    }
  }
  return query;
}

std::string FormatMetrics(const Totals& totals, Exposition::Format format,
                          const MetricsQuery& query, const std::string& journal_folder) {
  Exposition text(format);
  AddCluster(text, totals);
  AddResources(text, totals);
  AddQueue(text, totals);
  AddEvents(text, totals.shell.cluster);
  AddHead(text, totals);
  if (!journal_folder.empty()) {
    text.Begin("troupe_journal_bytes", FamilyKind::kGauge, "Size of the journal's files.");
    text.Add({}, JournalBytes(journal_folder));
  }
  AddProcess(text);
  if (query.nodes) {
    const MeasuresByKind measures = SortMeasures(totals);
    AddNodeMetrics(text, totals, measures);
    AddProgramMetrics(text, totals.programs);
    if (query.dcgm) AddDcgmMetrics(text, measures);
    if (query.ray) {
      AddRayMetrics(text, totals, measures);
      AddProgramMetricsAsRay(text, totals.programs);
    }
  }
  return text.Finish();
}

}  // namespace troupe::head
