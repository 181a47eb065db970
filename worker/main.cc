// troupe-worker: one node of a cluster. `troupe start` runs it; see README.md for its life.
#include <absl/flags/flag.h>
#include <absl/flags/parse.h>
#include <absl/flags/usage.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/base/log.h"
#include "worker/run.h"

ABSL_FLAG(std::string, head, "", "the head's host:port, or unix:/path");
ABSL_FLAG(std::string, token_file, "",
          "file with a join token (0600); needed for the first join by TCP");
ABSL_FLAG(std::string, node_dir, "", "where this node keeps certificate, logs and payloads");
ABSL_FLAG(std::string, socket_dir, "", "where sockets go; short (XDG_RUNTIME_DIR/troupe)");
ABSL_FLAG(std::string, name, "", "the node's name (host name); the head makes it unique");
ABSL_FLAG(double, num_cpus, -1, "CPUs to offer (those of this machine)");
ABSL_FLAG(int, num_gpus, -1, "logical GPUs to offer (those of this machine)");
ABSL_FLAG(double, memory, -1, "bytes of memory to offer (a part of this machine's)");
ABSL_FLAG(std::string, resources, "", "further resources, a JSON object of numbers");
ABSL_FLAG(std::string, labels, "", "key=value,key=value");
ABSL_FLAG(std::string, listen, "",
          "address or address:port for other nodes (the one that reaches the head)");
ABSL_FLAG(std::string, python, "python3", "the interpreter of ranks and actors");
ABSL_FLAG(
    std::string, preimport, "",
    "module,module;module: lists of modules, for each of which a process that has them is kept");
ABSL_FLAG(int, ready_fd, -1, "one JSON line is written here when joined, or when that failed");
ABSL_FLAG(int, lifeline_fd, -1, "the node leaves when this pipe ends");
ABSL_FLAG(bool, parent_death, false, "end when the parent process ends");
ABSL_FLAG(bool, force_tcp, false, "talk TLS also to workers of this host");
ABSL_FLAG(std::uint64_t, log_bytes_max, 64u << 20,
          "a log file over this loses its older half, this worker's own too");
ABSL_FLAG(double, log_days, 7, "days for which logs of ended launches and actors are kept");
ABSL_FLAG(std::uint64_t, ended_log_bytes_max, 4ull << 30,
          "disk for logs of ended launches and actors; the oldest go");
ABSL_FLAG(std::uint64_t, object_store_memory, 0,
          "bytes that each process of this node may hold of objects in memory");
ABSL_FLAG(std::string, object_spilling_directory, "",
          "where objects go beyond that, on a disk; none: nowhere");
ABSL_FLAG(std::uint64_t, blob_bytes_max, 4ull << 30, "disk for payloads and values");

namespace {

troupe::worker::RawOptions FromFlags() {
  troupe::worker::RawOptions raw;
  raw.head = absl::GetFlag(FLAGS_head);
  raw.token_file = absl::GetFlag(FLAGS_token_file);
  raw.node_dir = absl::GetFlag(FLAGS_node_dir);
  raw.socket_dir = absl::GetFlag(FLAGS_socket_dir);
  raw.name = absl::GetFlag(FLAGS_name);
  raw.num_cpus = absl::GetFlag(FLAGS_num_cpus);
  raw.num_gpus = absl::GetFlag(FLAGS_num_gpus);
  raw.memory = absl::GetFlag(FLAGS_memory);
  raw.resources = absl::GetFlag(FLAGS_resources);
  raw.labels = absl::GetFlag(FLAGS_labels);
  raw.listen = absl::GetFlag(FLAGS_listen);
  raw.python = absl::GetFlag(FLAGS_python);
  raw.preimport = absl::GetFlag(FLAGS_preimport);
  raw.ready_fd = absl::GetFlag(FLAGS_ready_fd);
  raw.lifeline_fd = absl::GetFlag(FLAGS_lifeline_fd);
  raw.parent_death = absl::GetFlag(FLAGS_parent_death);
  raw.force_tcp = absl::GetFlag(FLAGS_force_tcp);
  raw.log_bytes_max = absl::GetFlag(FLAGS_log_bytes_max);
  raw.log_days = absl::GetFlag(FLAGS_log_days);
  raw.ended_log_bytes_max = absl::GetFlag(FLAGS_ended_log_bytes_max);
  raw.blob_bytes_max = absl::GetFlag(FLAGS_blob_bytes_max);
  return raw;
}

/// The processes of this node read it from their environment, which is this one's
/// (actors/objects/object_memory.h).
void SayObjectMemory() {
  const std::uint64_t bytes = absl::GetFlag(FLAGS_object_store_memory);
  const std::string folder = absl::GetFlag(FLAGS_object_spilling_directory);
  if (bytes != 0) setenv("TROUPE_OBJECT_STORE_MEMORY", std::to_string(bytes).c_str(), 1);
  if (!folder.empty()) setenv("TROUPE_OBJECT_SPILLING_DIRECTORY", folder.c_str(), 1);
}

void Tell(int ready_fd, const std::string& json) {
  if (ready_fd < 0) return;
  const std::string line = json + "\n";
  if (write(ready_fd, line.data(), line.size()) < 0) std::perror("troupe-worker: --ready_fd");
  close(ready_fd);
}

}  // namespace

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "A node of a Troupe cluster: joins a head and runs ranks and actors.");
  absl::ParseCommandLine(argc, argv);
  SayObjectMemory();
  const troupe::worker::RawOptions raw = FromFlags();
  bool joined = false;
  const auto on_joined = [&](const troupe::NodeId& id, const std::string& name) {
    joined = true;
    Tell(raw.ready_fd, "{\"node_id\":\"" + id.Hex() + "\",\"name\":\"" + troupe::JsonEscape(name) +
                           "\",\"pid\":" + std::to_string(getpid()) + "}");
  };
  const troupe::Status status = troupe::worker::RunWorker(raw, on_joined);
  if (status.ok()) return 0;
  const std::string text = troupe::MessageOf(status);
  std::fprintf(stderr, "troupe-worker: %s\n", text.c_str());
  const int code = static_cast<int>(troupe::ErrorCodeOf(status));
  if (!joined) {
    Tell(raw.ready_fd,
         "{\"error\":\"" + troupe::JsonEscape(text) + "\",\"code\":" + std::to_string(code) + "}");
  }
  return 1;
}
