// Facts of its node that a worker's core is given once: identity, resources, paths, limits.
//
// Values and two functions of the environment, so that the core itself asks nothing of the system.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/time.h"
#include "runtime/wire/messages.h"
#include "worker/core/amounts.h"

namespace troupe::worker {

/// A network interface of this node and its numeric address.
struct Interface {
  std::string name;
  std::string address;
};

struct NodeFacts {
  std::string name;
  std::string host;
  std::string boot_id;
  std::string listen_host;
  std::uint16_t listen_port = 0;
  std::string unix_path;
  std::string socket_dir;      // processes' sockets, short: 108 bytes is the limit
  std::string result_dir;      // values larger than a frame
  std::string trace_dir;       // rings of spans, one file a process; empty: none
  std::string head_address;    // TROUPE_ADDRESS of every process
  std::string python_version;  // "3.11"; empty until the zygote tells
  std::int32_t pid = 0;
  Amounts capacity;
  std::vector<std::uint32_t> gpu_ids;
  std::map<std::uint32_t, std::string> gpu_tokens;  // id -> entry of CUDA_VISIBLE_DEVICES
  std::vector<wire::Label> labels;
  std::vector<wire::Device> devices;
  std::set<std::string> nccl_file_names;  // names set by this host's nccl.conf
  std::vector<wire::EnvVar> base_environment;  // filtered already, see BaseEnvironment
  /// The interface whose address reaches these hosts; loopback for none of them or for loopback.
  std::function<Interface(const std::vector<std::string>& peers)> choose_interface;
  std::function<std::string(std::string_view)> sha256;
};

struct CoreLimits {
  std::size_t inline_value_bytes_max = 1u << 20;  // a larger one is kept here (decision 15)
  std::size_t kept_value_bytes_max = 256u << 20;
  std::size_t relayed_bytes_max = 64u << 20;             // requests that wait for the head
  Duration ask_grace = std::chrono::milliseconds(200);   // ProcessEnd -> SIGTERM
  Duration term_grace = std::chrono::milliseconds(200);  // SIGTERM -> SIGKILL
  // a rank's own exit grace is over -> SIGKILL
  Duration leave_margin = std::chrono::seconds(5);
  // code of ranks whose node leaves: SIGTERM -> SIGKILL
  Duration drain_grace = std::chrono::seconds(10);
  Duration repeat_every = std::chrono::seconds(2);  // unacknowledged RankDone
  // recreatable actors without a head; ranks that are done leave
  Duration fence_after = std::chrono::seconds(60);
};

}  // namespace troupe::worker
