// Parts shared by the tests of calls between hosts: a cluster's authority, an actor behind a port
// that stands for its worker's, calls made by hand. All in one process, over loopback.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "actors/caller/channel.h"
#include "actors/caller/reactor.h"
#include "actors/net/now.h"
#include "actors/server/call_server.h"
#include "runtime/async/loop_thread.h"
#include "runtime/async/os_random.h"
#include "runtime/async/real_clock.h"
#include "runtime/net/authority.h"
#include "runtime/net/handover.h"
#include "runtime/net/listener.h"
#include "tests/actors/echo_executor.h"

namespace troupe::actors {

using namespace std::chrono_literals;

inline const async::RealClock kClock;

/// A cluster's authority, and identities it gave out.
class TestCluster {
 public:
  IdentitySource Identity(wire::Role role, const Id128& id,
                          std::uint64_t life_us = 3600'000'000ull) {
    const net::PrivateKey key = net::PrivateKey::Generate();
    const auto pem = authority_.IssueFor(key, role, id, kClock.WallTimeUs(), life_us);
    const auto made = net::MakeCredentials(key, *pem, authority_.certificate().Pem());
    auto server = *net::TlsContext::ForServer(*made, net::TlsContext::Clients::kRequired, kClock);
    auto client = *net::TlsContext::ForClient(*made, kClock);
    auto shown =
        std::make_shared<const client::IdentityShown>(client::IdentityShown{*made, server, client});
    return [shown]() -> StatusOr<std::shared_ptr<const client::IdentityShown>> { return shown; };
  }
  net::Credentials Worker() {
    return (*Identity(wire::Role::kWorker, NodeId(1, 1))())->credentials;
  }

 private:
  net::Authority authority_ = *net::Authority::Create(kClock.WallTimeUs());
};

inline const ActorId kActor(3, 4);
inline const ProcessId kProcess(5, 6);

/// An actor's process and the port of its worker, in one.
class TlsActor {
 public:
  explicit TlsActor(TestCluster& cluster, bool serve = true, Hook on_call = nullptr) {
    executor_.on_call = std::move(on_call);
    static std::atomic<int> count{0};
    folder_ = "/tmp/troupe-tls-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
    std::filesystem::create_directory(folder_);
    path_ = folder_ + "/call";
    auto server = CallServer::Listen(path_, cluster.Identity(wire::Role::kProcess, kActor));
    EXPECT_TRUE(server.ok()) << MessageOf(server.status());
    server_ = *std::move(server);
    net::ListenOptions options;
    options.address = *net::TcpAddress("127.0.0.1", 0);
    options.tls =
        *net::TlsContext::ForServer(cluster.Worker(), net::TlsContext::Clients::kRequired, kClock);
    options.on_named = [this](const std::string& name, UniqueFd connection) {
      if (name != kProcess.Hex()) return;
      const Status passed = net::HandOver(net::HandoverPath(path_), connection.get());
      EXPECT_TRUE(passed.ok()) << MessageOf(passed);
    };
    listener_ = *net::Listener::Open(loop_.executor(), std::move(options));
    async::asio::post(loop_.context(),
                      [this] { listener_->Start([](const std::shared_ptr<net::Connection>&) {}); });
    if (serve) Serve();
  }
  ~TlsActor() {
    Stop();
    std::atomic<bool> stopped{false};
    async::asio::post(loop_.context(), [this, &stopped] {
      listener_->Stop();
      stopped = true;
      stopped.notify_one();
    });
    stopped.wait(false);
    loop_.Stop();
    server_.reset();
    EXPECT_FALSE(std::filesystem::exists(net::HandoverPath(path_)));
    std::filesystem::remove_all(folder_);
  }
  void Serve() {
    thread_ = std::thread([this] { server_->Serve(executor_); });
  }
  void Stop() {
    if (!thread_.joinable()) return;
    server_->Stop();
    thread_.join();
  }
  std::uint16_t port() const { return listener_->address().port; }
  RemoteActor target() const { return {"127.0.0.1", port(), kProcess.Hex(), kActor}; }
  std::shared_ptr<Channel> Dial(IdentitySource identity, Duration grace = 5s) {
    ChannelOptions options;
    options.description = "actor Echo(1)";
    options.grace = grace;
    auto channel = Channel::Dial(CallReactor::Current(), target(), std::move(identity), options);
    EXPECT_TRUE(channel.ok()) << MessageOf(channel.status());
    return *std::move(channel);
  }
  int calls() const { return executor_.calls; }

 private:
  std::string folder_;
  std::string path_;
  async::LoopThread loop_{"test-worker"};
  std::unique_ptr<net::Listener> listener_;
  EchoExecutor executor_;
  std::unique_ptr<CallServer> server_;
  std::thread thread_;
};

inline Answer* Issue(Channel& channel, const std::string& values) {
  ByteBuffer frame;
  frame.Extend(kFrameHeadBytes);
  CallHead head;
  head.arg_count = 1;
  frame.AppendValue(head);
  const std::string method = "repeat";  // with the head 16 bytes: nothing is padded
  frame.AppendValue(static_cast<std::uint16_t>(method.size()));
  frame.Append(method.data(), method.size());
  frame.Append(values.data(), values.size());
  PlainHost host;
  while (true) {
    Channel::Call call = channel.Issue(frame, kFlagNamed);
    if (call.issued == Channel::Issued::kOkDrain) CallReactor::Current().Drain(channel);
    if (call.issued != Channel::Issued::kFull) return call.answer.Take();
    if (const AnswerRef hold = channel.WhenRoom()) {
      Answer* const room = hold.get();
      Channel* where = &channel;
      CallReactor::Current().Wait({&room, 1, 1, &where, 1, Instant::max()}, host);
    }
  }
}

/// The answer's bytes, or "error <code>: <text>".
inline std::string AnswerText(Answer* slot, Channel& channel, Duration limit = 20s) {
  PlainHost host;
  Channel* where = &channel;
  const WaitResult waited =
      CallReactor::Current().Wait({&slot, 1, 1, &where, 1, Now() + limit}, host);
  std::string text = "timed out";
  if (waited == WaitResult::kDone) {
    text = std::string(slot->bytes());
    if ((slot->flags() & kFlagRuntimeError) != 0) {
      const RuntimeErrorView error = ReadRuntimeError(slot->bytes());
      text =
          "error " + std::to_string(static_cast<int>(error.code)) + ": " + std::string(error.text);
    }
  }
  slot->Release();
  return text;
}
inline std::string Call(Channel& channel, const std::string& values) {
  return AnswerText(Issue(channel, values), channel);
}
inline std::string Padded(std::size_t size, char fill) {
  return std::string((size + 7) / 8 * 8, fill);
}
inline std::string ErrorText(ErrorCode code) {
  return "error " + std::to_string(static_cast<int>(code));
}

}  // namespace troupe::actors
