// Totals of a cluster: what /metrics tells, counted on the head's loop a slice at a time.
//
// View: the cluster, pure. Counting 10,000 actors at once would hold the reducer up for a
// millisecond, so CountSome() looks at kRowsPerSlice of them and is called again. What changes
// between two slices is counted as it is when its slice comes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "head/core/machine/program_metrics.h"
#include "head/core/machine/turn.h"
#include "head/http/shell_watch.h"

namespace troupe::head {

inline constexpr std::size_t kRowsPerSlice = 512;

/// Amounts of one resource over all nodes that live, in ten-thousandths.
struct ResourceTotals {
  std::uint64_t total = 0;
  std::uint64_t free = 0;
  std::uint64_t missing = 0;
  std::uint64_t reserved = 0;  // by placement groups of programs, and used by nobody inside
};

struct QueueTotals {
  std::uint64_t waiting = 0;
  std::uint64_t oldest_us = 0;  // wall clock; 0: nobody waits
};

/// A living node's report of itself.
struct NodeFigures {
  NodeId id;
  std::string name;
  std::string host;                                    // the address that it listens on
  std::string machine;  // host name
  std::shared_ptr<const wire::NodeMeasures> measures;  // null: none have come
  std::shared_ptr<const wire::NodeMeasures> before;    // the ones before these; null: none
  double apart_s = 0;                                  // the time between the two
  std::vector<wire::Device> devices;
};
/// The holder of a GPU.
struct GpuOwner {
  std::string user;  // user who submitted the launch or made the actor; empty: not known
  LaunchId launch;   // nil: none
};

struct Totals {
  std::string cluster;
  std::string address;  // the head's
  std::string version;
  std::uint64_t incarnation = 0;
  Duration up{};
  std::uint64_t wall_us = 0;
  bool read_only = false;
  std::map<wire::NodeState, std::uint64_t> nodes;
  std::map<wire::ActorState, std::uint64_t> actors;
  std::map<wire::LaunchState, std::uint64_t> launches;
  std::map<wire::GroupState, std::uint64_t> placement_groups;
  std::map<std::string, std::uint64_t> jobs;  // by state, as JobStateOf() names it
  std::map<std::string, ResourceTotals> resources;
  std::map<std::string, QueueTotals> queue;  // by kind: actor, launch, placement_group
  std::vector<NodeFigures> node_figures;
  std::map<std::pair<NodeId, std::uint32_t>, GpuOwner> gpu_owners;
  ProgramMetrics::Families programs;
  ShellFigures shell;
};

/// The place where the counting goes on.
struct CountCursor {
  enum class Table : std::uint8_t { kNodes, kActors, kLaunches, kGroups, kPrograms, kEnd };
  Table table = Table::kNodes;
  Id128 after;  // the last row that was counted
  bool begun = false;
  // In the metrics of programs: the family and its series that was copied last.
  std::string family;
  ProgramMetrics::Labels series;
  bool in_family = false;
};

/// Counts the next rows. True: that was the last of them.
bool CountSome(Turn& turn, CountCursor* cursor, Totals* totals);

}  // namespace troupe::head
