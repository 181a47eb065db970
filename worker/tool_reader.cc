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

constexpr int kRunsMax = 4;

struct Output {
  Output(const async::Executor& executor, std::size_t most) : timer(executor), bytes_max(most) {}
  async::asio::steady_timer timer;
  const std::size_t bytes_max;
  std::string text;
  bool ended = false;
};

void ReadOn(int fd, Output& output) {
  char buffer[16384];
  ssize_t got;
  while ((got = read(fd, buffer, sizeof buffer)) > 0) {
    if (output.text.size() <= output.bytes_max) {
      output.text.append(buffer, static_cast<std::size_t>(got));
    }
  }
  if (got == 0) {
    output.ended = true;
    output.timer.cancel();
  }
}

Status Judge(const Output& output, const ToolRun& run) {
  if (!output.ended) {
    const auto limit = std::chrono::duration_cast<std::chrono::seconds>(run.limit).count();
    return MakeError(ErrorCode::kTimeout, run.what + " were not read within " +
                                              std::to_string(limit) +
                                              " s from the start of py-spy on this node");
  }
  if (output.text.size() > run.bytes_max) {
    return MakeError(ErrorCode::kTooLarge, "the " + run.what + " are over " +
                                               std::to_string(run.bytes_max >> 20) + " MiB; " +
                                               run.fewer);
  }
  if (output.text.empty()) {
    return MakeError(ErrorCode::kInternal,
                     run.module + " wrote nothing: its error is in this node's worker.log");
  }
  return absl::OkStatus();
}

}  // namespace

async::Task<StatusOr<std::string>> ToolReader::Run(ToolRun run) {
  int& open = open_[run.module];
  if (open >= kRunsMax) {
    co_return MakeError(ErrorCode::kNotSent,
                        "four readings of " + run.what + " are under way on this node");
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) co_return os::SystemError("a pipe for " + run.what);
  const UniqueFd from(ends[0]);
  UniqueFd into(ends[1]);
  fcntl(from.get(), F_SETFL, O_NONBLOCK);
  std::vector<std::string> arguments = {"-m", run.module};
  for (std::string& each : run.arguments) arguments.push_back(std::move(each));
  StatusOr<os::Spawned> tool = supervisor_.StartTool(std::move(arguments), into.get());
  if (!tool.ok()) co_return tool.status();
  into.Reset();
  const auto output = std::make_shared<Output>(executor_, run.bytes_max);
  ++open;
  {
    const async::FdWatch watch(executor_, from.get(),
                               [output, fd = from.get()] { ReadOn(fd, *output); });
    output->timer.expires_after(run.limit);
    co_await output->timer.async_wait(async::kTuple);
  }
  --open;
  if (!output->ended) static_cast<void>(os::SendSignal(tool->pidfd, SIGKILL));
  TROUPE_CO_TRY(Judge(*output, run));
  co_return std::move(output->text);
}

}  // namespace troupe::worker
