// State shared by the parts of a worker's core. Owned by WorkerCore; references stay valid with it.
#pragma once

#include "runtime/base/random.h"
#include "worker/core/node_facts.h"
#include "worker/core/outbox.h"
#include "worker/core/process_table.h"
#include "worker/core/reservation_table.h"

namespace troupe::worker {

struct CoreContext {
  CoreContext(NodeFacts node_facts, const CoreLimits& core_limits, Random& source)
      : facts(std::move(node_facts)),
        limits(core_limits),
        random(source),
        leases(facts.capacity, facts.gpu_ids, facts.devices),
        processes(limits) {}
  CoreContext(const CoreContext&) = delete;

  NodeFacts facts;
  const CoreLimits limits;
  Random& random;
  ReservationTable leases;
  ProcessTable processes;
  Outbox outbox;
  NodeId node;  // nil until the head has named it
  ClusterId cluster;
  std::uint64_t next_ticket = 1;

  /// "<socket dir>/p<16 hex digits>": short, since a socket's path is limited.
  std::string SocketPath(ProcessId process) const {
    return facts.socket_dir + "/p" + process.Hex().substr(0, 16);
  }
};

}  // namespace troupe::worker
