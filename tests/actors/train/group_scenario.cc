#include "tests/actors/train/group_scenario.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "actors/train/nccl_communicator.h"
#include "runtime/async/real_clock.h"
#include "runtime/base/unique_fd.h"

namespace troupe::train {
namespace {

constexpr const char* kVerdict = "rank 2 on node-c was killed by SIGKILL";
constexpr int kWarmSteps = 20, kHungStep = 50;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Columns of Board::values that belong to one rank.
enum Column { kFault, kGiven, kRaised, kQuiet, kFormed, kNext };
constexpr int kColumns = 6;

class Trainer {
 public:
  Trainer(Rank& rank, const Scenario& scenario)
      : rank_(rank),
        scenario_(scenario),
        gpu_(rank, scenario.library),
        supervisor_(async::RealClock::Shared(), EndThisProcess),
        buffer_(gpu_.ToDevice(std::vector<float>(scenario.count, 0))) {}

  void Run() {
    const auto first = FormFirst();
    std::shared_ptr<NcclCommunicator> other;
    if (scenario_.second_group) other = FormAgain("other id", 3, "other");
    if (first) {
      std::thread told([&] { BeTold(first, other); });
      TrainUntilStopped(*first);
      told.join();
      first->AwaitReleased();
      if (other) other->AwaitReleased();
    }
    rank_.Pass("survivors are free", Survivors());
    const auto second = FormAgain("second id", 2, "dp");
    Stamp(kFormed);
    const Status stepped = Step(*second, true);
    rank_.Require(stepped.ok(), MessageOf(stepped));
    Stamp(kNext);
    const Status released = second->Release();
    rank_.Require(released.ok(), MessageOf(released));
  }

 private:
  bool IsVictim() const { return rank_.index() == scenario_.victim; }
  int Survivors() const { return scenario_.ranks - 1; }
  int RankAmongSurvivors() const { return rank_.index() - (rank_.index() > scenario_.victim); }
  void Stamp(Column column) {
    if (rank_.index() < 5) rank_.board().values[rank_.index() * kColumns + column] = Now();
  }

  GroupSpec Spec(const std::string& name, std::uint64_t epoch, int rank, int size,
                 const NcclUniqueId& id) const {
    const auto seconds = [](double s) {
      return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
    };
    GroupSpec spec{name, epoch, rank, size, gpu_.device(), {id}, {}};
    spec.times.form_max = seconds(scenario_.form_max_s);
    spec.times.call_max = seconds(scenario_.call_max_s);
    spec.times.survivors_max = std::chrono::seconds(kSecondsMax);
    spec.times.release_max = std::chrono::seconds(kSecondsMax);
    return spec;
  }

  std::shared_ptr<NcclCommunicator> FormFirst() {
    const auto id = gpu_.ShareId("first id");
    if (IsVictim() && scenario_.fate == Fate::kNeverForms) {
      rank_.Await("over", Survivors());
      _exit(0);
    }
    GroupHooks hooks;
    hooks.on_state = [this](GroupState state, const std::string&) {
      if (state != GroupState::kStopped) return;
      Stamp(kQuiet);
      rank_.board().Add("stopped");
    };
    auto group = NcclCommunicator::Form(gpu_.cuda(), gpu_.nccl(), supervisor_,
                                        Spec("dp", 1, rank_.index(), rank_.size(), id), hooks);
    const Status status = group->AwaitReady();
    if (scenario_.fate != Fate::kNeverForms) {
      rank_.Require(status.ok(), MessageOf(status));
      return group;
    }
    rank_.Require(ErrorCodeOf(status) == ErrorCode::kFenced, "it was formed without a rank");
    rank_.Require(MessageOf(status).find("a rank never came") != std::string::npos,
                  MessageOf(status));
    Stamp(kFault);
    Stamp(kRaised);
    group->AwaitReleased();
    return nullptr;
  }

  /// A group of the survivors, or the other one of all ranks.
  std::shared_ptr<NcclCommunicator> FormAgain(const std::string& mark, int slot,
                                              const std::string& name) {
    const bool again = name == "dp";
    auto& id = rank_.board().ids[slot];
    const int rank = again ? RankAmongSurvivors() : rank_.index();
    if (rank == 0) {
      gpu_.Check(gpu_.nccl().call.get_unique_id(&id), "making an id");
      rank_.board().Add(mark);
    }
    rank_.Await(mark, 1);
    auto group = NcclCommunicator::Form(
        gpu_.cuda(), gpu_.nccl(), supervisor_,
        Spec(name, again ? 2 : 1, rank, again ? Survivors() : scenario_.ranks, id));
    const Status status = group->AwaitReady();
    rank_.Require(status.ok(), MessageOf(status));
    return group;
  }

  /// The control thread: the head's verdict, and later that all survivors have stopped.
  void BeTold(const std::shared_ptr<NcclCommunicator>& first,
              const std::shared_ptr<NcclCommunicator>& other) {
    rank_.Await("verdict", 1);
    Stamp(kGiven);
    std::vector<Supervisor::Id> ids{first->id()};
    if (other) ids.push_back(other->id());
    supervisor_.Stop(ids, kVerdict);
    rank_.Await("stopped", Survivors());
    for (const auto id : ids) supervisor_.SurvivorsStopped(id);
  }

  Status Step(NcclCommunicator& group, bool checks) {
    const std::vector<float> ones(checks ? scenario_.count : 1, 1);
    if (checks) {
      gpu_.Check(gpu_.cuda().call.copy_to_device(buffer_, ones.data(), ones.size() * sizeof(float),
                                                 group.stream()),
                 "copy");
    }
    const Operation operation{.kind = Collective::kAllReduce,
                              .send = Gpu::At(buffer_),
                              .recv = Gpu::At(buffer_),
                              .count = scenario_.count};
    const auto work = group.Start({&operation, 1});
    if (!work.ok()) return work.status();
    if (rank_.board().At("step").count.load() < kHungStep || IsVictim()) rank_.board().Add("step");
    TROUPE_TRY((*work)->Wait(std::chrono::seconds(2 * kSecondsMax)));
    if (checks) {
      const auto values = gpu_.ToHost<float>(buffer_, scenario_.count);
      const auto expected = static_cast<float>(group.size());
      rank_.Require(values.front() == expected && values.back() == expected,
                    "the next all-reduce gave " + std::to_string(values.front()));
    }
    return absl::OkStatus();
  }

  void TrainUntilStopped(NcclCommunicator& group) {
    Status status;
    for (int step = 1; status.ok(); ++step) {
      if (step == 1) rank_.board().Add("training");
      status = Step(group, false);
    }
    Stamp(kRaised);
    rank_.Require(ErrorCodeOf(status) == ErrorCode::kFenced, MessageOf(status));
    rank_.Require(MessageOf(status).find(kVerdict) != std::string::npos, MessageOf(status));
    const Operation operation{.send = Gpu::At(buffer_), .recv = Gpu::At(buffer_), .count = 1};
    rank_.Require(ErrorCodeOf(group.Start({&operation, 1}).status()) == ErrorCode::kFenced,
                  "an operation was started after the stop");
  }

  Rank& rank_;
  const Scenario& scenario_;
  Gpu gpu_;
  Supervisor supervisor_;
  CudaPointer buffer_;
};

void AwaitDeath(pid_t pid) {
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  pollfd fd{process.get(), POLLIN, 0};
  poll(&fd, 1, kSecondsMax * 1000);
}

Times TimesOf(const Board& board, const Scenario& scenario, double fault) {
  Times times;
  for (int rank = 0; rank < scenario.ranks; ++rank) {
    if (rank == scenario.victim) continue;
    const double* at = &board.values[rank * kColumns];
    const double from = scenario.fate == Fate::kNeverForms ? at[kFault] : fault;
    times.verdict.push_back(at[kGiven] - from);
    times.raised.push_back(at[kRaised] - from);
    times.stopped.push_back(at[kQuiet] - from);
    times.formed.push_back(at[kFormed] - from);
    times.next.push_back(at[kNext] - from);
  }
  return times;
}

}  // namespace

const char* NameOf(Fate fate) {
  constexpr const char* names[] = {"killed", "stopped", "hangs", "never forms"};
  return names[static_cast<int>(fate)];
}

Outcome RunScenario(const Scenario& scenario) {
  Environments environments = scenario.environments;
  if (scenario.fate == Fate::kHangs)
    environments[scenario.victim]["FAKE_NCCL_FAULTS"] =
        "operation=hang@" + std::to_string(kHungStep);
  Outcome outcome;
  outcome.ends = RunRanks(
      scenario.ranks, environments,
      [&](Rank& rank) {
        Trainer(rank, scenario).Run();
        rank.board().Add("over");
      },
      [&](Board& board, const std::vector<pid_t>& pids) {
        const pid_t victim = pids[static_cast<std::size_t>(scenario.victim)];
        double fault = 0;
        if (scenario.fate != Fate::kNeverForms) {
          const int steps = scenario.fate == Fate::kHangs ? kHungStep : kWarmSteps;
          board.Await("training", scenario.ranks);
          board.Await("step", steps);
          fault = Now();
          // A rank that hangs is killed by its worker once that is the verdict.
          if (scenario.fate == Fate::kKilled || scenario.fate == Fate::kHangs) {
            kill(victim, SIGKILL);
            AwaitDeath(victim);
          }
          if (scenario.fate == Fate::kStopped) kill(victim, SIGSTOP);
          board.Add("verdict");
        }
        board.Await("over", scenario.ranks - 1);
        if (scenario.fate != Fate::kNeverForms) kill(victim, SIGKILL);
        outcome.times = TimesOf(board, scenario, fault);
      });
  return outcome;
}

void ExpectSurvived(const Scenario& scenario, const Outcome& outcome) {
  for (const auto& end : outcome.ends) {
    if (end.index != scenario.victim) {
      ExpectSuccess({end});
    } else {
      EXPECT_EQ(end.signal, scenario.fate == Fate::kNeverForms ? 0 : SIGKILL) << end.err;
    }
  }
}

}  // namespace troupe::train
