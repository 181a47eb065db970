// Actor calls without Python at either end: a forked process serves, this one calls.
// benchmarks/call_path.py runs it beside the calls of Python programs.
//
//   call_native CALLS PIPELINED CALLER_CPU ACTOR_CPU block|spin
//   prints the p50 and p99 of sync calls in microseconds, and pipelined calls a second, the best of
//     five times, with one
//   to two thousand under way
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "actors/caller/channel.h"
#include "actors/caller/reactor.h"
#include "actors/net/cpu_budget.h"
#include "actors/net/now.h"
#include "actors/server/call_server.h"

namespace troupe::actors {
namespace {

constexpr std::string_view kMethod = "f";
constexpr int kWindow = 1000;
constexpr std::string_view kValue = "an argument of this length";

double Us(Duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

void Pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

class Host : public WaitHost {
 public:
  void Suspend() override {}
  void Resume() override {}
  bool Interrupted() override { return false; }
  bool HandlesSignals() const override { return false; }
};

/// Answers with what it was called with.
class Echo : public CallRunner {
 public:
  StatusOr<Ran> Run(const Frame& frame, CallerConnection&, ByteBuffer& reply,
                    std::uint16_t*) override {
    CallPrefix call;
    TROUPE_TRY(ParseCall(frame, CallLimits(), &call));
    reply.Append(call.values.data(), call.values.size());
    return Ran::kReplied;
  }
};

class EchoActor : public CallExecutor {
 public:
  std::unique_ptr<CallRunner> Open() override { return std::make_unique<Echo>(); }
  void Suspend() override {}
  void Resume() override {}
  bool Interrupted() override { return false; }
  bool HandlesSignals() const override { return false; }
};

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "call_native: %s\n", why.c_str());
  std::exit(1);
}

void ServeIn(const std::string& path, int cpu, int ready) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Pin(cpu);
  auto server = CallServer::Listen(path);
  if (!server.ok()) Fail(MessageOf(server.status()));
  (void)!::write(ready, "x", 1);
  EchoActor actor;
  (*server)->Serve(actor);
}

void Await(Answer* const* slots, std::size_t count, Channel& channel) {
  Host host;
  Channel* channels[] = {&channel};
  WaitRequest request;
  request.slots = slots;
  request.slot_count = request.needed = count;
  request.channels = channels;
  request.channel_count = 1;
  request.deadline = Now() + std::chrono::seconds(60);
  if (CallReactor::Current().Wait(request, host) != WaitResult::kDone)
    Fail("no answer within 60 s of the wait's start");
}

Answer* Call(Channel& channel) {
  for (;;) {
    char room_inside[256];
    ByteBuffer frame(room_inside, sizeof room_inside);
    frame.Extend(kFrameHeadBytes);
    frame.AppendValue(CallHead{});
    frame.AppendValue(static_cast<std::uint16_t>(kMethod.size()));
    frame.Append(kMethod.data(), kMethod.size());
    frame.Append(kValue.data(), kValue.size());
    Channel::Call call = channel.Issue(frame, kFlagNamed);
    if (call.issued == Channel::Issued::kOkDrain) CallReactor::Current().Drain(channel);
    if (call.issued != Channel::Issued::kFull) return call.answer.Take();
    if (const AnswerRef room = channel.WhenRoom()) {
      Answer* const slot = room.get();
      Await(&slot, 1, channel);
    }
  }
}

void Take(Answer* slot) {
  if (slot->bytes().find(kValue) != 0) Fail("a wrong answer: " + std::string(slot->bytes()));
  slot->Release();
}

/// Calls a second, made a window at a time: the next one before the answers of the last are
/// awaited.
double Pipelined(Channel& channel, int windows) {
  std::array<std::vector<Answer*>, 2> slots = {std::vector<Answer*>(kWindow),
                                               std::vector<Answer*>(kWindow)};
  const Instant began = Now();
  for (int window = 0; window <= windows; ++window) {
    if (window < windows) {
      for (Answer*& slot : slots[window % 2]) slot = Call(channel);
    }
    if (window == 0) continue;
    const std::vector<Answer*>& last = slots[(window - 1) % 2];
    Await(last.data(), last.size(), channel);
    for (Answer* const slot : last) Take(slot);
  }
  return windows * kWindow / Us(Now() - began) * 1e6;
}

void Measure(Channel& channel, int calls, int pipelined) {
  std::vector<double> took;
  for (int i = -calls / 4; i < calls; ++i) {
    const Instant began = Now();
    Answer* const slot = Call(channel);
    Await(&slot, 1, channel);
    Take(slot);
    if (i >= 0) took.push_back(Us(Now() - began));
  }
  std::sort(took.begin(), took.end());
  double best_per_s = 0;
  for (int round = 0; round < 5; ++round)
    best_per_s = std::max(best_per_s, Pipelined(channel, pipelined / kWindow));
  std::printf("%.3f %.3f %.0f\n", took[took.size() / 2], took[took.size() * 99 / 100], best_per_s);
}

int Main(char** argv) {
  const int calls = std::atoi(argv[1]), pipelined = std::atoi(argv[2]);
  if (calls < 1 || pipelined < kWindow)
    Fail("CALLS is a count, PIPELINED one of at least a thousand");
  OverrideSpinning(std::strcmp(argv[5], "spin") == 0 ? SpinOverride::kOn : SpinOverride::kOff);
  const std::string path = "/tmp/troupe-call-native-" + std::to_string(::getpid()) + ".sock";
  int ready[2];
  if (::pipe(ready) != 0) Fail("no pipe");
  const pid_t actor = ::fork();
  if (actor == 0) {
    ServeIn(path, std::atoi(argv[4]), ready[1]);
    ::_exit(0);
  }
  char byte;
  ::close(ready[1]);
  if (::read(ready[0], &byte, 1) != 1) Fail("the actor did not start");
  Pin(std::atoi(argv[3]));
  {
    auto channel = Channel::Connect(CallReactor::Current(), path, ChannelOptions());
    if (!channel.ok()) Fail(MessageOf(channel.status()));
    Measure(**channel, calls, pipelined);
    (*channel)->Close();
  }
  CallReactor::StopCurrent();
  ::kill(actor, SIGKILL);
  ::waitpid(actor, nullptr, 0);
  ::unlink(path.c_str());
  return 0;
}

}  // namespace
}  // namespace troupe::actors

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: call_native CALLS PIPELINED CALLER_CPU ACTOR_CPU block|spin\n");
    return 2;
  }
  return troupe::actors::Main(argv);
}
