#include "worker/core/environment.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include "placement/fabric.h"

namespace troupe::worker {
namespace {

using Variables = std::map<std::string, std::string>;

constexpr char kVisible[] = "CUDA_VISIBLE_DEVICES";
constexpr char kOrder[] = "CUDA_DEVICE_ORDER";
constexpr char kNcclInterface[] = "NCCL_SOCKET_IFNAME";
constexpr char kNcclPorts[] = "NCCL_IB_HCA";
// Variable of programs that choose a device themselves
constexpr char kRayLeavesIt[] = "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES";

constexpr std::array<std::string_view, 22> kNotInherited = {"RANK",
                                                            "LOCAL_RANK",
                                                            "NODE_RANK",
                                                            "GROUP_RANK",
                                                            "WORLD_SIZE",
                                                            "LOCAL_WORLD_SIZE",
                                                            "GROUP_WORLD_SIZE",
                                                            "ROLE_RANK",
                                                            "ROLE_WORLD_SIZE",
                                                            "ROLE_NAME",
                                                            "MASTER_ADDR",
                                                            "MASTER_PORT",
                                                            "TROUPE_TOKEN",
                                                            "TROUPE_TOKEN_FILE",
                                                            "TROUPE_EPOCH",
                                                            "TROUPE_LAUNCH_ID",
                                                            "TROUPE_ADDRESS",
                                                            "NOTIFY_SOCKET",
                                                            "WATCHDOG_USEC",
                                                            "WATCHDOG_PID",
                                                            "TROUPE_PROCESS_ID",
                                                            "TROUPE_TRACE_DIR"};

Variables Inherited(const NodeFacts& facts, const wire::RuntimeEnvironment& environment) {
  Variables variables;
  for (const wire::EnvVar& each : facts.base_environment) variables[each.name] = each.value;
  for (const wire::EnvVar& each : environment.env) variables[each.name] = each.value;
  variables.erase(placement::kStorePeersVariable);
  return variables;
}

// The devices are counted as NVIDIA's management library does, by their place on the bus, and CUDA
// counts the fastest first unless it is told. The entries of a mask that the worker itself was
// given are in the order of whoever gave it.
void SetDevices(const NodeFacts& facts, const std::vector<std::uint32_t>& gpu_ids,
                Variables* variables) {
  const bool narrowed = std::any_of(facts.base_environment.begin(), facts.base_environment.end(),
                                    [](const wire::EnvVar& each) { return each.name == kVisible; });
  if (!narrowed) variables->emplace(kOrder, "PCI_BUS_ID");
  (*variables)[kVisible] = VisibleDevices(facts, gpu_ids);
}

// By what NCCL and Gloo reach the other nodes. A file that this host has for NCCL is its
// administrator's word, and a variable would be read before it. NCCL takes a name for the beginning
// of names ("bond0" for "bond0.100" too) unless "=" stands before it.
void SetNetworks(const NodeFacts& facts, const Interface& interface, Variables* variables) {
  const auto is_said = [&](const char* name) { return facts.nccl_file_names.count(name) > 0; };
  if (!is_said(kNcclInterface)) variables->emplace(kNcclInterface, "=" + interface.name);
  variables->emplace("GLOO_SOCKET_IFNAME", interface.name);
  const auto ports = variables->find(placement::kRdmaPortsVariable);
  if (ports == variables->end()) return;
  if (!is_said(kNcclPorts)) variables->emplace(kNcclPorts, ports->second);
  variables->erase(placement::kRdmaPortsVariable);
}

// Returns true if the process is to see the devices that its worker sees, or that its program
// names.
bool LeavesDevices(const Variables& variables) {
  const auto found = variables.find(kRayLeavesIt);
  return found != variables.end() && !found->second.empty() && found->second != "0";
}

void Common(const NodeFacts& facts, ProcessId process, const LaunchId& launch, std::uint64_t epoch,
            std::uint32_t threads, Variables* variables) {
  (*variables)["TROUPE_ADDRESS"] = facts.head_address;
  (*variables)["RAY_ADDRESS"] = facts.head_address;
  (*variables)[kProcessVariable] = process.Hex();
  if (!facts.trace_dir.empty()) (*variables)[kTraceVariable] = facts.trace_dir;
  if (!launch.IsNil()) {
    (*variables)["TROUPE_LAUNCH_ID"] = launch.Hex();
    (*variables)["TROUPE_EPOCH"] = std::to_string(epoch);
  }
  variables->emplace("OMP_NUM_THREADS", std::to_string(threads));
}

std::vector<wire::EnvVar> ToWire(const Variables& variables) {
  std::vector<wire::EnvVar> list;
  for (const auto& [name, value] : variables) {
    wire::EnvVar each;
    each.name = name;
    each.value = value;
    list.push_back(std::move(each));
  }
  return list;
}

}  // namespace

std::vector<wire::EnvVar> BaseEnvironment(const std::vector<std::string>& entries) {
  Variables variables;
  for (const std::string& entry : entries) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    const std::string name = entry.substr(0, equals);
    const bool ours =
        std::find(kNotInherited.begin(), kNotInherited.end(), name) != kNotInherited.end() ||
        name.rfind("TORCHELASTIC_", 0) == 0;
    if (!ours) variables[name] = entry.substr(equals + 1);
  }
  return ToWire(variables);
}

std::vector<wire::EnvVar> RankEnvironment(const NodeFacts& facts, const wire::StartRanks& start,
                                          const wire::RankPlace& place, const Interface& interface,
                                          ProcessId process) {
  Variables variables = Inherited(facts, start.environment);
  Common(facts, process, start.launch, start.epoch, ThreadsFor(start.per_rank), &variables);
  SetDevices(facts, start.gpu_ids, &variables);
  SetNetworks(facts, interface, &variables);
  const std::string rank = std::to_string(place.rank);
  const std::string world = std::to_string(start.world_size);
  const std::string node = std::to_string(start.node_rank);
  variables["RANK"] = rank;
  variables["LOCAL_RANK"] = std::to_string(place.local_rank);
  variables["NODE_RANK"] = node;
  variables["GROUP_RANK"] = node;
  variables["GROUP_WORLD_SIZE"] = std::to_string(start.node_count);
  variables["WORLD_SIZE"] = world;
  variables["LOCAL_WORLD_SIZE"] = std::to_string(start.ranks.size());
  variables["ROLE_RANK"] = rank;
  variables["ROLE_WORLD_SIZE"] = world;
  variables["ROLE_NAME"] = "default";
  variables["TORCHELASTIC_RESTART_COUNT"] = std::to_string(start.epoch > 0 ? start.epoch - 1 : 0);
  variables["TORCHELASTIC_RUN_ID"] = start.launch.Hex();
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  return ToWire(variables);
}

std::vector<wire::EnvVar> StoreEnvironment(const NodeFacts& facts, const wire::StartRanks& start,
                                           const Interface& interface, ProcessId process) {
  Variables variables;
  for (const wire::EnvVar& each : facts.base_environment) variables[each.name] = each.value;
  Common(facts, process, start.launch, start.epoch, 1, &variables);
  SetDevices(facts, {}, &variables);
  variables.erase(placement::kStorePeersVariable);
  for (const wire::EnvVar& each : start.environment.env) {
    if (each.name == placement::kStorePeersVariable) variables[each.name] = each.value;
  }
  variables["MASTER_ADDR"] = interface.address;
  variables["WORLD_SIZE"] = std::to_string(start.world_size);
  return ToWire(variables);
}

std::vector<wire::EnvVar> ActorEnvironment(const NodeFacts& facts, const wire::StartActor& start,
                                           ProcessId process) {
  Variables variables = Inherited(facts, start.environment);
  variables.erase(kThreadsVariable);
  Common(facts, process, start.launch, start.epoch, ActorThreads(start), &variables);
  if (!LeavesDevices(variables)) SetDevices(facts, start.gpu_ids, &variables);
  return ToWire(variables);
}

std::uint32_t ActorThreads(const wire::StartActor& start) {
  std::uint32_t threads = 0;
  for (const wire::EnvVar& each : start.environment.env) {
    const char* const end = each.value.data() + each.value.size();
    if (each.name == kThreadsVariable) std::from_chars(each.value.data(), end, threads);
  }
  return std::max(threads, 1u);
}

std::uint32_t ThreadsFor(const std::vector<wire::Resource>& resources) {
  const std::uint64_t cpus = AmountOf(AmountsFromWire(resources), kCpu) / kWhole;
  return cpus == 0 ? 1 : static_cast<std::uint32_t>(cpus);
}

std::string VisibleDevices(const NodeFacts& facts, const std::vector<std::uint32_t>& gpu_ids) {
  std::string text;
  for (const std::uint32_t id : gpu_ids) {
    const auto token = facts.gpu_tokens.find(id);
    if (!text.empty()) text += ",";
    text += token == facts.gpu_tokens.end() ? std::to_string(id) : token->second;
  }
  return text;
}

}  // namespace troupe::worker
