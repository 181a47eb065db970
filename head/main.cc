// troupe-head: the cluster's head. Parses, constructs, runs. Users start it by `troupe start
// --head`.
#include <absl/flags/flag.h>
#include <absl/flags/parse.h>
#include <absl/flags/usage.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "head/journal/sqlite_journal.h"
#include "head/server/head_process.h"
#include "runtime/base/log.h"

ABSL_FLAG(std::string, state_dir, "", "the cluster's folder itself; else one of --home/clusters");
ABSL_FLAG(std::string, home, "", "folder of clusters (TROUPE_HOME)");
ABSL_FLAG(std::string, cluster, "", "id of the cluster in --home to resume");
ABSL_FLAG(bool, new, false, "make a new cluster in --home");
ABSL_FLAG(std::string, listen, "127.0.0.1", "address to listen on");
ABSL_FLAG(int, port, 0, "port to listen on; 0: any");
ABSL_FLAG(std::string, socket_dir, "",
          "folder of Unix sockets; by default $XDG_RUNTIME_DIR/troupe");
ABSL_FLAG(int, ready_fd, -1, "descriptor that gets one line of JSON when the head is ready");
ABSL_FLAG(int, lifeline_fd, -1, "the head ends when this pipe does");
ABSL_FLAG(bool, parent_death, false, "end with the parent process");
ABSL_FLAG(double, certificate_days, 7,
          "life of certificates of nodes and of the head; renewed at two thirds");
ABSL_FLAG(std::string, preemption, "never",
          "whom a request of higher priority may end: never, or restartable");
ABSL_FLAG(std::string, infeasible, "refuse",
          "what no node can hold is refused, or waits for a node that can");
ABSL_FLAG(double, keep_place_after, 8,
          "hours after which who waits first keeps a place; until then whoever fits goes");
ABSL_FLAG(double, idle_gpu_after, 30,
          "minutes after which an event tells of a GPU that is held and idle; 0: never");
ABSL_FLAG(bool, embedded, false, "the state is thrown away afterwards: do not sync it");
ABSL_FLAG(bool, no_local_clients, false,
          "who connects to the Unix socket is no client by that: it needs a token, over TCP");
ABSL_FLAG(std::string, run_secret_file, "",
          "secret of a `troupe run`, from which authority and tokens come");
ABSL_FLAG(std::string, run, "", "name of the run that the secret is for");
ABSL_FLAG(std::string, repair, "", "cut the damaged journal in this folder, then exit");
ABSL_FLAG(std::string, check, "", "check the journal in this folder, then exit");
ABSL_FLAG(std::uint64_t, log_bytes_max, 64u << 20,
          "the log, where it is a file, loses its older half over this");
ABSL_FLAG(std::uint64_t, snapshot_every, 20000,
          "events after which a snapshot takes the journal's place");
ABSL_FLAG(std::uint64_t, ended_max, 10000,
          "launches that are over and stay in memory; older ones are read from the archive");

namespace {

std::string SocketDir() {
  const std::string given = absl::GetFlag(FLAGS_socket_dir);
  if (!given.empty()) return given;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime != '\0') return std::string(runtime) + "/troupe";
  return "/tmp/troupe-" + std::to_string(getuid());
}

// "--state-dir=x" and "--state-dir x" for abseil, whose names have underscores.
std::vector<char*> WithUnderscores(int argc, char** argv) {
  std::vector<char*> args(argv, argv + argc);
  for (char* arg : args) {
    if (std::strncmp(arg, "--", 2) != 0) continue;
    for (char* c = arg + 2; *c != '\0' && *c != '='; ++c) {
      if (*c == '-') *c = '_';
    }
  }
  return args;
}

int Report(const troupe::StatusOr<std::string>& done) {
  const std::string text = done.ok() ? *done : troupe::MessageOf(done.status()) + "\n";
  std::fputs(text.c_str(), done.ok() ? stdout : stderr);
  return done.ok() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("the head of a Troupe cluster");
  std::vector<char*> args = WithUnderscores(argc, argv);
  const auto rest = absl::ParseCommandLine(static_cast<int>(args.size()), args.data());
  if (rest.size() > 1) {
    std::fprintf(stderr, "troupe-head: unexpected argument '%s'; see --help\n", rest[1]);
    return 2;
  }
  umask(077);  // the head starts no process of a user's: what it makes is its owner's alone
  const std::string repair = absl::GetFlag(FLAGS_repair);
  if (!repair.empty()) return Report(troupe::head::RepairJournal(repair));
  const std::string check = absl::GetFlag(FLAGS_check);
  if (!check.empty()) return Report(troupe::head::CheckJournal(check));
  if (absl::GetFlag(FLAGS_parent_death)) prctl(PR_SET_PDEATHSIG, SIGKILL);
  troupe::SetLogSource("head");
  troupe::SetLogBytesMax(absl::GetFlag(FLAGS_log_bytes_max));
  troupe::head::HeadOptions options;
  options.state_dir = absl::GetFlag(FLAGS_state_dir);
  options.home = absl::GetFlag(FLAGS_home);
  options.cluster = absl::GetFlag(FLAGS_new) ? "" : absl::GetFlag(FLAGS_cluster);
  options.listen = absl::GetFlag(FLAGS_listen);
  options.port = absl::GetFlag(FLAGS_port);
  options.socket_dir = SocketDir();
  options.ready_fd = absl::GetFlag(FLAGS_ready_fd);
  options.lifeline_fd = absl::GetFlag(FLAGS_lifeline_fd);
  options.certificate_days = absl::GetFlag(FLAGS_certificate_days);
  options.run_secret_file = absl::GetFlag(FLAGS_run_secret_file);
  options.run = absl::GetFlag(FLAGS_run);
  options.preemption = absl::GetFlag(FLAGS_preemption);
  options.infeasible = absl::GetFlag(FLAGS_infeasible);
  options.keep_hours = absl::GetFlag(FLAGS_keep_place_after);
  options.idle_gpu_minutes = absl::GetFlag(FLAGS_idle_gpu_after);
  options.local_clients = !absl::GetFlag(FLAGS_no_local_clients);
  options.embedded = absl::GetFlag(FLAGS_embedded);
  options.snapshot_every = absl::GetFlag(FLAGS_snapshot_every);
  options.ended_max = absl::GetFlag(FLAGS_ended_max);
  const troupe::Status status = troupe::head::RunHead(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "troupe-head: %s\n", troupe::MessageOf(status).c_str());
  return 1;
}
