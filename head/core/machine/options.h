// Options of the head's reducer; one struct, given once, printed at start.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/time.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

/// The groups that a waiting request with a higher priority may end.
enum class Preemption : std::uint8_t {
  kNever,        // nobody: priorities are the order of the queue
  kRestartable,  // restartable ones: launches with attempts, actors with restarts
};

struct CoreOptions {
  ClusterId cluster;
  std::string address;  // host:port, shown by status
  std::string version = "0.1.0";
  int pid = 0;
  std::string boot_id;  // nodes with the same are on this host; empty: none is

  Duration heartbeat = std::chrono::milliseconds(500);
  /// How often nodes say what they and their devices are doing (NodeMeasures).
  Duration measures_every = std::chrono::seconds(5);
  /// A GPU that is held and idle for so long is told of (metrics/idle_gpus.h); zero: never.
  Duration idle_gpu_after = std::chrono::minutes(30);
  Duration suspect_after = std::chrono::seconds(2);
  Duration dead_after = std::chrono::seconds(5);
  /// Silence after which an actor that may be re-created elsewhere is (decision 19), and after
  /// which nodes are lost that fell silent all together, or that still answer their peers: until
  /// then it may be this head's own network.
  Duration recreate_after = std::chrono::seconds(75);
  /// Other nodes that are asked whether a silent one answers them, and how long they have for it. A
  /// peer dials for 2 s.
  std::size_t peers_asked = 3;
  Duration peers_answer = std::chrono::seconds(3);
  /// From the first node that is heard after all were silent: what the others have to come back. A
  /// dial that began in the outage may take as long.
  Duration return_grace = std::chrono::seconds(15);
  Duration driver_lease = std::chrono::seconds(5);
  Duration cancel_grace = std::chrono::seconds(5);
  /// How long a remote client may be away before what it owns ends; local ones have none.
  Duration client_grace = std::chrono::seconds(5);
  /// How long any owner may be away after the head itself was, before what it owns ends.
  Duration restart_grace = std::chrono::seconds(30);
  Duration retry_first = std::chrono::milliseconds(50);
  Duration retry_max = std::chrono::seconds(2);
  /// A late wake-up by more than this was the head's own fault, and so was what waited longer for
  /// its disk: every lease is extended by it.
  Duration lag_max = std::chrono::milliseconds(500);
  std::uint64_t retention_us = 7ull * 24 * 3600 * 1'000'000;
  std::size_t dead_actors_max = 1000;
  /// True if the shell has an archive; without one ended launches stay in memory for the retention.
  bool archives = false;
  /// Launches that are over and in memory (archive_records.h).
  std::size_t ended_max = 10'000;
  /// For so long after the end of its launch a submission may be repeated by who got no answer.
  std::uint64_t repeats_us = 60'000'000;
  /// Submissions whose launches moved to the archive within that time before this start.
  std::vector<RequestId> moved;
  std::uint32_t ranks_max = 65536;
  Preemption preemption = Preemption::kNever;
  /// True if a request that no node can hold waits for one that joins, whether or not its maker
  /// asks for that.
  bool infeasible_waits = false;
  /// Time after which the first waiting group keeps a place; until then any fitting group goes.
  Duration keep_after = std::chrono::hours(8);
  /// An owner whose first request has waited so long, while none of their first ones was granted,
  /// goes before owners who have held less.
  Duration passed_over_max = std::chrono::hours(24);
  /// The name of the user that this head runs as.
  std::string user;
  /// Good without having been made here: derived by every node from a secret they share.
  std::vector<wire::TokenWritten> tokens;
};

}  // namespace troupe::head
