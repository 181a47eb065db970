// The faults of one run, drawn from its seed and printed with a failure.
//
// Swarm testing: which kinds of fault a run has is drawn too, so that each meets the others absent.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/random.h"
#include "runtime/base/time.h"

namespace troupe::sim {

inline Duration Ms(std::uint64_t ms) { return std::chrono::milliseconds(ms); }

enum class FaultKind : std::uint8_t {
  kHeadCrash,
  kWorkerCrash,
  kWorkerStop,
  kReset,
  kPartition,
  kClientEnd,
  kDeaf,  // messages of the head to a worker are held; the worker is heard
  kMute,     // the other way round
  kLeave,    // a worker says goodbye; it, or its like, joins again later
  kIsolate,  // a worker is cut off from the head and from its peers; the others only from the head
  kHeadCut,  // all workers are cut off from the head; they reach each other
};
inline constexpr std::size_t kFaultKinds = 11;

struct Fault {
  FaultKind kind;
  Duration at;         // from the start
  Duration lasts;      // stop, partition, time until a crashed process is back
  std::size_t target;  // index of a worker or client
};

struct FaultPlan {
  std::vector<Fault> faults;
  unsigned duplicate_permille = 0;
  unsigned process_crash_permille = 0;
  unsigned fork_failure_permille = 0;
  unsigned snapshot_permille = 0;     // commits with one
  Duration join_most{};               // the last of the workers joins then
  unsigned stubborn_permille = 0;     // processes that only SIGKILL ends
  bool preempts = false;              // the head, by priority
  Duration constructor_most{};        // slowest start of a caller's actor
  unsigned actor_crash_permille = 0;  // actors that are alive
  Duration commit_most{};             // slowest commit
  Duration latency_most{};
  Duration keep_after = std::chrono::seconds(10);  // head::CoreOptions
  Duration wait = std::chrono::seconds(2);         // how long a caller waits for an end at a time
  Duration dial_most = Ms(200);                    // slowest try to come to the head again
  Duration ask_again = Ms(500);                    // after a refusal
  bool cancels = true;                             // callers, and launches start after others
};

struct Workload {
  std::size_t workers = 2;
  std::size_t clients = 2;
  std::size_t launches = 4;
  std::size_t writes = 0;        // how many values every client writes
  std::uint64_t priorities = 1;  // how many different ones launches have
  std::size_t actors = 0;        // how many each client has, that are started again
  bool outlives_node = false;    // a launch goes on without a node that is lost for long
  Duration chaos{};              // no fault begins after it
};

FaultPlan DrawPlan(Prng& random, const Workload& workload);
std::string TextOf(const FaultPlan& plan);

}  // namespace troupe::sim
