// A worker: WorkerCore and everything that acts for it.
//
// View: one process, one loop (and a thread for TLS handshakes and hashing). Run() joins, serves,
// and returns when the node has left: at EndNode, at SIGTERM or SIGINT. Its error is that of the
// first join: an address nobody listens on, a refused token; later losses of the head are not
// errors.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/async/fd_watch.h"
#include "runtime/async/loop_thread.h"
#include "runtime/async/os_random.h"
#include "runtime/async/scope.h"
#include "runtime/async/timer.h"
#include "runtime/os/signals.h"
#include "worker/blob_fetch.h"
#include "worker/blob_store.h"
#include "worker/core/worker_core.h"
#include "worker/head_link.h"
#include "worker/log_keeper.h"
#include "worker/measures/measurer.h"
#include "worker/node_files.h"
#include "worker/options.h"
#include "worker/peer_server.h"
#include "worker/service.h"
#include "worker/supervisor.h"
#include "worker/tool_reader.h"

namespace troupe::worker {

class Node {
 public:
  using OnJoined = std::function<void(const NodeId&, const std::string& name)>;

  /// References must outlive the node. `signals` carries SIGTERM, SIGINT and SIGCHLD.
  Node(async::Executor executor, const Clock& clock, const WorkerOptions& options, NodeFiles& files,
       os::SignalFd& signals, OnJoined on_joined);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  async::Task<Status> Run();

 private:
  Status OpenStores();
  Status OpenLink();
  Status OpenDoors();
  /// How it presents itself to other workers.
  PeerSelf Self() const;
  NodeFacts Facts() const;
  Supervisor::Events SupervisorEvents();
  HeadLink::Events LinkEvents();

  void OnSignals();
  void OnLifeline();
  void OnProcessMessage(ProcessId id, wire::Message message);
  async::Task<void> AnswerProcess(ProcessId id, wire::Message request);
  /// Processes of a launch (of one rank, or of all: -1) or an actor that run: "RANK:PID" each.
  StatusOr<std::vector<std::string>> ToolTargets(const LaunchId& launch, const ActorId& actor,
                                                 std::int32_t rank) const;
  async::Task<StatusOr<wire::Message>> Stacks(wire::ReadStacks request);
  async::Task<StatusOr<wire::Message>> Profile(wire::ReadProfile request);
  async::Task<StatusOr<wire::Message>> Timeline(wire::ReadTimeline request);
  void BeginLeave(const std::string& reason);
  void Tick();
  void Measure();

  /// Performs effects in order; those that arise meanwhile come after them.
  void Perform(Effects effects);
  void PerformOne(Effect& effect);
  void Fetch(const FetchBlob& effect);
  async::Task<void> Dial(wire::ProbePeer probe);
  void SendEnd(SendLogEnd effect);
  void Keep(KeepValue effect);
  void Joined(const worker::Joined& joined);

  const async::Executor executor_;
  const Clock& clock_;
  const WorkerOptions options_;
  NodeFiles& files_;
  os::SignalFd& signals_;
  OnJoined on_joined_;
  async::OsRandom random_;
  async::LoopThread helper_;  // TLS handshakes, hashing
  std::optional<LogFiles> logs_;
  std::unique_ptr<LogKeeper> log_keeper_;
  std::unique_ptr<BlobStore> blobs_;
  std::unique_ptr<LogWatch> log_watch_;
  std::unique_ptr<Supervisor> supervisor_;
  std::unique_ptr<ToolReader> tools_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<HeadLink> link_;
  std::unique_ptr<PeerServer> doors_;
  std::unique_ptr<BlobFetcher> fetcher_;
  std::unique_ptr<WorkerCore> core_;
  std::unique_ptr<Measurer> measurer_;
  std::string python_version_;
  std::vector<std::string> preimports_;  // how they are; see Heartbeat
  bool remembers_ = false;  // the stored certificate is of this cluster: so is node.json
  std::map<std::uint64_t, std::string> pinned_;  // ticket -> digest
  std::map<ProcessId, std::uint64_t> askers_;    // processes as uploaders
  std::uint64_t next_asker_ = 1u << 10;
  std::deque<Effect> effects_;
  bool performing_ = false;
  std::optional<std::string> leave_reason_;  // since it was told to leave
  async::Timer wake_;
  async::Timer tick_;
  async::Timer left_;  // fires when the node has left
  async::Scope scope_;
  std::unique_ptr<async::FdWatch> signal_watch_;
  std::unique_ptr<async::FdWatch> lifeline_watch_;
};

}  // namespace troupe::worker
