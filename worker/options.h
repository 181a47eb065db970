// Options of troupe-worker's command line, checked.
//
// Pure but for the defaults that ask the machine (host name, processors). Errors say which option
// is wrong and what it looks like.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/net/address.h"
#include "runtime/wire/messages.h"
#include "worker/core/amounts.h"
#include "worker/core/log_retention.h"

namespace troupe::worker {

/// As the flags give it.
struct RawOptions {
  std::string head;
  std::string token_file;
  std::string node_dir;
  std::string socket_dir;
  std::string name;
  double num_cpus = -1;   // negative: this machine's
  int num_gpus = -1;      // negative: this machine's
  double memory = -1;     // bytes; negative: a part of this machine's
  std::string resources;  // JSON object
  std::string labels;     // k=v,k=v
  std::string listen;
  std::string preimport;  // lists of modules: a,b;c
  std::string python;
  int ready_fd = -1;
  int lifeline_fd = -1;
  bool parent_death = false;
  bool force_tcp = false;
  std::uint64_t log_bytes_max = 64u << 20;
  double log_days = 7;
  std::uint64_t ended_log_bytes_max = 4ull << 30;
  std::uint64_t blob_bytes_max = 4ull << 30;
};

struct WorkerOptions {
  net::Address head;
  std::string head_text;
  std::string token_file;
  std::string node_dir;
  std::string socket_dir;
  std::string name;
  Amounts resources;                  // without GPUs
  std::optional<std::uint32_t> gpus;  // logical devices; unset: those of the machine
  std::vector<wire::Label> labels;
  /// Host empty: the address this node reaches the head from (loopback for a head on this host),
  /// since a worker of a head elsewhere must be reachable from elsewhere. Port 0: any.
  net::Address listen;
  std::string python;
  std::vector<std::vector<std::string>> preimports;  // each has a zygote from the node's start on
  int lifeline_fd = -1;
  bool force_tcp = false;
  std::uint64_t log_bytes_max = 0;
  RetentionLimits ended_logs;
  std::uint64_t blob_bytes_max = 0;
};

StatusOr<WorkerOptions> CheckOptions(const RawOptions& raw);
/// {"name": number, ...}: kInvalid for anything else.
StatusOr<Amounts> ParseResources(const std::string& json);
StatusOr<std::vector<wire::Label>> ParseLabels(const std::string& text);
/// "a,b;c": two lists; kInvalid for an empty name and for more lists than a node keeps zygotes for.
StatusOr<std::vector<std::vector<std::string>>> ParsePreimports(const std::string& text);

}  // namespace troupe::worker
