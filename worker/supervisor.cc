#include "worker/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/net/handover.h"
#include "runtime/os/family.h"
#include "runtime/os/memory.h"
#include "runtime/os/process.h"
#include "worker/core/environment.h"
#include "worker/core/oom_score.h"

namespace troupe::worker {
namespace {

constexpr int kControlFd = 3;
// a killed process may take its seconds to end, on a machine that has no memory left
constexpr std::uint64_t kSettleEvery = 15;

std::vector<std::string> Entries(const std::vector<wire::EnvVar>& variables) {
  std::vector<std::string> entries;
  for (const wire::EnvVar& each : variables) entries.push_back(each.name + "=" + each.value);
  return entries;
}

void Replace(const std::string& name, const std::string& value, std::vector<std::string>* entries) {
  const auto same = [&](const std::string& each) { return each.rfind(name + "=", 0) == 0; };
  entries->erase(std::remove_if(entries->begin(), entries->end(), same), entries->end());
  if (!value.empty()) entries->push_back(name + "=" + value);
}

}  // namespace

Supervisor::Supervisor(async::Executor executor, const Clock& clock, ZygoteOptions zygote,
                       LogFiles& logs, Events events)
    : executor_(executor),
      clock_(clock),
      logs_(logs),
      events_(std::move(events)),
      base_environment_(zygote.environment),
      python_(zygote.python),
      own_python_path_(zygote.own_python_path),
      oom_(os::ReadOomKills()),
      oom_score_(os::OomScore(getpid())),
      zygotes_(executor, clock, std::move(zygote), ZygoteEvents()) {}

Supervisor::~Supervisor() { Stop(); }

Zygotes::Events Supervisor::ZygoteEvents() {
  Zygotes::Events events;
  events.ready = events_.zygote;
  events.ahead = events_.ahead;
  events.forked = [this](ProcessId id, int pid, UniqueFd pidfd, const std::string& from) {
    if (const auto found = running_.find(id); found != running_.end()) {
      found->second.forked = true;
      found->second.from = from;
    }
    OnForked(id, pid, std::move(pidfd));
  };
  events.refused = [this](ProcessId id, const std::string& error) { Fail(id, error); };
  events.unanswered = [this](ProcessId id) { StartAnew(id, kTriesMax); };
  events.given_up = [this](std::vector<ForkOrder> waited) {
    for (const ForkOrder& order : waited) {
      const auto found = running_.find(order.request.process);
      if (found != running_.end()) StartAnew(found->first, found->second.tries);
    }
  };
  return events;
}

void Supervisor::Start(StartProcess effect, int tries) {
  const ProcessId id = effect.request.process;
  Running& running = running_[id];
  running.plan = std::move(effect);
  running.tries = tries;
  ForkOrder order;
  order.tries = tries;
  order.request = running.plan.request;
  StatusOr<LogFiles::Pair> files = logs_.Create(running.plan.log);
  if (!files.ok()) {
    Fail(id, "its log files: " + MessageOf(files.status()));
    return;
  }
  order.out = std::move(files->out);
  order.err = std::move(files->err);
  auto channel = ProcessChannel::Open(
      executor_, [this, id](wire::Message message) { OnMessage(id, std::move(message)); },
      [this, id](const Status& reason) { OnChannelEnd(id, reason); }, &order.control);
  if (!channel.ok()) {
    Fail(id, MessageOf(channel.status()));
    return;
  }
  running.channel = *std::move(channel);
  const Zygotes::Choice choice = ChooseFor(running.plan, tries);
  running.from = choice.from;
  if (choice.zygote == nullptr) {
    Execute(running, std::move(order));
    return;
  }
  if (running.plan.has_begin) running.channel->Send(running.plan.begin);
  choice.zygote->Fork(std::move(order));
}

Zygotes::Choice Supervisor::ChooseFor(const StartProcess& plan, int tries) {
  if (!plan.program.empty()) return {nullptr, "executing " + plan.program};
  if (tries < kTriesMax) return zygotes_.Choose(plan);
  return {nullptr, "in fresh interpreters: zygotes ended before they had forked them"};
}

void Supervisor::Execute(Running& running, ForkOrder order) {
  const ProcessId id = order.request.process;
  wire::Message request;
  request.body = order.request;
  running.channel->Send(request);
  if (running.plan.has_begin) running.channel->Send(running.plan.begin);
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  os::SpawnOptions spawn;
  spawn.environment = Entries(order.request.env);
  if (running.plan.program.empty()) {
    spawn.argv = {python_, "-P", "-m", "troupe._process", "--fd", std::to_string(kControlFd)};
    // until it enters what its request says, the program's own with it
    Replace("PYTHONPATH", own_python_path_, &spawn.environment);
  } else {  // the first call of the library looks for the variable
    spawn.argv = {running.plan.program};
    spawn.environment.push_back(std::string(kControlVariable) + "=" + std::to_string(kControlFd));
  }
  spawn.descriptors = {{null.get(), 0},
                       {order.out.get(), 1},
                       {order.err.get(), 2},
                       {order.control.get(), kControlFd}};
  spawn.new_session = true;
  spawn.death_signal = SIGKILL;
  StatusOr<os::Spawned> child = os::Spawn(spawn);
  if (!child.ok()) {
    Fail(id, MessageOf(child.status()));
    return;
  }
  OnForked(id, child->pid, std::move(child->pidfd));
}

StatusOr<os::Spawned> Supervisor::StartTool(std::vector<std::string> arguments, int out) {
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  os::SpawnOptions spawn;
  spawn.argv = {python_, "-P"};
  for (std::string& each : arguments) spawn.argv.push_back(std::move(each));
  spawn.environment = base_environment_;
  spawn.descriptors = {{null.get(), 0}, {out, 1}, {STDERR_FILENO, 2}};
  spawn.new_session = true;
  spawn.death_signal = SIGKILL;
  TROUPE_ASSIGN(os::Spawned tool, os::Spawn(spawn));
  tools_.insert(tool.pid);
  return tool;
}

void Supervisor::StartAnew(ProcessId id, int tries) {
  auto old = running_.extract(id);
  if (old.empty()) return;
  // The first message is in the channel already, before the request that an executed process
  // expects first: a new channel has them in order.
  Start(std::move(old.mapped().plan), tries);
}

void Supervisor::OnForked(ProcessId id, int pid, UniqueFd pidfd) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  found->second.pid = pid;
  found->second.pidfd = std::move(pidfd);
  // The message may be large, and has been sent
  if (!found->second.forked) found->second.plan.begin = wire::Message();
  by_pid_[pid] = id;
  events_.forked(id, pid, found->second.from);
}

void Supervisor::OnMessage(ProcessId id, wire::Message message) {
  if (const auto found = running_.find(id); found != running_.end()) {
    Running& running = found->second;
    // Drops the message stored for another start
    if (!std::exchange(running.spoke, true)) running.plan.begin = wire::Message();
    const bool set_up = wire::Holds<wire::RankPrepared>(message.body) ||
                        wire::Holds<wire::ActorReady>(message.body);
    if (set_up && !running.plan.zygote.IsDefault()) zygotes_.OnSetUp(running.plan.zygote);
  }
  events_.message(id, std::move(message));
}

bool Supervisor::StartedAgain(ProcessId id, const os::Reaped& child) {
  Running& running = running_.at(id);
  const bool never_given = WIFEXITED(child.status) && WEXITSTATUS(child.status) == kNeverGivenCode;
  if (!never_given || !running.forked || running.killed || stopping_) return false;
  if (running.channel) running.channel->DrainNow();
  const auto still = running_.find(id);
  if (still == running_.end()) return true;
  // A process that has read its first message runs user code, which may end by any code.
  const bool begun = still->second.plan.has_begin && !still->second.channel->LeftUnread();
  if (begun || still->second.spoke) return false;
  Log(LogLevel::kWarning, "a process ended before it had its request; it is started again",
      {{"process", id.Short()}, {"pid", child.pid}});
  StartAnew(id, still->second.tries + 1);
  return true;
}

void Supervisor::Fail(ProcessId id, const std::string& error) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  const StartProcess plan = std::move(found->second.plan);
  running_.erase(found);
  events_.failed(id, error);
}

void Supervisor::Send(ProcessId id, const wire::Message& message) {
  const auto found = running_.find(id);
  if (found != running_.end() && found->second.channel) found->second.channel->Send(message);
}

void Supervisor::SendFrame(ProcessId id, std::string frame) {
  const auto found = running_.find(id);
  if (found != running_.end() && found->second.channel) {
    found->second.channel->SendFrame(std::move(frame));
  }
}

void Supervisor::Signal(ProcessId id, int signal, bool to_group) {
  const auto found = running_.find(id);
  if (found == running_.end() || found->second.exited) return;
  Running& running = found->second;
  if (running.pid == 0) {
    if (zygotes_.Withdraw(id)) Fail(id, "it was cancelled before it started");
    return;
  }
  running.killed = true;
  // The group goes first: while the leader lives (or is not reaped), the group's number is its own.
  const bool leads = getpgid(running.pid) == running.pid;
  if (leads && to_group && signal != SIGKILL) {
    kill(-running.pid, signal);
    return;
  }
  if (leads && signal == SIGKILL) kill(-running.pid, SIGKILL);
  if (running.pidfd.valid()) static_cast<void>(os::SendSignal(running.pidfd, signal));
}

std::vector<ProcessId> Supervisor::Sweep(const std::vector<ProcessId>& processes) {
  std::vector<ProcessId> exiting;
  for (const ProcessId id : processes) {
    const auto found = running_.find(id);
    if (found == running_.end()) continue;
    // First whether it exits: what it had sent by then is in the channel.
    if (found->second.pid != 0 && !found->second.exited && os::IsExiting(found->second.pid))
      exiting.push_back(id);
    if (found->second.channel) found->second.channel->DrainNow();
  }
  return exiting;
}

std::string Supervisor::LogTail(ProcessId id) const {
  const auto found = running_.find(id);
  return found == running_.end() ? "" : logs_.Tail(LogFile(found->second.plan.log, true));
}

void Supervisor::OnChannelEnd(ProcessId id, const Status& reason) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  if (!reason.ok()) {
    Log(LogLevel::kError, "a process broke its control channel",
        {{"process", id.Short()}, {"reason", MessageOf(reason)}});
    Signal(id, SIGKILL);
  }
  // The exit decides whether it is started again
  if (found->second.forked && !found->second.spoke) return;
  if (std::exchange(found->second.drained, true)) return;
  events_.drained(id);
}

void Supervisor::OnChildren() {
  const std::vector<os::Reaped> ended = os::ReapChildren();
  zygotes_.Drain();
  for (const os::Reaped& child : ended) OnReaped(child);
  SweepOrphans();
}

void Supervisor::OnReaped(const os::Reaped& child) {
  const auto known = by_pid_.find(child.pid);
  if (known == by_pid_.end()) {
    if (tools_.erase(child.pid) > 0) return;
    // Gives each zygote the exit, in case the child was killed for want of memory.
    static_cast<void>(
        zygotes_.OnEnded(child.pid, [&] { return ExitText(Describe(child, stopping_)); }));
    return;  // an orphan of some family
  }
  const ProcessId id = known->second;
  by_pid_.erase(known);
  if (StartedAgain(id, child)) return;
  Running& running = running_.at(id);
  running.exited = true;
  ExitInfo exit = Describe(child, running.killed);
  exit.memory_asked_bytes = running.plan.memory_bytes;
  exit.log_tail = logs_.Tail(LogFile(running.plan.log, true));
  logs_.Trim(LogFile(running.plan.log, true), clock_.WallTimeUs());
  OnExit(id, std::move(exit));
}

void Supervisor::OnExit(ProcessId id, ExitInfo exit) {
  Running& running = running_.at(id);
  if (running.channel) running.channel->DrainNow();  // nothing more can come of it
  events_.exited(id, std::move(exit));
  const auto again = running_.find(id);
  if (again == running_.end()) return;
  if (!std::exchange(again->second.drained, true)) events_.drained(id);
  SweepOrphans();
}

ExitInfo Supervisor::Describe(const os::Reaped& child, bool killed_by_us) {
  ExitInfo exit;
  exit.peak_rss_kib = child.peak_rss_kib;
  if (WIFSIGNALED(child.status)) {
    exit.signal = WTERMSIG(child.status);
  } else {
    exit.exit_code = WEXITSTATUS(child.status);
  }
  if (killed_by_us || exit.LeftWell()) return exit;
  if (exit.signal == SIGKILL) {
    exit.out_of_memory = oom_.Take(os::ReadOomKills());
    if (!exit.out_of_memory.empty()) exit.memory_limit_bytes = os::ReadMemory().total_bytes;
  } else {
    exit.child_out_of_memory = KilledForMemory();
  }
  return exit;
}

std::string Supervisor::KilledForMemory() const {
  const os::OomKills now = os::ReadOomKills();
  return oom_.left(now) > 0 ? now.source : "";
}

ProcessId Supervisor::FamilyOf(int pid) const {
  if (const auto mark = os::VariableOf(pid, kProcessVariable)) {
    if (const auto id = ProcessId::FromHex(*mark)) return *id;
  }
  const int session = os::SessionOf(pid);
  for (const auto& [id, running] : running_) {
    if (running.pid == session) return id;
  }
  return ProcessId();
}

void Supervisor::SweepOrphans() {
  bool any = false;
  for (const auto& [id, running] : running_) any = any || running.exited;
  if (!any && !stopping_) return;
  std::set<ProcessId> alive;
  bool strangers = false;
  const std::vector<pid_t> children = os::Children();
  zygotes_.Drain();
  for (const pid_t pid : children) {
    if (by_pid_.count(pid) > 0 || tools_.count(pid) > 0 || zygotes_.Has(pid)) continue;
    const StatusOr<UniqueFd> pidfd = os::OpenPidfd(pid);  // before the question whose it is
    if (!pidfd.ok()) continue;
    const ProcessId family = FamilyOf(pid);
    const auto owner = running_.find(family);
    if (owner != running_.end() && !owner->second.exited) continue;  // the owner still runs
    // A forked, not executed, process that left its session does not reveal its owner: it may
    // belong to any process that has ended, so none of them is gone before it.
    if (owner == running_.end()) strangers = true;
    alive.insert(family);
    static_cast<void>(os::SendSignal(*pidfd, SIGKILL));
  }
  if (strangers) return;  // SIGCHLD brings us back
  std::vector<ProcessId> gone;
  for (auto& [id, running] : running_) {
    if (running.exited && alive.count(id) == 0) gone.push_back(id);
  }
  for (const ProcessId id : gone) {
    const auto found = running_.find(id);
    if (found == running_.end()) continue;
    const std::string& socket = found->second.plan.socket_path;
    if (!socket.empty()) {
      for (const std::string& each : {socket, net::AsideSocket(socket)}) {
        unlink(each.c_str());
        unlink(net::HandoverPath(each).c_str());
      }
    }
    running_.erase(found);
    events_.gone(id);
  }
}

void Supervisor::Tidy() {
  if (++tidied_ % kSettleEvery == 0) oom_.Settle(os::ReadOomKills());
  for (const auto& [id, running] : running_) {
    logs_.Trim(LogFile(running.plan.log, false), clock_.WallTimeUs());
    logs_.Trim(LogFile(running.plan.log, true), clock_.WallTimeUs());
  }
  ScoreForMemory();
  zygotes_.Tidy();
}

void Supervisor::ScoreForMemory() {
  for (auto& [id, running] : running_) {
    const std::uint64_t declared = running.plan.memory_bytes;
    if (declared == 0 || running.pid == 0 || running.exited) continue;
    const int score = OomScoreOf(oom_score_, os::ResidentBytes(running.pid), declared);
    if (score == running.oom_score) continue;
    if (running.oom_score != 0 || score != OomScoreOf(oom_score_, 0, 0))
      os::SetOomScore(running.pid, score);
    running.oom_score = score;
  }
}

int Supervisor::Writer(const std::string& log_file) const {
  const auto found = std::find_if(running_.begin(), running_.end(), [&](const auto& each) {
    const LogPlace& place = each.second.plan.log;
    return !each.second.exited &&
           (LogFile(place, false) == log_file || LogFile(place, true) == log_file);
  });
  if (found == running_.end()) return 0;
  return std::max(found->second.pid, 1);  // may not have one yet
}

void Supervisor::Stop() {
  if (std::exchange(stopping_, true)) return;
  zygotes_.Stop();
  for (auto& [id, running] : running_) {
    if (running.pidfd.valid()) static_cast<void>(os::SendSignal(running.pidfd, SIGKILL));
  }
}

void Supervisor::AwaitEnd(os::SignalFd& signals, Duration limit) {
  const Instant end = clock_.Now() + limit;
  for (;;) {
    static_cast<void>(os::ReapChildren());
    const std::vector<pid_t> left = os::Children();
    const Duration rest = end - clock_.Now();
    if (left.empty() || rest <= Duration::zero()) return;
    for (const pid_t pid : left) kill(pid, SIGKILL);  // not reaped yet, so the number is theirs
    pollfd signalled{signals.fd(), POLLIN, 0};
    poll(&signalled, 1, static_cast<int>(rest / std::chrono::milliseconds(1)) + 1);
    while (signals.Next()) {
    }
  }
}

}  // namespace troupe::worker
