#include "worker/zygote.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/net/fd_passing.h"
#include "runtime/os/text.h"
#include "runtime/wire/frame.h"

namespace troupe::worker {
namespace {

constexpr int kSocketBytes = 4 << 20;
constexpr std::size_t kRequestBytesMax = 200u << 10;
constexpr int kFailuresMax = 3;  // in a row, before it was ready
constexpr int kChildFd = 3;

}  // namespace

Zygote::Zygote(async::Executor executor, const Clock& clock, ZygoteOptions options, Events events)
    : executor_(executor),
      options_(std::move(options)),
      clock_(clock),
      events_(std::move(events)),
      restart_(executor, clock, [this] { Start(); }) {}

Zygote::~Zygote() { Stop(); }

void Zygote::Start() {
  if (stopped_ || pid_ != 0) return;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    Lost(MessageOf(os::SystemError("socketpair")));
    return;
  }
  socket_ = UniqueFd(ends[0]);
  const UniqueFd child_end(ends[1]);
  fcntl(child_end.get(), F_SETFL, fcntl(child_end.get(), F_GETFL) & ~O_NONBLOCK);
  for (const int end : ends) {
    setsockopt(end, SOL_SOCKET, SO_SNDBUF, &kSocketBytes, sizeof kSocketBytes);
    setsockopt(end, SOL_SOCKET, SO_RCVBUF, &kSocketBytes, sizeof kSocketBytes);
  }
  const UniqueFd log(
      open(options_.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  os::SpawnOptions spawn;
  spawn.argv = {options_.python,           "-P",   "-m",
                "troupe._process.zygote", "--fd", std::to_string(kChildFd)};
  for (const std::string& module : options_.preimport)
    spawn.argv.insert(spawn.argv.end(), {"--module", module});
  for (const std::string& path : options_.import_path)
    spawn.argv.insert(spawn.argv.end(), {"--path", path});
  if (!options_.preimport.empty()) {
    for (const std::string& path : options_.programs_path)
      spawn.argv.insert(spawn.argv.end(), {"--last-path", path});
  }
  if (!options_.working_directory.empty()) {
    spawn.argv.insert(spawn.argv.end(), {"--directory", options_.working_directory});
  }
  if (options_.light) spawn.argv.push_back("--light");
  if (!options_.setup.empty()) spawn.argv.insert(spawn.argv.end(), {"--setup", options_.setup});
  spawn.environment = options_.environment;
  // MKL takes OpenMP's number, and would never let go of one of its own.
  for (const char* variable : {"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"}) {
    spawn.environment.push_back(variable);
  }
  spawn.descriptors = {
      {null.get(), 0}, {log.get(), 1}, {log.get(), 2}, {child_end.get(), kChildFd}};
  spawn.new_session = true;
  spawn.death_signal = SIGKILL;
  StatusOr<os::Spawned> child = os::Spawn(spawn);
  if (!child.ok()) {
    Lost(MessageOf(child.status()));
    return;
  }
  pid_ = child->pid;
  pidfd_ = std::move(child->pidfd);
  watch_ = std::make_unique<async::FdWatch>(executor_, socket_.get(), [this] { Readable(); });
}

void Zygote::Fork(ForkOrder order) {
  waiting_.push_back(std::move(order));
  SendWaiting();
}

void Zygote::SendWaiting() {
  while (ready_ && !blocked_ && !waiting_.empty()) {
    ForkOrder& order = waiting_.front();
    const ProcessId process = order.request.process;
    wire::Message message;
    message.body = order.request;
    const StatusOr<std::string> frame = wire::EncodeFrame(message);
    std::string problem;
    if (!frame.ok()) {
      problem = MessageOf(frame.status());
    } else if (frame->size() > kRequestBytesMax) {
      problem = "its environment and paths are " + std::to_string(frame->size() >> 10) + " KiB; " +
                std::to_string(kRequestBytesMax >> 10) + " KiB is the limit";
    } else {
      const Status sent = net::SendFds(socket_.get(), *frame,
                                       {order.control.get(), order.out.get(), order.err.get()});
      if (!sent.ok() && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        blocked_ = true;
        watch_->WhenWritable([this] {
          blocked_ = false;
          SendWaiting();
        });
        return;
      }
      if (!sent.ok() && (errno == EPIPE || errno == ECONNRESET)) {
        blocked_ = true;  // until its end is heard of: the next one has what waits
        return;
      }
      if (!sent.ok()) problem = MessageOf(sent);
    }
    ++order.tries;
    if (problem.empty()) sent_.push_back(std::move(order));
    waiting_.pop_front();
    if (!problem.empty()) events_.refused(process, problem);
  }
}

std::optional<ForkOrder> Zygote::Withdraw(ProcessId process) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const ForkOrder& order) {
    return order.request.process == process;
  });
  if (found == waiting_.end()) return std::nullopt;
  ForkOrder order = std::move(*found);
  waiting_.erase(found);
  return order;
}

std::vector<ForkOrder> Zygote::WithdrawAll() {
  std::vector<ForkOrder> all(std::make_move_iterator(waiting_.begin()),
                             std::make_move_iterator(waiting_.end()));
  waiting_.clear();
  return all;
}

void Zygote::Readable() {
  for (;;) {
    StatusOr<net::Received> got = net::RecvFds(socket_.get(), kRequestBytesMax);
    if (!got.ok() && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (!got.ok() || got->payload.empty()) {
      watch_.reset();  // OnEnded() comes
      return;
    }
    const StatusOr<wire::Message> message = wire::DecodeFrame(got->payload);
    if (!message.ok()) {
      Log(LogLevel::kError, "the zygote sent an unreadable message",
          {{"reason", MessageOf(message.status())}});
      continue;
    }
    Take(*message, std::move(got->fds));
    if (!watch_) return;
  }
}

void Zygote::Take(const wire::Message& message, std::vector<UniqueFd> fds) {
  if (const auto* reply = wire::GetIf<wire::ForkReply>(&message.body)) {
    if (!reply->process.IsNil()) return OnReply(*reply);
    if (fds.size() == 1) parked_[reply->pid] = std::move(fds[0]);
  } else if (const auto* ready = wire::GetIf<wire::ZygoteReady>(&message.body)) {
    failures_ = 0;
    ready_ = ready->usable;
    unusable_ = !ready->usable;
    Log(unusable_ ? LogLevel::kWarning : LogLevel::kInfo, "zygote ready",
        {{"pid", ready->pid},
         {"import_ms", std::uint64_t{ready->import_ms}},
         {"threads", std::uint64_t{ready->threads}},
         {"problem", ready->reason}});
    events_.ready(*ready);
    if (unusable_) events_.given_up(ready->reason);
    SendWaiting();
  }
}

void Zygote::OnReply(const wire::ForkReply& reply) {
  const auto sent = std::find_if(sent_.begin(), sent_.end(), [&](const ForkOrder& order) {
    return order.request.process == reply.process;
  });
  if (sent == sent_.end()) return;
  ForkOrder order = std::move(*sent);
  sent_.erase(sent);
  if (!reply.error.empty()) {
    events_.refused(reply.process, reply.error);
    return;
  }
  auto child = parked_.extract(reply.pid);
  if (child.empty()) {  // has ended since, and was reaped: nothing was given to it
    AskAgain(std::move(order));
    SendWaiting();
    return;
  }
  events_.forked(reply.process, reply.pid, std::move(child.mapped()));
}

void Zygote::AskAgain(ForkOrder order) {
  if (order.tries >= kTriesMax) {
    events_.unanswered(order.request.process);
  } else {
    waiting_.push_front(std::move(order));
  }
}

void Zygote::Drain() {
  if (watch_) Readable();
}

void Zygote::OnEnded(const std::string& how) {
  Drain();
  Lost("the zygote ended: " + how + "; see " + options_.log_path);
}

void Zygote::Lost(const std::string& why) {
  pid_ = 0;
  pidfd_.Reset();
  watch_.reset();
  socket_.Reset();
  blocked_ = false;
  const bool was_ready = std::exchange(ready_, false);
  if (stopped_) return;
  Log(LogLevel::kWarning, "zygote lost", {{"reason", why}});
  std::deque<ForkOrder> unanswered = std::exchange(sent_, {});
  for (; !unanswered.empty(); unanswered.pop_back()) AskAgain(std::move(unanswered.back()));
  failures_ = was_ready ? 0 : failures_ + 1;
  if (failures_ >= kFailuresMax) {
    unusable_ = true;
    events_.given_up(why);
    return;
  }
  // A zygote that died while it served is replaced at once; one that cannot start, more slowly.
  restart_.ArmAt(clock_.Now() + (was_ready ? Duration::zero() : std::chrono::milliseconds(200)));
}

void Zygote::Stop() {
  stopped_ = true;
  restart_.Cancel();
  watch_.reset();
  socket_.Reset();
  ready_ = false;
  if (pid_ != 0) static_cast<void>(os::SendSignal(pidfd_, SIGKILL));
}

}  // namespace troupe::worker
