// The environment of a process: the worker's own, filtered, then the user's, then the runtime's.
//
// Pure. The runtime's variables (RANK, ...) win over everything; NCCL_SOCKET_IFNAME, NCCL_IB_HCA,
// GLOO_SOCKET_IFNAME, OMP_NUM_THREADS and CUDA_DEVICE_ORDER are defaults that a value of the user's
// or of the worker's environment overrides, of NCCL's also its file on this host.
// CUDA_VISIBLE_DEVICES is what the process holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/core/node_facts.h"

namespace troupe::worker {

/// Returns the part of the worker's own environment that processes inherit: all but secrets,
/// rendezvous variables of a launcher that started the worker, and those the runtime sets itself.
std::vector<wire::EnvVar> BaseEnvironment(const std::vector<std::string>& entries);

/// `interface` is the one that reaches the other nodes.
std::vector<wire::EnvVar> RankEnvironment(const NodeFacts& facts, const wire::StartRanks& start,
                                          const wire::RankPlace& place, const Interface& interface,
                                          ProcessId process);
std::vector<wire::EnvVar> StoreEnvironment(const NodeFacts& facts, const wire::StartRanks& start,
                                           const Interface& interface, ProcessId process);
std::vector<wire::EnvVar> ActorEnvironment(const NodeFacts& facts, const wire::StartActor& start,
                                           ProcessId process);
/// How many threads libraries have in a process with these resources: its whole CPUs, at least one.
std::uint32_t ThreadsFor(const std::vector<wire::Resource>& resources);
/// How many threads libraries have in an actor or a process for tasks: its maker says it, for its
/// reservation may be a bundle that others share.
std::uint32_t ActorThreads(const wire::StartActor& start);
/// "0,3" from device ids.
std::string VisibleDevices(const NodeFacts& facts, const std::vector<std::uint32_t>& gpu_ids);

/// Marks every process of the runtime and its descendants, wherever they are re-parented to.
inline constexpr char kProcessVariable[] = "TROUPE_PROCESS_ID";
/// Folder in which the process makes the file of its ring of spans (runtime/obs/trace.h), named by
/// its id.
inline constexpr char kTraceVariable[] = "TROUPE_TRACE_DIR";
/// In that of a process whose executable is no interpreter (wire::RuntimeEnvironment::program): the
/// descriptor of its control channel.
inline constexpr char kControlVariable[] = "TROUPE_CONTROL_FD";
/// In the environment that comes with an actor: its whole CPUs (`_process/threads.py`). Its process
/// does not get it.
inline constexpr char kThreadsVariable[] = "TROUPE_THREADS";

}  // namespace troupe::worker
