#include "head/core/nodes/node_views.h"

#include <cstdio>

#include "head/core/machine/wire_convert.h"
#include "head/core/nodes/node_measures.h"

namespace troupe::head {

std::string WhatItsWorkerDoes(const Node& node) {
  const std::string whose = ": its worker (process " + std::to_string(node.info.pid) + ") ";
  switch (node.worker_state) {
    case 'R':
      return whose + "runs, or waits for a processor";
    case 'D':
      return whose + "waits for a disk";
    case 'T':
    case 't':
      return whose + "is stopped";
    case 'S':
      return node.held_up_at == Instant() ? "" : whose + "waits for something in the system";
    default:
      return "";
  }
}

std::string WhatIsWrong(const Turn& turn, const Node& node) {
  if (node.dead) return node.why;
  if (!node.reported) return "not heard of since the head's restart";
  if (!node.suspect && node.draining) return node.why;
  if (!node.suspect && node.leaving) return "its worker was told to end";
  if (!node.suspect) return node.session.IsNil() ? "disconnected" : "";
  char text[64];
  std::snprintf(text, sizeof text, "not heard of for %.1f s", Seconds(turn.now - node.last_heard));
  return text + WhatItsWorkerDoes(node);
}

bool IsThere(const Node& node) {
  return !node.dead && node.reported && !node.draining && !node.session.IsNil();
}

Resources FreeOf(const Node& node) {
  Resources free = node.total;
  free.Subtract(node.missing);
  free.Subtract(node.holdings.taken());
  return free;
}

wire::NodeState StateOf(const Node& node) {
  return node.dead                        ? wire::NodeState::kDead
         : node.suspect || !node.reported ? wire::NodeState::kSuspect
         : node.draining || node.leaving  ? wire::NodeState::kDraining
                                          : wire::NodeState::kAlive;
}

wire::NodeInfo InfoOf(const Turn& turn, const Node& node) {
  wire::NodeInfo info;
  info.node = node.id;
  info.name = node.name;
  info.host = node.info.host;
  info.state = StateOf(node);
  info.incarnation = node.incarnation;
  info.listen_host = node.info.listen_host;
  info.listen_port = node.info.listen_port;
  info.unix_path = node.info.unix_path;
  info.boot_id = node.info.boot_id;
  info.pid = node.info.pid;
  info.resources = node.info.resources;
  if (!node.dead) info.free = ToWire(FreeOf(node));
  info.labels = node.info.labels;
  info.devices = node.info.devices;
  if (turn.now > node.last_heard) {
    info.heard_ms = static_cast<std::uint64_t>(Millis(turn.now - node.last_heard));
  }
  info.python_version = node.info.python_version;
  info.zygote_ready = node.zygote_ready;
  info.preimports = node.preimports;
  info.why = WhatIsWrong(turn, node);
  if (info.why.empty()) info.why = IdleGpusOf(turn, node);
  return info;
}

}  // namespace troupe::head
