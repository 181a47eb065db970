#include "worker/node.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/log_file.h"
#include "runtime/base/test_limit.h"
#include "runtime/net/digest.h"
#include "runtime/net/files.h"
#include "runtime/os/host.h"
#include "worker/core/environment.h"
#include "worker/devices/fabric.h"
#include "worker/devices/inventory.h"
#include "worker/python_path.h"

extern char** environ;

namespace troupe::worker {
namespace {

// Label for gpu_type= of launches, accelerator_type= of actors and tasks
constexpr char kGpuTypeLabel[] = "gpu_type";
constexpr char kPythonPath[] = "PYTHONPATH";
constexpr char kRdmaLabel[] = "rdma";  // "infiniband" or "roce", for selectors
constexpr Duration kTick = HeadLink::kBeatEvery;
constexpr Duration kLastChildrenLimit = std::chrono::seconds(2);  // from the kill of the zygote

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> entries;
  for (char** each = environ; *each != nullptr; ++each) entries.emplace_back(*each);
  return entries;
}

std::vector<std::string> ZygoteEnvironment(const std::string& own_python_path) {
  std::vector<std::string> entries;
  for (const wire::EnvVar& each : BaseEnvironment(OwnEnvironment())) {
    const bool threads = each.name == "OMP_NUM_THREADS" || each.name == "OPENBLAS_NUM_THREADS" ||
                         each.name == "MKL_NUM_THREADS";
    if (threads || (each.name == kPythonPath && own_python_path.empty())) continue;
    entries.push_back(each.name + "=" + (each.name == kPythonPath ? own_python_path : each.value));
  }
  return entries;
}

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void SetPythonPath(ZygoteOptions* options) {
  std::error_code error;
  const std::string here = std::filesystem::current_path(error);  // "": it was removed
  PythonPath path = SplitPythonPath(Variable(kPythonPath), here);
  options->environment = ZygoteEnvironment(path.own);
  options->own_python_path = std::move(path.own);
  options->programs_path = std::move(path.programs);
  if (!error) options->programs_path.insert(options->programs_path.begin(), here);
}

// Adds a label with the node's own fact, unless the node was given one of that name.
void Tell(const char* key, const std::string& value, std::vector<wire::Label>* labels) {
  const bool said = std::any_of(labels->begin(), labels->end(),
                                [&](const wire::Label& label) { return label.key == key; });
  if (!said && !value.empty()) labels->push_back({key, value});
}

/// Returns an id that tells this host from others. With --force_tcp each node is a host of its own.
std::string BootIdOf(const WorkerOptions& options) {
  return options.force_tcp ? os::BootId() + "/" + std::to_string(getpid()) : os::BootId();
}

}  // namespace

Node::Node(async::Executor executor, const Clock& clock, const WorkerOptions& options,
           NodeFiles& files, os::SignalFd& signals, OnJoined on_joined)
    : executor_(executor),
      clock_(clock),
      options_(options),
      files_(files),
      signals_(signals),
      on_joined_(std::move(on_joined)),
      helper_("worker-helper"),
      wake_(executor, clock, [this] { Perform(core_->OnTimer(clock_.Now())); }),
      tick_(executor, clock, [this] { Tick(); }),
      left_(executor, clock, [] {}),
      scope_(executor, "node") {}

Node::~Node() = default;

async::Task<Status> Node::Run() {
  TROUPE_CO_TRY(OpenStores());
  signal_watch_ =
      std::make_unique<async::FdWatch>(executor_, signals_.fd(), [this] { OnSignals(); });
  if (options_.lifeline_fd >= 0) {
    lifeline_watch_ =
        std::make_unique<async::FdWatch>(executor_, options_.lifeline_fd, [this] { OnLifeline(); });
  }
  TROUPE_CO_TRY(OpenLink());
  TROUPE_CO_TRY(co_await link_->Connect());
  TROUPE_CO_TRY(OpenDoors());
  const RememberedState remembered = remembers_ ? files_.Remembered() : RememberedState();
  CoreLimits limits;
  limits.fence_after = TestLimit("fence_after", limits.fence_after);
  NodeFacts facts = Facts();
  const std::vector<std::string> folders = {files_.node_dir(), "/"};
  measurer_ = std::make_unique<Measurer>(
      executor_, folders, facts.devices, [this](std::vector<wire::Measure> measures) {
        Perform(core_->OnMeasured(std::move(measures), clock_.Now()));
      });
  core_ = std::make_unique<WorkerCore>(std::move(facts), limits, remembered, random_);
  if (!python_version_.empty()) {
    Perform(core_->OnZygote(true, python_version_, clock_.Now()));
    Perform(core_->OnPreimports(preimports_, clock_.Now()));
  }
  if (leave_reason_) Perform(core_->Leave(*leave_reason_, clock_.Now()));
  tick_.ArmAt(clock_.Now() + kTick);
  co_await link_->Run();
  tick_.Cancel();
  wake_.Cancel();
  measurer_.reset();
  fetcher_->Stop();
  doors_->Stop();
  supervisor_->Stop();
  scope_.Cancel();
  co_await scope_.Wait();
  signal_watch_.reset();
  lifeline_watch_.reset();
  supervisor_->AwaitEnd(signals_, kLastChildrenLimit);
  co_return absl::OkStatus();
}

Status Node::OpenStores() {
  TROUPE_ASSIGN(logs_, LogFiles::Open(files_.LogDir(), options_.log_bytes_max));
  log_keeper_ = std::make_unique<LogKeeper>(executor_, helper_.executor(), clock_, *logs_,
                                            options_.ended_logs);
  log_keeper_->Start();
  TROUPE_ASSIGN(blobs_, BlobStore::Open(files_.BlobDir(), options_.blob_bytes_max));
  TROUPE_ASSIGN(log_watch_, LogWatch::Open(executor_));
  ZygoteOptions zygote;
  zygote.python = options_.python;
  zygote.log_path = files_.ZygoteLog();
  SetPythonPath(&zygote);
  zygote.ahead = options_.preimports;
  supervisor_ = std::make_unique<Supervisor>(executor_, clock_, std::move(zygote), *logs_,
                                             SupervisorEvents());
  service_ = std::make_unique<Service>(
      clock_, *blobs_, *logs_, *log_watch_,
      [this](const std::string& file) { return supervisor_->Writer(file); },
      Service::Readings{
          [this](wire::ReadStacks request) { return Stacks(std::move(request)); },
          [this](wire::ReadProfile request) { return Profile(std::move(request)); },
          [this](wire::ReadTimeline request) { return Timeline(std::move(request)); }});
  tools_ = std::make_unique<ToolReader>(executor_, *supervisor_);
  return absl::OkStatus();
}

Status Node::OpenLink() {
  HeadLink::Options options;
  options.address = options_.head;
  options.folder = files_.node_dir();
  options.hello.name = options_.name;
  options.hello.host = os::HostName();
  options.hello.boot_id = os::BootId();
  options.hello.pid = getpid();
  if (!options_.token_file.empty()) {
    TROUPE_ASSIGN(const Secret text, net::ReadSecretFile(options_.token_file));
    TROUPE_ASSIGN(options.token, net::ParseToken(text));
  }
  link_ = std::make_unique<HeadLink>(clock_, std::move(options), LinkEvents());
  const Status stored = link_->LoadStored();
  remembers_ = stored.ok();
  if (!stored.ok() && ErrorCodeOf(stored) != ErrorCode::kNotFound) {
    if (options_.token_file.empty() && !options_.head.is_unix()) {
      return MakeError(ErrorCodeOf(stored),
                       MessageOf(stored) + "\n  join with a token: the node is then a new one, of "
                                           "the same name; beside its head remove node.crt there");
    }
    Log(LogLevel::kWarning, "joining anew", {{"reason", MessageOf(stored)}});
  }
  return absl::OkStatus();
}

Status Node::OpenDoors() {
  PeerServer::Options doors;
  doors.unix_path = files_.UnixPath();
  doors.listen = options_.listen;
  if (doors.listen.host.empty()) doors.listen.host = link_->LocalHost();
  doors.handshakes = helper_.executor();
  doors.node_name = options_.name;
  doors.call_socket_of = [this](const ProcessId& id) {
    return core_ ? core_->CallSocketOf(id) : std::string();
  };
  doors_ = std::make_unique<PeerServer>(executor_, clock_, random_, *service_, *blobs_);
  TROUPE_TRY(doors_->Open(doors, link_->credentials()));
  fetcher_ = std::make_unique<BlobFetcher>(
      executor_, clock_, *blobs_, Self(),
      [this]() -> const net::Credentials& { return link_->credentials(); });
  return absl::OkStatus();
}

PeerSelf Node::Self() const { return {options_.name, BootIdOf(options_), options_.force_tcp}; }

NodeFacts Node::Facts() const {
  const char* mask = std::getenv("CUDA_VISIBLE_DEVICES");
  Inventory devices =
      FindDevices(mask ? std::optional<std::string>(mask) : std::nullopt, options_.gpus);
  if (!devices.note.empty()) Log(LogLevel::kInfo, "no devices", {{"reason", devices.note}});
  NodeFacts facts;
  facts.name = options_.name;
  facts.host = os::HostName();
  facts.boot_id = BootIdOf(options_);
  facts.listen_host = doors_->tcp_address().host;
  facts.listen_port = doors_->tcp_address().port;
  facts.unix_path = options_.force_tcp ? "" : files_.UnixPath();
  facts.socket_dir = files_.socket_dir();
  facts.result_dir = files_.ResultDir();
  facts.trace_dir = files_.rings().folder();
  facts.head_address = options_.head_text;
  facts.python_version = python_version_;
  facts.pid = getpid();
  facts.capacity = options_.resources;
  if (!devices.gpu_ids.empty()) facts.capacity[kGpu] = devices.gpu_ids.size() * kWhole;
  facts.gpu_ids = std::move(devices.gpu_ids);
  facts.gpu_tokens = std::move(devices.tokens);
  facts.labels = options_.labels;
  placement::Fabric fabric = ReadFabric("", LocalAddresses());
  fabric.nvlinks = GroupLinks(devices.links);
  Tell(kGpuTypeLabel, GpuTypeOf(devices.devices), &facts.labels);
  Tell(kRdmaLabel, RdmaKind(fabric), &facts.labels);
  Tell(placement::kFabricLabel, placement::FabricText(fabric), &facts.labels);
  facts.nccl_file_names = NcclFileNames("", Variable("NCCL_CONF_FILE"), Variable("HOME"));
  facts.devices = std::move(devices.devices);
  facts.base_environment = BaseEnvironment(OwnEnvironment());
  facts.choose_interface = [](const std::vector<std::string>& peers) {
    const os::LocalInterface found = os::InterfaceTo(peers);
    return Interface{found.name, found.address};
  };
  facts.sha256 = [](std::string_view bytes) { return net::Sha256(bytes); };
  return facts;
}

void Node::OnSignals() {
  while (const auto signal = signals_.Next()) {
    if (*signal == SIGCHLD) {
      supervisor_->OnChildren();
    } else {
      BeginLeave(SignalName(*signal));
    }
  }
}

void Node::OnLifeline() {
  char unused;
  if (read(options_.lifeline_fd, &unused, 1) > 0) return;
  lifeline_watch_.reset();
  BeginLeave("whoever started it has ended");
}

void Node::BeginLeave(const std::string& reason) {
  const bool again = leave_reason_.has_value();
  if (!again) leave_reason_ = reason;
  Log(LogLevel::kInfo, again ? "leaving at once" : "leaving", {{"reason", reason}});
  // A node that the head has told to leave is leaving: the first signal takes nothing from its
  // ranks' time, the second does.
  if (core_ && (again || !core_->leaving())) Perform(core_->Leave(reason, clock_.Now()));
}

void Node::Tick() {
  FaultAt("worker.tick");
  link_->Beat();
  supervisor_->Tidy();
  HalveLogFile(files_.ZygoteLog(), options_.log_bytes_max);
  log_keeper_->Tidy();
  Measure();
  if (link_->RenewalDue()) scope_.Spawn("renew", link_->Renew());
  tick_.ArmAt(clock_.Now() + kTick);
}

void Node::Measure() {
  const std::optional<Duration> every = core_->measures_every();
  if (!every) return;
  measurer_->Tick(clock_.Now(), *every, [this] {
    std::vector<MeasuredProcess> processes = {{getpid(), "worker"}};
    for (const auto& [id, process] : core_->processes().all()) {
      if (process.pid == 0 || process.exited) continue;
      processes.push_back({process.pid, wire::NameOf(process.kind)});
    }
    return processes;
  });
}

}  // namespace troupe::worker
