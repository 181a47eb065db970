// Deaths in a training group, by real processes over the fakes: whoever lives is told with the
// verdict's words, wherever it waits, and goes on in a new group. For every version, since what one
// can do decides how a group is stopped; where it can be revoked, under the fault that makes an
// abort before all have stopped a violation.
#include <gtest/gtest.h>
#include <signal.h>

#include "actors/train/nccl_communicator.h"
#include "runtime/async/real_clock.h"
#include "tests/actors/train/group_scenario.h"

namespace troupe::train {
namespace {

class GroupDeath : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == kReal) GTEST_SKIP() << "the ranks of this test need the fakes' faults";
  }
  Scenario Of(Fate fate) const {
    Scenario scenario;
    scenario.library = GetParam();
    scenario.fate = fate;
    scenario.count = 1 << 16;
    if (GetParam() != "2.26")
      for (int rank = 0; rank < scenario.ranks; ++rank)
        scenario.environments[rank]["FAKE_NCCL_FAULTS"] = "peer=unmaps";
    return scenario;
  }
  void Survives(const Scenario& scenario) { ExpectSurvived(scenario, RunScenario(scenario)); }
};

TEST_P(GroupDeath, ARankIsKilledInAnAllReduce) { Survives(Of(Fate::kKilled)); }
TEST_P(GroupDeath, ARankIsStoppedAndSilent) { Survives(Of(Fate::kStopped)); }
TEST_P(GroupDeath, AnOperationHangsOnARank) { Survives(Of(Fate::kHangs)); }

TEST_P(GroupDeath, ARankNeverComesToTheInitialisation) {
  auto scenario = Of(Fate::kNeverForms);
  scenario.form_max_s = 1;
  Survives(scenario);
}

TEST_P(GroupDeath, TheRankThatMadeTheIdIsTheOneThatDies) {
  auto scenario = Of(Fate::kKilled);
  scenario.victim = 0;
  Survives(scenario);
}

TEST_P(GroupDeath, TwoGroupsOfADeviceAreStoppedTogether) {
  auto scenario = Of(Fate::kKilled);
  scenario.second_group = true;
  Survives(scenario);
}

TEST_P(GroupDeath, ASlowAbortIsWaitedFor) {
  auto scenario = Of(Fate::kKilled);
  scenario.environments[1]["FAKE_NCCL_FAULTS"] = "abort=slow:300";
  Survives(scenario);
}

TEST_P(GroupDeath, AStuckAbortEndsItsProcess) {
  // Rank 1's abort never returns: its process ends with a sentence, and the other rank's does not.
  const std::string library = GetParam();
  const Environments environments = {{1, {{"FAKE_NCCL_FAULTS", "abort=stuck"}}}};
  const auto outcome = RunRanks(2, environments, [&](Rank& rank) {
    Gpu gpu(rank, library);
    Supervisor supervisor(async::RealClock::Shared(), EndThisProcess);
    GroupSpec spec{"dp", 1, rank.index(), 2, gpu.device(), {gpu.ShareId("id")}, {}};
    spec.times.call_max = std::chrono::seconds(rank.index() == 1 ? 1 : kSecondsMax);
    spec.times.survivors_max = std::chrono::milliseconds(1);
    const auto group = NcclCommunicator::Form(gpu.cuda(), gpu.nccl(), supervisor, spec);
    rank.Require(group->AwaitReady().ok(), "forming");
    group->Stop("asked by the test");
    group->AwaitReleased();
  });
  ExpectSuccess({outcome[0]});
  EXPECT_EQ(outcome[1].signal, SIGKILL);
  EXPECT_NE(outcome[1].err.find("ncclCommAbort has not returned after 1 s"), std::string::npos)
      << outcome[1].err;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Libraries, GroupDeath, testing::ValuesIn(LibrariesToTest()),
                         NameOfLibrary);

}  // namespace troupe::train
