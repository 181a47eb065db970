#include "worker/tool_reader.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <utility>

#include "runtime/async/fd_watch.h"
#include "runtime/os/text.h"

namespace troupe::worker {
namespace {

constexpr std::chrono::seconds kLimit(90);  // the child gives up on a process sooner
constexpr int kReadersMax = 4;
constexpr std::size_t kBytesMax = 8u << 20;

struct Output {
  explicit Output(const async::Executor& executor) : timer(executor) {}
  async::asio::steady_timer timer;
  std::string text;
  bool ended = false;
};

void ReadOn(int fd, Output& output) {
  char buffer[16384];
  ssize_t got;
  while ((got = read(fd, buffer, sizeof buffer)) > 0) {
    if (output.text.size() <= kBytesMax) output.text.append(buffer, static_cast<std::size_t>(got));
  }
  if (got == 0) {
    output.ended = true;
    output.timer.cancel();
  }
}

}  // namespace

async::Task<StatusOr<std::string>> StackReader::Read(std::vector<std::string> targets,
                                                     bool native) {
  if (open_ >= kReadersMax) {
    co_return MakeError(ErrorCode::kNotSent, "four readings of stacks are under way on this node");
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) co_return os::SystemError("a pipe for stacks");
  const UniqueFd from(ends[0]);
  UniqueFd into(ends[1]);
  fcntl(from.get(), F_SETFL, O_NONBLOCK);
  std::vector<std::string> arguments = {"-m", "troupe._stacks"};
  if (native) arguments.emplace_back("--native");
  for (std::string& each : targets) arguments.push_back(std::move(each));
  StatusOr<os::Spawned> tool = supervisor_.StartTool(std::move(arguments), into.get());
  if (!tool.ok()) co_return tool.status();
  into.Reset();
  const auto output = std::make_shared<Output>(executor_);
  ++open_;
  {
    const async::FdWatch watch(executor_, from.get(),
                               [output, fd = from.get()] { ReadOn(fd, *output); });
    output->timer.expires_after(kLimit);
    co_await output->timer.async_wait(async::kTuple);
  }
  --open_;
  if (!output->ended) {
    static_cast<void>(os::SendSignal(tool->pidfd, SIGKILL));
    co_return MakeError(ErrorCode::kTimeout,
                        "stacks were not read within 90 s from the start of py-spy on this node");
  }
  if (output->text.size() > kBytesMax) {
    co_return MakeError(ErrorCode::kTooLarge, "the stacks are over 8 MiB; ask for one --rank");
  }
  if (output->text.empty()) {
    co_return MakeError(ErrorCode::kInternal,
                        "troupe._stacks wrote nothing: its error is in this node's worker.log");
  }
  co_return std::move(output->text);
}

}  // namespace troupe::worker
