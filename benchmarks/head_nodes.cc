// Many nodes in one process, for benchmarks of the head: each holds a session of its own,
// registers, sends heartbeats and measures, and comes back with a worker's pauses when the head is
// gone.
//
//   head_nodes --nodes=1000 --address=unix:/path                       as the same user, or
//   head_nodes --nodes=1000 --address=127.0.0.1:6400 --token=FILE      over TLS
// Prints one line of JSON whenever all nodes are registered: {"registered": 1000, "at_s":
// MONOTONIC}.
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/async/deadline.h"
#include "runtime/async/os_random.h"
#include "runtime/async/real_clock.h"
#include "runtime/async/scope.h"
#include "runtime/net/files.h"
#include "runtime/net/open_session.h"

namespace {

using namespace troupe;
using async::Task;
using namespace std::chrono_literals;

struct Cluster {
  net::Address address;
  std::optional<net::Token> token;
  std::size_t nodes = 1000;
  std::size_t registered = 0;
  async::RealClock clock;
  async::OsRandom random;
};

void Report(Cluster& all) {
  if (all.registered != all.nodes) return;
  std::printf("{\"registered\": %zu, \"at_s\": %.6f}\n", all.nodes,
              Seconds(all.clock.Now() - Instant{}));
  std::fflush(stdout);
}

struct Node {
  std::size_t index = 0;
  std::uint64_t incarnation = 0;
  std::optional<net::Credentials> credentials;
};

wire::Message Registration(const Node& node, const NodeId& id) {
  wire::RegisterNode body;
  body.node = id;
  body.name = "node-" + std::to_string(node.index);
  body.host = body.name;
  body.boot_id = body.name;
  body.listen_host = "10.1.0.1";
  body.listen_port = 7000;
  body.python_version = "3.11";
  body.incarnation = node.incarnation;
  body.resources.resize(2);
  body.resources[0].name = "CPU";
  body.resources[0].ten_thousandths = 640000;
  body.resources[1].name = "GPU";
  body.resources[1].ten_thousandths = 80000;
  for (std::uint32_t gpu = 0; gpu < 8; ++gpu) {
    wire::Device device;
    device.index = gpu;
    device.uuid = "GPU-" + body.name + "-" + std::to_string(gpu);
    device.model = "NVIDIA H100 80GB HBM3";
    body.devices.push_back(std::move(device));
  }
  wire::Message message;
  message.id = 2;
  message.body = std::move(body);
  return message;
}

Task<void> Beat(std::shared_ptr<net::Connection> connection, std::shared_ptr<bool> open) {
  while (*open) {
    wire::Message message;
    message.body = wire::Heartbeat();
    if (!connection->Send(message).ok()) co_return;
    co_await async::SleepFor(500ms);
  }
}

/// The measures of a node with eight GPUs.
wire::NodeMeasures Measures() {
  using wire::MeasureKind;
  wire::NodeMeasures body;
  const auto add = [&body](MeasureKind kind, std::string key, int gpu) {
    body.measures.push_back({kind, std::move(key), gpu, 12345.5});
  };
  for (const auto kind :
       {MeasureKind::kCpuRatio, MeasureKind::kCpuCount, MeasureKind::kMemoryUsedBytes,
        MeasureKind::kMemoryFreeBytes, MeasureKind::kStoreUsedBytes})
    add(kind, "", -1);
  for (const char* each : {"/var/lib/troupe", "/"}) {
    add(MeasureKind::kDiskUsedBytes, each, -1);
    add(MeasureKind::kDiskFreeBytes, each, -1);
  }
  for (const char* each : {"eth0", "ib0"}) {
    add(MeasureKind::kNetworkReceivedBytes, each, -1);
    add(MeasureKind::kNetworkSentBytes, each, -1);
  }
  for (const char* each : {"cpu", "memory", "io"}) add(MeasureKind::kPressureRatio, each, -1);
  for (const char* each : {"worker", "rank", "actor"}) {
    add(MeasureKind::kComponentCpuSeconds, each, -1);
    add(MeasureKind::kComponentMemoryBytes, each, -1);
  }
  for (int gpu = 0; gpu < 8; ++gpu) {
    for (auto kind = static_cast<int>(MeasureKind::kGpuUtilizationRatio);
         kind <= static_cast<int>(MeasureKind::kGpuPcieReplays); ++kind)
      add(static_cast<MeasureKind>(kind), "", gpu);
    add(MeasureKind::kGpuXidErrors, "79", gpu);
    add(MeasureKind::kGpuLastXid, "", gpu);
  }
  return body;
}

Task<void> Measure(std::shared_ptr<net::Connection> connection, std::shared_ptr<bool> open,
                   Duration every) {
  while (*open) {
    wire::Message message;
    message.body = Measures();
    if (!connection->Send(message).ok()) co_return;
    co_await async::SleepFor(every);
  }
}

Task<Status> Live(Cluster& all, Node& node, async::Scope& scope) {
  net::OpenOptions options(all.address);
  options.hello.role = wire::Role::kWorker;
  options.hello.name = "node-" + std::to_string(node.index);
  options.hello.subject = NodeId(7, node.index + 1);
  options.credentials = node.credentials;
  if (!node.credentials && all.token) {
    options.token = all.token;
    options.key = net::PrivateKey::Generate();
  }
  TROUPE_CO_ASSIGN(net::OpenedSession session,
                   co_await net::OpenSession(std::move(options), all.clock));
  if (session.joined.credentials) node.credentials = session.joined.credentials;
  const NodeId id(session.joined.welcome.subject);
  wire::Message registration = Registration(node, id);
  TROUPE_CO_TRY(session.connection->Send(registration));
  auto open = std::make_shared<bool>(true);
  bool here = false;
  for (;;) {
    StatusOr<wire::Message> message = co_await session.connection->Receive();
    if (!message.ok()) {
      *open = false;
      if (here) --all.registered;
      co_return message.status();
    }
    const auto* registered = wire::GetIf<wire::NodeRegistered>(&message->body);
    if (registered == nullptr || here) continue;
    node.incarnation = registered->incarnation;
    here = true;
    ++all.registered;
    Report(all);
    scope.Spawn("beat", Beat(session.connection, open));
    if (registered->measures_ms > 0) {
      const Duration every = std::chrono::milliseconds(registered->measures_ms);
      scope.Spawn("measure", Measure(session.connection, open, every));
    }
  }
}

// A worker's pauses: 50 ms to 2 s, with jitter.
Task<void> Stay(Cluster& all, std::size_t index, async::Scope& scope) {
  Node node;
  node.index = index;
  Duration pause = 50ms;
  for (;;) {
    const std::uint64_t before = node.incarnation;
    const Status status = co_await Live(all, node, scope);
    if (node.incarnation != before) pause = 50ms;
    const Duration jitter(
        static_cast<std::int64_t>(all.random.Next() % static_cast<std::uint64_t>(pause.count())));
    co_await async::SleepFor(pause / 2 + jitter);
    pause = std::min<Duration>(2 * pause, 2s);
  }
}

int Fail(const Status& status) {
  std::fprintf(stderr, "head_nodes: %s\n", MessageOf(status).c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Cluster all;
  std::string address;
  std::string token;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--nodes=", 0) == 0)
      all.nodes = std::strtoull(argument.c_str() + 8, nullptr, 10);
    if (argument.rfind("--address=", 0) == 0) address = argument.substr(10);
    if (argument.rfind("--token=", 0) == 0) token = argument.substr(8);
  }
  auto parsed = net::ParseAddress(address);
  if (!parsed.ok()) return Fail(parsed.status());
  all.address = *std::move(parsed);
  if (!token.empty()) {
    auto text = net::ReadSecretFile(token);
    if (!text.ok()) return Fail(text.status());
    auto read = net::ParseToken(*text);
    if (!read.ok()) return Fail(read.status());
    all.token = *std::move(read);
  }
  boost::asio::io_context loop{1};
  async::Scope scope(loop.get_executor(), "nodes");
  for (std::size_t i = 0; i < all.nodes; ++i) scope.Spawn("node", Stay(all, i, scope));
  loop.run();
  return 0;
}
