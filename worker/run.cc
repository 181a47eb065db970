#include "worker/run.h"

#include <signal.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <utility>

#include "runtime/async/real_clock.h"
#include "runtime/async/scope.h"
#include "runtime/base/log.h"
#include "runtime/os/process.h"
#include "runtime/os/signals.h"
#include "worker/node.h"

namespace troupe::worker {
namespace {

async::Task<void> RunNode(Node& node, Status& result, async::asio::io_context& context) {
  result = co_await node.Run();
  context.stop();  // also when the join failed and descriptors are still watched
}

}  // namespace

Status RunWorker(const RawOptions& raw,
                 std::function<void(const NodeId&, const std::string& name)> on_joined) {
  const pid_t parent = getppid();
  TROUPE_ASSIGN(const WorkerOptions options, CheckOptions(raw));
  if (raw.parent_death) TROUPE_TRY(os::DieWithParent(SIGKILL, parent));
  TROUPE_TRY(os::BecomeSubreaper());
  TROUPE_ASSIGN(os::SignalFd signals, os::SignalFd::Open({SIGTERM, SIGINT, SIGCHLD}));
  signal(SIGPIPE, SIG_IGN);
  SetLogSource("worker " + options.name);
  SetLogBytesMax(options.log_bytes_max);
  TROUPE_ASSIGN(NodeFiles files, NodeFiles::Open(options.node_dir, options.socket_dir));
  const async::RealClock clock;
  Status status;
  Status escaped;
  {
    async::asio::io_context context(1);
    Node node(context.get_executor(), clock, options, files, signals, std::move(on_joined));
    async::Scope scope(context.get_executor(), "worker");
    scope.Spawn("node", RunNode(node, status, context));
    context.run();
    escaped = scope.first_error();
  }
  return status.ok() ? escaped : status;
}

}  // namespace troupe::worker
