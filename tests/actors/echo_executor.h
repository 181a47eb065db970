// An actor for tests of calls that answers with the values it was called with, and who waits for
// it.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "actors/caller/reactor.h"
#include "actors/server/call_server.h"

namespace troupe::actors {

class PlainHost : public WaitHost {
 public:
  void Suspend() override {}
  void Resume() override {}
  bool Interrupted() override { return false; }
  bool HandlesSignals() const override { return false; }
};

/// Run on the serving thread, in a call.
using Hook = std::function<void(std::string_view)>;

/// "slow" first sleeps, "mute" never answers.
class EchoSession : public CallRunner {
 public:
  EchoSession(std::atomic<int>& calls, const Hook& on_call, std::vector<std::uint64_t>& cancelled)
      : calls_(calls), on_call_(on_call), cancelled_(cancelled) {}
  // may be told twice: ahead of a call, and in its turn
  void Cancel(std::uint64_t sequence, bool) override {
    if (std::find(cancelled_.begin(), cancelled_.end(), sequence) == cancelled_.end())
      cancelled_.push_back(sequence);
  }
  StatusOr<Ran> Run(const Frame& frame, CallerConnection& peer, ByteBuffer& reply,
                    std::uint16_t*) override {
    CallPrefix call;
    TROUPE_TRY(ParseCall(frame, CallLimits(), &call));
    ++calls_;
    if (call.method == "mute") {
      peer.Defer();
      return Ran::kDeferred;
    }
    if (call.method == "slow")
      std::this_thread::sleep_for(std::chrono::seconds(2));  // lint-ok: a slow method
    if (on_call_) on_call_(call.values);
    reply.Append(call.values.data(), call.values.size());
    return Ran::kReplied;
  }

 private:
  std::atomic<int>& calls_;
  const Hook& on_call_;
  std::vector<std::uint64_t>& cancelled_;
};

class EchoExecutor : public CallExecutor {
 public:
  std::unique_ptr<CallRunner> Open() override {
    return std::make_unique<EchoSession>(calls, on_call, cancelled);
  }
  void Suspend() override {}
  void Resume() override {}
  bool Interrupted() override { return false; }
  bool HandlesSignals() const override { return false; }
  std::atomic<int> calls{0};
  Hook on_call;                          // set before Serve
  std::vector<std::uint64_t> cancelled;  // in the order they came; read after Serve
};

}  // namespace troupe::actors
