// A whole head: folder, lock, journal, reducer and server, built in order and run to its end.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/status.h"

namespace troupe::head {

struct HeadOptions {
  std::string state_dir;
  std::string home;
  std::string cluster;
  std::string listen = "127.0.0.1";
  int port = 0;
  std::string socket_dir;
  int ready_fd = -1;            // gets one line of JSON: how to reach the head, or the error
  int lifeline_fd = -1;         // the head ends when this pipe does
  double certificate_days = 7;  // life of the certificates of nodes and of the head
  std::uint64_t snapshot_every = 20000;  // events
  std::uint64_t ended_max = 10000;       // launches that are over and in memory
  std::string run_secret_file;        // a `troupe run`'s: authority and tokens are derived from it
  std::string run;  // name of the run
  std::string preemption = "never";   // or "restartable": whom a higher priority may end
  std::string infeasible = "refuse";  // or "wait": what no node can hold
  double keep_hours = 8;  // time after which the first waiting group keeps a place
  double idle_gpu_minutes = 30;  // time after which a held, idle GPU is told of; 0: never
  bool local_clients = true;          // false: who connects to the Unix socket is no client by that
  bool embedded = false;              // state is thrown away: nothing is synced
};

/// Blocks until the head has ended; ok after SIGTERM, SIGINT, StopCluster or the lifeline's end. On
/// an error before it is ready the ready descriptor is told.
Status RunHead(const HeadOptions& options);

}  // namespace troupe::head
